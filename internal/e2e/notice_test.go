//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

// otherStore exchanges the store of a hub that does not run for the one in aside,
// which begins as a new one that knows the peer.
func (h *Hub) otherStore(aside string, knows hub.Peer) {
	h.t.Helper()
	swap := func(from, to string) {
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(from+end, to+end); err != nil && !os.IsNotExist(err) {
				h.t.Fatal(err)
			}
		}
	}
	db := h.Data("wavehub.db")
	fresh := !exists(aside)
	swap(db, aside+".out")
	swap(aside, db)
	swap(aside+".out", aside)
	if fresh {
		h.Start()
		h.Stop()
		h.know(knows)
	}
}

// A Run with a worker on a peer is told by mail when the peer comes back with
// another store, once, and when it has its own again; its worker's report, which
// waited there, follows.
func TestANoticeTellsOfAPeerThatIsAnother(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("noticed")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	p.Home.Stop()
	card, aside := p.Home.card(hub.RoleHome), filepath.Join(t.TempDir(), "aside.db")
	p.Worker.Stop()
	p.Worker.otherStore(aside, card)
	p.Home.Start()
	p.Worker.Start()
	held := run.notice(t)
	if held.State != "held" || held.Code != "peer_store_changed" || held.Name != p.Worker.Name || len(held.Dispatches) != 1 || held.Dispatches[0] != w.DispatchId {
		t.Errorf("the notice is %+v", held)
	}
	p.Worker.Stop()
	p.Worker.otherStore(aside, card)
	p.Worker.Start()
	if back := run.notice(t); back.State != "restored" || back.Code != "" {
		t.Errorf("the second notice is %+v", back)
	}
	get[api.SendResult](t, w.Caller(), w.report("succeeded", "it was here all the time")...)
	if m := run.Done(w.DispatchId); m.Body != "it was here all the time" {
		t.Errorf("the report is %+v", m)
	}
}

type peerNotice struct {
	Kind, State, Code, Name string
	Dispatches              []string `json:"dispatch_ids"`
}

// notice waits for the next notice, which must come alone, and acknowledges it.
func (c Coordinator) notice(t *testing.T) (n peerNotice) {
	t.Helper()
	b := c.Check("--types", "notice")
	if b.Count != 1 || b.Messages[0].From != "hub" || b.Messages[0].Type != "notice" {
		t.Fatalf("the mail is %+v", b.Messages)
	}
	must(t, json.Unmarshal(b.Messages[0].Payload, &n))
	get[api.CheckResult](t, c.Caller, "check", "--ack", *b.DeliveryId)
	return n
}
