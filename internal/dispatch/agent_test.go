package dispatch_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func (w *world) hear(id hub.DispatchID, e hub.AgentEvent) error {
	return w.store.Update(context.Background(), store.Settle, func(tx store.Tx) error {
		return dispatch.Heard(tx, worker(id), id, "codex", e)
	})
}

func (w *world) agentOf(home hub.PeerID, id hub.DispatchID) hub.AgentState {
	w.t.Helper()
	var a hub.Attachment
	w.view(func(rx store.Rx) (err error) {
		a, _, err = rx.Attachment(home, id)
		return err
	})
	return a.Agent
}

func (w *world) mustHear(id hub.DispatchID, es ...hub.AgentEvent) {
	w.t.Helper()
	for _, e := range es {
		if err := w.hear(id, e); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A session is known from whichever hook names it first, and the latest word
// counts.
func TestHooksNameTheSession(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	id := w.begin(w.newTask(r))
	w.mustHear(id,
		hub.AgentEvent{Kind: hub.AgentSessionStarted, Session: "s1"},
		hub.AgentEvent{Kind: hub.AgentTurnStarted, Session: "s1", Transcript: "/t/1"},
		hub.AgentEvent{Kind: hub.AgentOther, Transcript: "/t/2"})
	if got, want := w.agentOf("", id).Session, (hub.AgentSession{Provider: "codex", ID: "s1", Transcript: "/t/2"}); got != want {
		t.Errorf("%+v", got)
	}
	w.mustHear(id, hub.AgentEvent{Kind: hub.AgentSessionStarted, Session: "s2"})
	if got, want := w.agentOf("", id).Session, (hub.AgentSession{Provider: "codex", ID: "s2"}); got != want {
		t.Errorf("a new session has the old transcript: %+v", got)
	}
	if len(w.inbox(r)) != 0 {
		t.Error("hooks made mail")
	}
}

// Each time that an agent begins to wait for a person its Run is told once.
func TestAWaitForAPersonIsToldOncePerEdge(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	p.owner.mustHear(id,
		hub.AgentEvent{Kind: hub.AgentTurnStarted},
		hub.AgentEvent{Kind: hub.AgentPermission, Detail: "run rm?"},
		hub.AgentEvent{Kind: hub.AgentPermission, Detail: "run rm?"},
		hub.AgentEvent{Kind: hub.AgentToolStarted},
		hub.AgentEvent{Kind: hub.AgentTurnEnded},
		hub.AgentEvent{Kind: hub.AgentIdle})
	p.importHome(p.outbox())
	var waits []string
	for _, m := range p.home.inbox(r) {
		var got struct {
			Kind     string         `json:"kind"`
			Dispatch hub.DispatchID `json:"dispatch_id"`
			Task     hub.TaskID     `json:"task_id"`
			Waiting  string         `json:"waiting_for"`
			Detail   string         `json:"detail"`
		}
		if err := json.Unmarshal(m.Payload, &got); err != nil {
			t.Fatal(err)
		}
		if m.Type != hub.TypeNotice || m.From != "hub" || got.Kind != "worker_waiting" || got.Dispatch != id || got.Task != task {
			t.Errorf("%+v of %+v", got, m)
		}
		waits = append(waits, got.Waiting+" "+got.Detail)
	}
	if len(waits) != 2 || waits[0] != "permission run rm?" || waits[1] != "prompt " {
		t.Errorf("told: %q", waits)
	}
}

// A worker that has reported or ended waits for nobody.
func TestAnEndedWorkerDoesNotWait(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	if _, err := w.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done")); err != nil {
		t.Fatal(err)
	}
	if err := w.hear(id, hub.AgentEvent{Kind: hub.AgentTurnEnded}); !hub.IsCode(err, hub.CodeDispatchInactive) {
		t.Errorf("a hook after the report: %v", err)
	}
	if n := len(w.inbox(r)); n != 1 {
		t.Errorf("%d messages, want the report alone", n)
	}
	other := w.begin(w.newTask(r))
	err := w.store.Update(context.Background(), store.Settle, func(tx store.Tx) error {
		return dispatch.Heard(tx, worker(other), id, "codex", hub.AgentEvent{Kind: hub.AgentPermission})
	})
	if !hub.IsCode(err, hub.CodeOutOfScope) {
		t.Errorf("a hook about another Dispatch: %v", err)
	}
}

func (w *world) result(id hub.DispatchID, r hub.AgentResult) {
	w.t.Helper()
	w.update(func(tx store.Tx) error { return dispatch.Resulted(tx, "", id, r) })
}

func (w *world) completes(id hub.DispatchID, completion, agent string) {
	w.t.Helper()
	w.update(func(tx store.Tx) error {
		a, _, err := tx.Attachment("", id)
		if err != nil {
			return err
		}
		a.Completion, a.Spec.Agent = completion, agent
		return tx.SaveAttachment(a)
	})
}

// The terminal record settles a launcher that completes by it, unless the worker
// has reported; its usage is kept either way.
func TestATerminalRecordSettlesOnce(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	seven := int64(7)
	done := hub.AgentResult{Outcome: hub.OutcomeSucceeded, Text: "all green", Session: "s", Usage: hub.Usage{OutputTokens: &seven, Source: hub.UsageReported}}

	task := w.newTask(r)
	id := w.begin(task)
	w.completes(id, "result", "claude")
	w.result(id, done)
	w.result(id, hub.AgentResult{Outcome: hub.OutcomeFailed, Text: "later"})
	tk, d := w.states(task, id)
	if d.State != hub.Succeeded || d.Evidence != hub.EvidenceResult || tk.Result != "all green" {
		t.Errorf("%+v of %+v", d, tk)
	}

	task = w.newTask(r)
	id = w.begin(task)
	w.completes(id, "result", "claude")
	if _, err := w.send(worker(id), report(task, id, hub.OutcomeFailed, "my own word")); err != nil {
		t.Fatal(err)
	}
	w.result(id, done)
	if _, d := w.states(task, id); d.State != hub.Failed || d.Evidence != hub.EvidenceReport {
		t.Errorf("the record overtook the report: %+v", d)
	}
	if u := w.agentOf("", id).Usage; u == nil || *u.OutputTokens != 7 {
		t.Errorf("usage %+v", u)
	}

	task = w.newTask(r)
	id = w.begin(task)
	w.completes(id, "report", "codex")
	w.result(id, done)
	if _, d := w.states(task, id); d.State != hub.Ready {
		t.Errorf("a launcher that completes by report is %s", d.State)
	}
}

// A provider that refuses work closes the pool of its agent, ever longer, until
// one of its agents has succeeded.
func TestARefusalClosesThePool(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	refused := func() hub.AgentPool {
		id := w.begin(w.newTask(r))
		w.completes(id, "result", "claude")
		w.result(id, hub.AgentResult{Outcome: hub.OutcomeFailed, Text: "429", Class: hub.ErrorRateLimited})
		var p hub.AgentPool
		w.view(func(rx store.Rx) (err error) {
			p, err = rx.AgentPool("claude")
			if e := dispatch.PoolOpen(rx, "claude", rx.Now()); !hub.IsCode(e, hub.CodeRateLimited) {
				t.Errorf("the pool is open: %v", e)
			}
			if e := dispatch.PoolOpen(rx, "claude", p.Until); e != nil {
				t.Errorf("the pool is closed when its time is over: %v", e)
			}
			return err
		})
		return p
	}
	if p := refused(); p.Times != 1 {
		t.Errorf("%+v", p)
	}
	if p := refused(); p.Times != 1 {
		t.Errorf("the same refusal counted twice: %+v", p)
	}
	w.update(func(tx store.Tx) error { // its pause is over
		p, err := tx.AgentPool("claude")
		p.Until = 1
		if err != nil {
			return err
		}
		return tx.SaveAgentPool(p)
	})
	if p := refused(); p.Times != 2 {
		t.Errorf("%+v", p)
	}
	id := w.begin(w.newTask(r))
	w.completes(id, "result", "claude")
	w.result(id, hub.AgentResult{Outcome: hub.OutcomeSucceeded, Text: "ok"})
	w.view(func(rx store.Rx) error { return dispatch.PoolOpen(rx, "claude", rx.Now()) })
}
