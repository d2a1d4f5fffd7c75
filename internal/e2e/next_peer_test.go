//go:build unix

package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// duo is a home and its worker hub, between which answers can be lost.
type duo struct {
	home, worker *Hub
	run          Coordinator
	root         string
	net          *muter
}

func newDuo(t *testing.T) duo {
	d := duo{home: stoppedHub(t, "home"), worker: stoppedHub(t, "worker", withBrokenAgent), root: t.TempDir()}
	d.net = newMuter(t, strings.TrimPrefix(d.worker.Endpoint().URL, "https://"))
	introduce(d.home, d.worker, d.root, d.net.Addr())
	d.home.Start()
	d.worker.Start()
	d.run = d.home.NewRun("at home")
	return d
}

func (d duo) place(agent string) []string {
	return []string{"--on", "worker", "--worktree", "path:" + d.root, "--agent", agent}
}

// whole makes both hubs run and all answers arrive.
func (d duo) whole() {
	d.net.set(func() bool { return false })
	for _, h := range []*Hub{d.worker, d.home} {
		if _, done := h.process(); closed(done) {
			h.Start()
		}
	}
}

// begin starts a worker whose hub's answer is lost, and returns when it runs.
func (d duo) begin(t *testing.T) background[Result] {
	t.Helper()
	before, task := len(d.worker.spawns()), d.run.Task(newGate(t).wait())
	spawned := func() bool { return len(d.worker.spawns()) > before }
	d.net.set(spawned)
	args := append([]string{"worker", "start", "--task", task}, d.place("sh")...)
	call := begin(t, func() (Result, error) { return d.run.json(args...), nil })
	eventually(t, "the worker has started", 20*time.Second, spawned)
	return call
}

// peerAdvice is printed where another hub is asked.
var peerAdvice = map[string]advice{
	"a Dispatch of a removed peer": {sites: "dispatch.unreachable", provoke: removedPeer},
	"a used invite":                {sites: "peer.RevokeInvite", provoke: usedInvite},
	"another name":                 {sites: "peer.otherName", duo: true, provoke: otherName},
	"a name that is paired":        {sites: "peer.pairedName", duo: true, provoke: pairedName},
	"remote_runtime_unavailable":   {sites: "work.validateThere cli.repeated", duo: true, provoke: workerHubAway, exits: []int{6}},
	"a start that its hub fails":   {sites: "work.ownersReceipt", duo: true, provoke: failedRemoteStart},
	"a start that is refused":      {sites: "work.endRemote", provoke: refusedStart},
	"a start that is lost":         {sites: "work.endRemote cli.repeated", duo: true, provoke: lostStart, exits: []int{10}},
	"a start cut by its home":      {sites: "work.demoteOne", duo: true, provoke: cutStart, exits: []int{10}},
	"a stop without proof":         {sites: "work.performStop cli.repeated", duo: true, provoke: unprovenStop, exits: []int{10}},
}

func otherName(t *testing.T, s *stage) printed {
	d := s.duo()
	c := d.home.Caller()
	return printed{by: c, next: pairing(d.home, d.worker).nextCommands(t)}
}

func pairedName(t *testing.T, s *stage) printed {
	d := s.duo()
	c := d.home.Caller()
	c.stdin = wellFormed()
	r := c.json("peer", "add", "worker", d.worker.Endpoint().URL, "--code-file", "-")
	return printed{by: c, next: r.nextCommands(t)}
}

func workerHubAway(t *testing.T, s *stage) printed {
	d := s.duo()
	d.worker.Kill()
	r := d.run.json(append([]string{"worker", "start", "--task", d.run.Task("true")}, d.place("sh")...)...)
	return printed{by: d.run.Caller, next: r.nextCommands(t), mend: func(*testing.T) { d.whole() }}
}

