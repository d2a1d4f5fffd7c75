package dispatch_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

var waveTask = &hub.WaveRef{Wave: "w1", Token: "T001"}

// ofWave makes a Dispatch's attachment one of a wave's task.
func (w *world) ofWave(home hub.PeerID, id hub.DispatchID) {
	w.t.Helper()
	w.changed(home, id, func(a *hub.Attachment) { a.Spec.Wave = waveTask })
}

func (w *world) changed(home hub.PeerID, id hub.DispatchID, change func(*hub.Attachment)) {
	w.t.Helper()
	w.update(func(tx store.Tx) error {
		a, _, err := tx.Attachment(home, id)
		if err != nil {
			return err
		}
		change(&a)
		return tx.SaveAttachment(a)
	})
}

// A wave's worker may name its Task by the wave's token, at home and at a peer; no
// other name is taken, and no token of a Dispatch that is of no wave.
func TestTheTokenOfAWaveNamesTheTask(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	here, there := p.home.newTask(r), p.home.newTask(r)
	local, remote := p.home.begin(here), p.begin(there)
	plain := p.home.begin(p.home.newTask(r))
	p.home.ofWave("", local)
	p.owner.ofWave(p.homeAtOwner, remote)
	for name, c := range map[string]struct {
		at   *world
		task hub.TaskID
		id   hub.DispatchID
	}{
		"another token at home":  {p.home, "T002", local},
		"another token at owner": {p.owner, "T002", remote},
		"no wave's":              {p.home, "T001", plain},
	} {
		_, err := c.at.send(worker(c.id), report(c.task, c.id, hub.OutcomeSucceeded, "done"))
		if e, _ := err.(*hub.Error); e == nil || e.Code != hub.CodeLifecycleInvalid || e.Field != "task_id" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for at, id := range map[*world]hub.DispatchID{p.home: local, p.owner: remote} {
		if _, err := at.send(worker(id), report("T001", id, hub.OutcomeSucceeded, "done")); err != nil {
			t.Fatal(err)
		}
	}
	p.importHome(p.outbox())
	for task, id := range map[hub.TaskID]hub.DispatchID{here: local, there: remote} {
		if tk, d := p.home.states(task, id); d.State != hub.Succeeded || tk.State != hub.TaskCompleted {
			t.Errorf("%s is %s, its Task %s", id, d.State, tk.State)
		}
	}
	for _, m := range p.home.inbox(r) {
		if strings.Contains(string(m.Payload), "T001") {
			t.Errorf("the mail names the token for the Task: %s", m.Payload)
		}
	}
}

// Session of a wave's task: one for all attempts, with its kind; each attempt begins
// without what the former worker kept. control and session_close name the wave.
func TestSessionOfAWavesTask(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	one, p := w.register("w-1")
	task := w.newTask(r)
	give := func(retryOf hub.DispatchID) hub.DispatchID {
		t.Helper()
		id := hub.NewDispatchID()
		w.update(func(tx store.Tx) error {
			a, start := startOf(one, id, task, r, "", waveTask.Session())
			a.Spec.Wave, start.WaveMark = waveTask, waveTask.Mark()
			if _, err := dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: task, RetryOf: retryOf, Request: hub.NewRequestID(), Receipt: a.Receipt}); err != nil {
				return err
			}
			return dispatch.AttachWorker(tx, a, start)
		})
		return id
	}
	first := give("")
	w.take(p)
	set := dispatch.BackendCtxInput{Session: "w1--T001", BackendCtx: json.RawMessage(`{"thread":1}`)}
	if _, err := w.dispatch.SetBackendCtx(context.Background(), w.request(p, "updateSession", set), set); err != nil {
		t.Fatal(err)
	}
	w.update(func(tx store.Tx) error {
		_, _, err := dispatch.Fence(tx, first, hub.FenceItem{Request: hub.NewRequestID()})
		return err
	})
	if _, err := w.send(p, report("T001", first, hub.OutcomeCancelled, "given up")); err != nil {
		t.Fatal(err)
	}
	for _, m := range w.take(p).Messages {
		var c hub.SessionControl
		if err := json.Unmarshal(m.Payload, &c); err != nil || c.WaveRef == nil || *c.WaveRef != *waveTask || c.Channel != "wave.w1.task.T001" || c.Session != "w1--T001" {
			t.Errorf("%s is %s, %v", m.Type, m.Payload, err)
		}
	}
	second := give(first)
	s, err := w.dispatch.Session(context.Background(), p, "w1--T001")
	if err != nil || s.Dispatch != second || s.Status != hub.SessionOpen || s.BackendCtx != nil || string(s.Metadata) != `{"kind":"wave_task","wave_id":"w1","wave_task_id":"T001"}` {
		t.Errorf("the session is %+v %s, %v", s, s.Metadata, err)
	}
}

