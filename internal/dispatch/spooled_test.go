package dispatch_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func refusal() hub.SpoolRefusal {
	return hub.SpoolRefusal{Request: hub.NewRequestID(), Code: hub.CodeDispatchInactive, Detail: "has ended", Terminal: hub.NewTerminalID(), File: "f.json"}
}

func wantRejection(t *testing.T, ms []hub.Message, n hub.MessageID, id hub.DispatchID, why hub.SpoolRefusal) {
	t.Helper()
	if len(ms) != 1 {
		t.Fatalf("%d notices came: %+v", len(ms), ms)
	}
	var got struct {
		Kind     string         `json:"kind"`
		Dispatch hub.DispatchID `json:"dispatch_id"`
		Task     hub.TaskID     `json:"task_id"`
		hub.SpoolRefusal
	}
	if err := json.Unmarshal(ms[0].Payload, &got); err != nil {
		t.Fatal(err)
	}
	if ms[0].ID != n || ms[0].Type != hub.TypeNotice || ms[0].From != "hub" || got.Kind != "spool_rejected" || got.Dispatch != id || got.Task == "" || got.SpoolRefusal != why {
		t.Errorf("the notice is %+v of %+v", got, ms[0])
	}
}

// Invariant 30: a refused line is told once, however often it is refused.
func TestARefusedLineIsToldOnce(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	id, n, why := w.begin(w.newTask(r)), hub.NewMessageID(), refusal()
	for range 2 {
		if err := w.dispatch.SpoolRejected(context.Background(), "", id, n, why); err != nil {
			t.Fatal(err)
		}
	}
	wantRejection(t, w.inbox(r), n, id, why)
}

func TestARefusedLineIsToldToAnotherHome(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id, n, why := p.begin(p.home.newTask(r)), hub.NewMessageID(), refusal()
	for range 2 {
		if err := p.owner.dispatch.SpoolRejected(context.Background(), p.homeAtOwner, id, n, why); err != nil {
			t.Fatal(err)
		}
	}
	items := p.outbox()
	if len(items) != 1 {
		t.Fatalf("%d items were queued", len(items))
	}
	for range 2 {
		if res := p.importHome(items); res.Acks[0].Parked != "" {
			t.Fatalf("parked: %s", res.Acks[0].Parked)
		}
	}
	wantRejection(t, p.home.inbox(r), n, id, why)
	if err := p.owner.dispatch.SpoolRejected(context.Background(), p.homeAtOwner, hub.NewDispatchID(), hub.NewMessageID(), why); err != nil {
		t.Errorf("of a Dispatch that is not known: %v", err)
	}
}

// A notice comes of the owner, never of a worker, and says what owners say.
func TestOnlyAnOwnerTellsOfARefusedLine(t *testing.T) {
	for name, forge := range map[string]func(*hub.Message){
		"of a worker": func(m *hub.Message) { m.From = "dispatch:x" },
		"too long": func(m *hub.Message) {
			m.Payload = json.RawMessage(`{"kind":"spool_rejected","detail":"` + strings.Repeat("x", hub.MaxSubjectBytes+1) + `"}`)
		},
	} {
		p := newPair(t)
		r, _ := p.home.newRun()
		id := p.begin(p.home.newTask(r))
		if err := p.owner.dispatch.SpoolRejected(context.Background(), p.homeAtOwner, id, hub.NewMessageID(), refusal()); err != nil {
			t.Fatal(err)
		}
		items := p.outbox()
		var m hub.Message
		if err := json.Unmarshal(items[0].Payload, &m); err != nil {
			t.Fatal(err)
		}
		forge(&m)
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		items[0].Payload = raw
		if res := p.importHome(items); res.Acks[0].Parked == "" || len(p.home.inbox(r)) != 0 {
			t.Errorf("%s: it was taken", name)
		}
	}
}