func failedRemoteStart(t *testing.T, s *stage) printed {
	d := s.duo()
	r := d.run.json(append([]string{"worker", "start", "--task", d.run.Task("x")}, d.place("broken")...)...)
	if r.Code != 1 {
		t.Fatalf("exit %d %s%s", r.Code, r.Stdout, r.Stderr)
	}
	return printed{by: d.run.Caller, next: decode[api.StartReceipt](t, r.Stdout).NextCommands}
}

// refusedStart starts several workers at once on a hub that takes one: of those
// that it has not refused before anything was recorded, one wins.
func refusedStart(t *testing.T, s *stage) printed {
	x, g := s.trio(), newGate(t)
	for range 50 {
		failed, ready := x.race(t, g.wait())
		for _, d := range ready {
			get[api.StopResult](t, x.run.Caller, "worker", "stop", d.DispatchId)
		}
		if len(failed) > 0 {
			return printed{by: x.run.Caller, next: failed[0].NextCommands}
		}
	}
	t.Fatal("all starts but one were refused early in 50 rounds")
	return printed{}
}

func (x trio) race(t *testing.T, script string) (failed, ready []api.StartReceipt) {
	t.Helper()
	c := x.home.Client("")
	var tasks []string
	for range 6 {
		task, err := c.CreateTask(t.Context(), x.run.Run, api.TaskCreate{Spec: script})
		must(t, err)
		tasks = append(tasks, task.Task.TaskId)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, task := range tasks {
		wg.Go(func() {
			r, err := c.StartWorker(t.Context(), task, api.WorkerStart{On: "worker", Worktree: "path:" + x.root, Agent: "sh"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && r.State == "failed":
				failed = append(failed, *r)
			case err == nil:
				ready = append(ready, *r)
			}
		})
	}
	wg.Wait()
	return failed, ready
}

// lostStart leaves the worker running and its hub down.
func lostStart(t *testing.T, s *stage) printed {
	d := s.duo()
	call := d.begin(t)
	d.worker.Kill()
	d.net.cut()
	r := call.get(t, commandLimit).value
	next := decode[api.StartReceipt](t, r.Stdout).NextCommands
	return printed{by: d.run.Caller, next: slices.Concat(next, r.nextCommands(t)), mend: func(*testing.T) { d.whole() }}
}

// cutStart kills both hubs while the home waits for the answer.
func cutStart(t *testing.T, s *stage) printed {
	d := s.duo()
	call := d.begin(t)
	d.home.Kill()
	d.worker.Kill()
	d.net.cut()
	call.get(t, commandLimit)
	d.home.Start()
	live := get[api.DispatchPage](t, d.run.Caller, "worker", "list", "--live", "--limit", "1").Dispatches[0]
	return printed{by: d.run.Caller, next: d.run.Show(live.DispatchId).Receipt.NextCommands, mend: func(*testing.T) { d.whole() }}
}

func unprovenStop(t *testing.T, s *stage) printed {
	d := s.duo()
	start := d.run.Work(newGate(t).wait(), d.place("sh")...)
	d.worker.Kill()
	r := d.run.json("worker", "stop", start.DispatchId)
	next := decode[api.StopResult](t, r.Stdout).NextCommands
	return printed{by: d.run.Caller, next: slices.Concat(next, r.nextCommands(t)), mend: func(*testing.T) { d.whole() }}
}

func removedPeer(t *testing.T, _ *stage) printed {
	p := NewPair(t)
	run := p.Home.NewRun("removed")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	get[api.PeerResult](t, p.Home.Caller(), "peer", "remove", "worker")
	return printed{by: run.Caller, next: run.json("worker", "stop", w.DispatchId).nextCommands(t)}
}

func usedInvite(t *testing.T, _ *stage) printed {
	by := NewPair(t).Worker.Caller()
	used := get[api.InvitePage](t, by, "peer", "invite", "list").Invites[0]
	return printed{by: by, next: by.json("peer", "invite", "revoke", used.InviteId).nextCommands(t)}
}
