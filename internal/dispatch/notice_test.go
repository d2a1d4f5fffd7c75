package dispatch_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// A Run that has workers on a peer is told once when a person has to look at
// the peer, and once when it is over; other Runs are not.
func TestPeerConditionIsToldOnce(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	other, _ := p.home.newRun()
	id, second := p.begin(p.home.newTask(r)), p.begin(p.home.newTask(r))
	ended := p.begin(p.home.newTask(other))
	p.abandon(ended)
	note := func(code hub.Code) {
		if err := p.home.dispatch.PeerCondition(context.Background(), p.ownerAtHome, code); err != nil {
			t.Fatal(err)
		}
	}
	note("")
	note(hub.CodePeerChanged)
	note(hub.CodePeerChanged)
	note("")
	note("")
	ms := p.home.inbox(r)
	if len(ms) != 2 || len(p.home.inbox(other)) != 0 {
		t.Fatalf("%d notices, %d for the Run without live workers", len(ms), len(p.home.inbox(other)))
	}
	for i, state := range []string{"held", "restored"} {
		var got struct {
			Kind, State, Code string
			Count             int              `json:"dispatches"`
			Dispatches        []hub.DispatchID `json:"dispatch_ids"`
		}
		if err := json.Unmarshal(ms[i].Payload, &got); err != nil {
			t.Fatal(err)
		}
		if ms[i].Type != hub.TypeNotice || ms[i].From != "hub" || got.Kind != "peer_state" || got.State != state || got.Count != 2 ||
			len(got.Dispatches) != 2 || got.Dispatches[0] != second || got.Dispatches[1] != id {
			t.Errorf("notice %d is %+v of %+v", i, got, ms[i])
		}
	}
}
