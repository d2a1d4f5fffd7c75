//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/openapi/api"
)

// agreed says whether each hub has pinned the other's present key.
func (p Pairing) agreed(t *testing.T) bool {
	t.Helper()
	one := func(at, of *Hub) bool {
		got := get[api.PeerPage](t, at.Caller(), "peer", "list").Peers[0]
		return got.Fingerprint == of.Endpoint().Fingerprint
	}
	return one(p.Home, p.Worker) && one(p.Worker, p.Home)
}

// TestARotationUnderWork: each side rotates while a worker runs and the link is
// up. Local callers, the worker and the other hub go on, before and after a
// restart, and the link follows without traffic.
func TestARotationUnderWork(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("rotation")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	hubID := p.Worker.Endpoint().HubID
	for _, h := range []*Hub{p.Worker, p.Home, p.Worker} {
		old := h.Endpoint().Fingerprint
		stale := h.at(t, h.Endpoint(), h.Token())
		key := id.New("req_")
		got := get[api.KeyRotation](t, h.Caller(), "peer", "rotate", "--retry-request", key)
		if !got.Rotated || got.FormerFingerprint != old || got.Fingerprint != h.Endpoint().Fingerprint || got.Fingerprint == old {
			t.Errorf("the rotation is %+v", got)
		}
		if again := get[api.KeyRotation](t, h.Caller(), "peer", "rotate", "--retry-request", key); again.Fingerprint != got.Fingerprint || !again.Mutation.Replayed {
			t.Errorf("the same request is %+v", again)
		}
		get[api.HubStatus](t, stale, "status") // who has the former pin is served by the former key
		eventually(t, "both have the present keys", 20*time.Second, func() bool { return p.agreed(t) })
		if ping := get[api.PeerPing](t, p.Home.Caller(), "peer", "ping", "worker"); !ping.Ok || len(ping.Stages) != 6 {
			t.Errorf("the ping is %+v", ping)
		}
	}
	if e := p.Worker.Endpoint(); e.HubID != hubID || get[api.HubStatus](t, p.Worker.Caller(), "status").Hub.Fingerprint != e.Fingerprint {
		t.Errorf("the hub is %+v", e)
	}
	p.Worker.Restart()
	p.Home.Restart()
	get[api.SendResult](t, w.Caller(), w.report("succeeded", "under another key")...)
	w.gate.open(t, 1)
	if m := run.Done(w.DispatchId); m.Body != "under another key" {
		t.Errorf("the report is %+v", m)
	}
	run.Done(run.Begin(run.Task("true"), p.Place()...).DispatchId)
}

// TestARotationWaitsForWhoIsAway: a home that was down learns of it at link-up,
// also when the worker hub was killed and started in between.
func TestARotationWaitsForWhoIsAway(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	p.Home.Kill()
	got := get[api.KeyRotation](t, p.Worker.Caller(), "peer", "rotate")
	if len(got.Unaware) != 1 {
		t.Errorf("it waits for %+v", got.Unaware)
	}
	p.Worker.Restart()
	get[api.KeyRotation](t, p.Worker.Caller(), "peer", "rotate")
	p.Home.Start()
	eventually(t, "the home has followed", 20*time.Second, func() bool { return p.agreed(t) })
	run := p.Home.NewRun("afterwards")
	run.Done(run.Begin(run.Task("true"), p.Place()...).DispatchId)
}

// TestAcceptance_F09_WhoMissedTheProofsSeesAnotherKey: peer_changed at every verb,
// and by its stage in ping.
func TestAcceptance_F09_WhoMissedTheProofsSeesAnotherKey(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("forced")
	get[api.KeyRotation](t, p.Worker.Caller(), "peer", "rotate", "--force")
	task := run.Task("true")
	eventually(t, "no connection by the former key is left", 20*time.Second, func() bool {
		r := p.Home.CLI("peer", "ping", "worker", "--json")
		return r.Code == 5
	})
	ping := decode[api.PeerPing](t, p.Home.CLI("peer", "ping", "worker", "--json").Stdout)
	failed := slices.IndexFunc(ping.Stages, func(s api.PeerPingStage) bool { return s.State == api.PeerPingStageStateFailed })
	if failed < 0 || ping.Stages[failed].Stage != api.PeerPingStageStagePin || ping.Stages[failed].Code != "peer_changed" {
		t.Errorf("the ping is %+v", ping)
	}
	p.Home.Restart()
	refused(t, run.Caller, "peer_changed", append([]string{"worker", "start", "--task", task}, p.Place()...)...)
	if run.State(task) != "ready" {
		t.Errorf("the Task is %s", run.State(task))
	}
}