// Usage reaches the home however a Dispatch ends, and the latest word of its owner
// counts: what was decoded of its output comes behind its report.
func TestUsageComesHome(t *testing.T) {
	said, more := json.RawMessage(`{"cost_usd":1}`), json.RawMessage(`{"cost_usd":2}`)
	n, cost := int64(5), 3.0
	counted := hub.AgentResult{Outcome: hub.OutcomeSucceeded, Text: "done", Usage: hub.Usage{InputTokens: &n, OutputTokens: &n, CostUSD: &cost, Source: hub.UsageReported}}
	status := func(w *world, id hub.DispatchID) {
		in := dispatch.SendInput{Type: hub.TypeStatus, Body: "half"}
		in.Report.Usage = said
		if _, err := w.send(worker(id), in); err != nil {
			w.t.Fatal(err)
		}
	}
	done := func(w *world, id hub.DispatchID, task hub.TaskID, usage json.RawMessage) {
		in := report(task, id, hub.OutcomeSucceeded, "done")
		in.Report.Usage = usage
		if _, err := w.send(worker(id), in); err != nil {
			w.t.Fatal(err)
		}
	}
	exit := func(w *world, home hub.PeerID, id hub.DispatchID) {
		zero := 0
		w.update(func(tx store.Tx) error { return dispatch.Exit(tx, home, id, hub.ExitItem{ExitCode: &zero}, "") })
	}
	result := func(w *world, home hub.PeerID, id hub.DispatchID) {
		w.update(func(tx store.Tx) error { return dispatch.Resulted(tx, home, id, counted) })
	}
	for name, c := range map[string]struct {
		do   func(w *world, home hub.PeerID, id hub.DispatchID, task hub.TaskID)
		want hub.Spent
	}{
		"a report": {func(w *world, _ hub.PeerID, id hub.DispatchID, task hub.TaskID) { done(w, id, task, more) }, hub.Spent{CostUSD: 2}},
		"a report behind a status": {func(w *world, _ hub.PeerID, id hub.DispatchID, task hub.TaskID) {
			status(w, id)
			done(w, id, task, nil)
		}, hub.Spent{CostUSD: 1}},
		"an exit behind a status": {func(w *world, home hub.PeerID, id hub.DispatchID, _ hub.TaskID) { status(w, id); exit(w, home, id) }, hub.Spent{CostUSD: 1}},
		"a report, then the output": {func(w *world, home hub.PeerID, id hub.DispatchID, task hub.TaskID) {
			done(w, id, task, more)
			result(w, home, id)
			exit(w, home, id)
		}, hub.Spent{CostUSD: 3, Tokens: 10}},
		"the output": {func(w *world, home hub.PeerID, id hub.DispatchID, _ hub.TaskID) {
			w.changed(home, id, func(a *hub.Attachment) { a.Completion = "result" })
			result(w, home, id)
		}, hub.Spent{CostUSD: 3, Tokens: 10}},
		"a launcher that completes by exit": {func(w *world, home hub.PeerID, id hub.DispatchID, _ hub.TaskID) {
			w.changed(home, id, func(a *hub.Attachment) { a.Completion = "exit" })
			status(w, id)
			exit(w, home, id)
		}, hub.Spent{CostUSD: 1}},
		"a held report": {func(w *world, home hub.PeerID, id hub.DispatchID, task hub.TaskID) {
			w.changed(home, id, func(a *hub.Attachment) { a.Checks.VerifyCmd = "true" })
			status(w, id)
			done(w, id, task, nil)
			w.update(func(tx store.Tx) error { return dispatch.Release(tx, home, id, hub.Findings{}) })
		}, hub.Spent{CostUSD: 1}},
		"a stop": {func(w *world, home hub.PeerID, id hub.DispatchID, _ hub.TaskID) {
			status(w, id)
			w.update(func(tx store.Tx) error {
				order := hub.FenceItem{Request: hub.NewRequestID()}
				if home == "" {
					_, _, err := dispatch.Fence(tx, id, order)
					return err
				}
				a, _, err := tx.Attachment(home, id)
				if err != nil {
					return err
				}
				return dispatch.Order(tx, a, order)
			})
			w.update(func(tx store.Tx) error { return dispatch.Stopped(tx, home, id, hub.StopEvidence{Proved: true}) })
		}, hub.Spent{CostUSD: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			r, _ := p.home.newRun()
			here, there := p.home.newTask(r), p.home.newTask(r)
			local, remote := p.home.begin(here), p.begin(there)
			c.do(p.home, "", local, here)
			if name == "a stop" {
				p.home.update(func(tx store.Tx) error {
					_, _, err := dispatch.Fence(tx, remote, hub.FenceItem{Request: hub.NewRequestID()})
					return err
				})
			}
			c.do(p.owner, p.homeAtOwner, remote, there)
			p.importHome(p.outbox())
			for task, id := range map[hub.TaskID]hub.DispatchID{here: local, there: remote} {
				_, d := p.home.states(task, id)
				if got, _ := hub.ParseUsage(d.Usage); got != c.want || !d.State.Final() {
					t.Errorf("%s (local: %v) is %s and has used %s", id, id == local, d.State, d.Usage)
				}
			}
		})
	}
}

