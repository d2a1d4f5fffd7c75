//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// copied stops the hub, copies its database, and starts it again.
func (h *Hub) copied() []byte {
	h.t.Helper()
	h.Stop()
	raw, err := os.ReadFile(h.Data("wavehub.db"))
	must(h.t, err)
	h.Start()
	return raw
}

// putBack puts an older database in place of a hub that does not run.
func (h *Hub) putBack(raw []byte) {
	h.t.Helper()
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Remove(h.Data("wavehub.db" + end)); err != nil && !os.IsNotExist(err) {
			h.t.Fatal(err)
		}
	}
	must(h.t, os.WriteFile(h.Data("wavehub.db"), raw, 0o600))
}

// TestAcceptance_F09_FilesPutBackByHand: the home notices a worker hub whose files
// are older than what came from it, tells the Run, shows the Dispatch as parked on
// both sides and lets others flow; restore --adopt, which no running hub allows,
// lets it go on.
func TestAcceptance_F09_FilesPutBackByHand(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("restored")
	hurt, other := run.heldWorker(t, p.Worker, p.Place()...), run.heldWorker(t, p.Worker, p.Place()...)
	old := p.Worker.copied()
	get[api.SendResult](t, hurt.Caller(), "send", "--type", "status", "--body", "lost")
	if b := run.Check(); b.Count != 1 || b.Messages[0].Body != "lost" {
		t.Fatalf("the mail is %+v", b.Messages)
	}
	p.Worker.Stop()
	p.Worker.putBack(old)
	p.Worker.Start()

	get[api.SendResult](t, hurt.Caller(), "send", "--type", "status", "--body", "new")
	get[api.SendResult](t, other.Caller(), "send", "--type", "status", "--body", "beside")
	var regressed struct {
		Kind   string
		Queues []struct {
			Dispatch string `json:"dispatch_id"`
		}
	}
	seen := map[string]bool{}
	eventually(t, "the notice, and the other's mail", 60*time.Second, func() bool {
		for _, m := range get[api.HistoryPage](t, run.Caller, "check", "--all").Messages {
			if m.Type == "notice" {
				must(t, json.Unmarshal(m.Payload, &regressed))
			}
			seen[m.Body] = true
		}
		return regressed.Kind == "relay_regressed" && seen["beside"]
	})
	if len(regressed.Queues) != 1 || regressed.Queues[0].Dispatch != hurt.DispatchId || seen["new"] {
		t.Errorf("the notice is %+v; the mail %v", regressed, seen)
	}
	if shown := run.Show(hurt.DispatchId); !strings.HasPrefix(shown.RelayParked, "relay_conflict") {
		t.Errorf("worker show says %q", shown.RelayParked)
	}
	eventually(t, "both sides show it", 30*time.Second, func() bool {
		home, worker := get[api.PeerDetail](t, p.Home.Caller(), "peer", "show", p.Worker.Name), get[api.PeerDetail](t, p.Worker.Caller(), "peer", "show", p.Home.Name)
		return home.Relay.ParkedCount == 1 && worker.Relay.ParkedCount == 1 && worker.Relay.Parked[0].Sending
	})
	if r := p.Worker.Caller().CLI("peer", "show", p.Home.Name); !strings.Contains(r.Stdout, "relay_conflict") {
		t.Errorf("peer show prints %s", r.Stdout)
	}

	refused(t, p.Worker.Caller(), "data_dir_locked", "restore", "--adopt")
	p.Worker.Stop()
	if out := p.Worker.Caller().CLI("restore"); out.Code != 2 {
		t.Errorf("restore alone: exit %d, %s", out.Code, out.Stderr)
	}
	adopted := get[struct {
		Epoch int64 `json:"store_epoch"`
	}](t, p.Worker.Caller(), "restore", "--adopt")
	if adopted.Epoch != 2 {
		t.Errorf("epoch %d", adopted.Epoch)
	}
	p.Worker.Start()
	eventually(t, "what was held", 60*time.Second, func() bool {
		for _, m := range get[api.HistoryPage](t, run.Caller, "check", "--all").Messages {
			seen[m.Body] = true
		}
		return seen["new"]
	})
	if shown := run.Show(hurt.DispatchId); shown.RelayParked != "" {
		t.Errorf("still parked: %q", shown.RelayParked)
	}
	get[api.SendResult](t, hurt.Caller(), hurt.report("succeeded", "after all")...)
	if m := run.Done(hurt.DispatchId); m.Body != "after all" {
		t.Errorf("the report is %+v", m)
	}
}