// TestAKilledRotationLeavesAHub kills the hub while it rotates, and repeats the
// request: it has one effect, and the peers follow.
func TestAKilledRotationLeavesAHub(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			key, old := id.New("req_"), p.Worker.Endpoint().Fingerprint
			call := begin(t, func() (Result, error) {
				return p.Worker.CLI("peer", "rotate", "--retry-request", key, "--json"), nil
			})
			<-time.After(time.Duration(5*n+5) * time.Millisecond) // anywhere in it
			p.Worker.Restart()
			call.get(t, commandLimit)
			got := get[api.KeyRotation](t, p.Worker.Caller(), "peer", "rotate", "--retry-request", key)
			if got.FormerFingerprint != old || got.Fingerprint != p.Worker.Endpoint().Fingerprint {
				t.Errorf("%+v, the endpoint says %s, before was %s", got, p.Worker.Endpoint().Fingerprint, old)
			}
			eventually(t, "the home has followed", 20*time.Second, func() bool { return p.agreed(t) })
		})
	}
}

// futureHub is one that offers federation/2 alone; it counts what it is asked.
type futureHub struct {
	*httptest.Server
	id keystore.Identity

	mu    sync.Mutex
	asked []string // guarded by mu
}

// anyKey takes every key.
type anyKey struct{}

func (anyKey) ByFingerprint(context.Context, string) (hub.Peer, bool, error) {
	return hub.Peer{State: hub.PeerActive}, true, nil
}
func (anyKey) InviteOpen(context.Context) bool { return false }
func (anyKey) Replaced(context.Context, string) (hub.Peer, bool, error) {
	return hub.Peer{}, false, nil
}
func (anyKey) Refused(hub.Peer, string, error) {}

func newFutureHub(t *testing.T) *futureHub {
	t.Helper()
	own, err := keystore.Create(t.TempDir())
	must(t, err)
	f := &futureHub{id: own}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r.Method+" "+r.URL.Path)
		f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(hub.Hello{HubID: own.HubID, StoreID: "store_of_future", StoreEpoch: 1, Nonce: "n", Contracts: []string{"federation/2"}})
	}))
	f.TLS = peer.ServerConfig(context.Background(), own, anyKey{})
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// TestAcceptance_F01_AFuturePeerGetsNothing: who does not offer federation/1 is
// asked for the hello only.
func TestAcceptance_F01_AFuturePeerGetsNothing(t *testing.T) {
	t.Parallel()
	f, h := newFutureHub(t), stoppedHub(t, "home")
	record := madeUp("future", hub.PeerActive, f.URL)
	record.Lineage, record.Fingerprint = f.id.HubID, f.id.Fingerprint
	h.know(record)
	h.Start()
	run := h.NewRun("too early")
	task := run.Task("true")
	refused(t, run.Caller, "capability_unsupported", "worker", "start", "--task", task, "--on", "future", "--worktree", "path:/", "--agent", "sh")
	if d := get[api.DispatchPage](t, run.Caller, "worker", "list"); len(d.Dispatches) != 0 || run.State(task) != "ready" {
		t.Errorf("the refusal left %+v, Task %s", d, run.State(task))
	}
	r := h.CLI("peer", "ping", "future", "--json")
	ping := decode[api.PeerPing](t, r.Stdout)
	if last := ping.Stages[len(ping.Stages)-1]; r.Code != 5 || last.State != api.PeerPingStageStateFailed || last.Code != "capability_unsupported" {
		t.Errorf("exit %d, the ping is %+v", r.Code, ping)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 || slices.ContainsFunc(f.asked, func(s string) bool { return s != "GET /peer/v1/hello" }) {
		t.Errorf("it was asked for %v", f.asked)
	}
}