// Usage that no worker may say is refused before anything; of a peer's report it is
// left away, and the report counts.
func TestUsageOfAnyKindDoesNotCount(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	for name, raw := range map[string]string{"no object": `[1]`, "too long": `{"a":"` + strings.Repeat("x", hub.MaxUsageBytes) + `"}`} {
		for _, kind := range []hub.MessageType{hub.TypeStatus, hub.TypeWorkerDone} {
			in := report(task, id, hub.OutcomeSucceeded, "done")
			in.Type, in.Report.Usage = kind, json.RawMessage(raw)
			if e, _ := errorOf(p.owner.send(worker(id), in)); e == nil || e.Field != "usage" {
				t.Errorf("%s with a %s: %v", name, kind, e)
			}
		}
	}
	if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done")); err != nil {
		t.Fatal(err)
	}
	items := p.outbox()
	var m hub.Message
	if err := json.Unmarshal(items[0].Payload, &m); err != nil {
		t.Fatal(err)
	}
	m.Payload = json.RawMessage(strings.Replace(string(m.Payload), `"outcome"`, `"usage":[1],"outcome"`, 1))
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	items[0].Payload = raw
	p.importHome(items)
	if _, d := p.home.states(task, id); d.State != hub.Succeeded || d.Usage != nil {
		t.Errorf("it is %s and has used %s", d.State, d.Usage)
	}
}

func errorOf(_ dispatch.Sent, err error) (*hub.Error, error) {
	e, _ := err.(*hub.Error)
	return e, err
}

// What the engine tells a Run is a notice of the hub, and bounded.
func TestWaveNotices(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	payload := map[string]any{"wave_id": "w1", "kind": "mine", "status": "failed"}
	w.update(func(tx store.Tx) error {
		return dispatch.WaveNotice(tx, r, dispatch.NoticeWaveState, strings.Repeat("ü", hub.MaxSubjectBytes), strings.Repeat("b", hub.MaxBodyBytes+1), payload)
	})
	w.update(func(tx store.Tx) error {
		return dispatch.WaveNotice(tx, r, dispatch.NoticeBudgetExceeded, "s", "b", nil)
	})
	ms := w.inbox(r)
	if len(ms) != 2 || ms[0].From != "hub" || ms[0].Type != hub.TypeNotice || !ms[0].Live() || len(ms[0].Subject) > hub.MaxSubjectBytes || len(ms[0].Body) > hub.MaxBodyBytes {
		t.Fatalf("%+v", ms)
	}
	if string(ms[0].Payload) != `{"kind":"wave_state","status":"failed","wave_id":"w1"}` || string(ms[1].Payload) != `{"kind":"budget_exceeded"}` || payload["kind"] != "mine" {
		t.Errorf("%s, %s", ms[0].Payload, ms[1].Payload)
	}
	err := w.store.Update(context.Background(), store.New, func(tx store.Tx) error {
		return dispatch.WaveNotice(tx, r, dispatch.NoticeWaveState, "s", "b", map[string]any{"x": strings.Repeat("x", hub.MaxMessageBytes)})
	})
	if !hub.IsCode(err, hub.CodeTooLarge) || len(w.inbox(r)) != 2 {
		t.Errorf("a notice of any size: %v", err)
	}
}

// CloseStart finds the request of a start that the engine made: it shares the space of
// the hub's own principals.
func TestTheEnginesStartsAreClosed(t *testing.T) {
	w := newWorld(t)
	engine := hub.Principal{Kind: hub.Engine}
	q, err := receipt.New(engine, receipt.DerivedKey("a"), "worker.start", "x")
	if err != nil {
		t.Fatal(err)
	}
	w.update(func(tx store.Tx) error {
		_, err := receipt.BeginInTx(tx, q, func(store.Tx) (hub.Receipt, error) { return hub.Receipt{State: hub.StartStarting}, nil })
		return err
	})
	w.update(func(tx store.Tx) error {
		return dispatch.CloseStart(tx, operator(), q.Key, hub.Receipt{State: hub.StartReady})
	})
	w.view(func(rx store.Rx) error {
		rec, found, err := rx.Receipt(engine.Space(), q.Key)
		if !found || rec.State != store.ReceiptDone || rec.Principal != "engine" || !strings.Contains(string(rec.Body), `"state":"ready"`) {
			t.Errorf("%v %+v", found, rec)
		}
		return err
	})
}
