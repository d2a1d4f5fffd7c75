package dispatch_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

func (testTokens) Worker(id hub.WorkerID) string {
	return keystore.DeriveToken([]byte("k"), "whw_", "worker", string(id), 1)
}

// register makes an identity and returns it with its principal.
func (w *world) register(name string) (hub.Worker, hub.Principal) {
	w.t.Helper()
	w.dispatch.Tokens = testTokens{}
	out, err := w.dispatch.Register(context.Background(), w.request(operator(), "registerWorker", hub.NewRequestID()), dispatch.RegisterInput{Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Worker, hub.Principal{Kind: hub.AttachedWorker, ID: string(out.Worker.ID), Credential: keystore.TokenSum(out.Token)}
}

// startOf is an attachment to the worker as package work makes it.
func startOf(w hub.Worker, id hub.DispatchID, task hub.TaskID, r hub.RunID, home hub.PeerID, session string) (hub.Attachment, hub.SessionStart) {
	a := hub.Attachment{
		Dispatch: id, Task: task, Run: r, Home: home, Capability: hub.CapActive, Completion: "report", Worker: w.ID, Session: session,
		StartMail: hub.NewMessageID(), Receipt: hub.Receipt{State: hub.StartStarting, Stage: hub.StageInputDelivering, Worker: w.Name},
	}
	return a, hub.SessionStart{Action: hub.ActionStart, Session: session, Dispatch: id, Task: task, Run: r}
}

// give gives the Task to the worker, in one transaction with its being taken.
func (w *world) give(worker hub.Worker, task hub.TaskID, retryOf hub.DispatchID, session string) (hub.DispatchID, error) {
	id := hub.NewDispatchID()
	return id, w.store.Update(context.Background(), store.New, func(tx store.Tx) error {
		if _, err := dispatch.TakesWork(tx, worker.Name); err != nil {
			return err
		}
		t, err := tx.Task(task)
		if err != nil {
			return err
		}
		a, start := startOf(worker, id, task, t.Run, "", session)
		if session == "" {
			a.Session = string(id)
		}
		if _, err = dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: task, RetryOf: retryOf, Request: hub.NewRequestID(), Receipt: a.Receipt}); err != nil {
			return err
		}
		return dispatch.AttachWorker(tx, a, start)
	})
}

func (w *world) given(worker hub.Worker, task hub.TaskID) hub.DispatchID {
	w.t.Helper()
	id, err := w.give(worker, task, "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func kindsOf(b mail.Batch) string {
	var out []string
	for _, m := range b.Messages {
		out = append(out, string(m.Type))
	}
	return strings.Join(out, " ")
}

// take returns the worker's next batch and acknowledges it.
func (w *world) take(p hub.Principal) mail.Batch {
	w.t.Helper()
	box := hub.WorkerID(p.ID).Box()
	b, err := w.check(p, mail.CheckInput{Box: box})
	if err == nil && b.Delivery != "" {
		_, err = w.check(p, mail.CheckInput{Box: box, Ack: b.Delivery})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func TestAttachedMailIsInOneOrder(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	one, p := w.register("w-1")
	task := w.newTask(r)
	id := w.given(one, task)
	if _, d := w.states(task, id); d.State != hub.Starting {
		t.Errorf("before it is taken up the Dispatch is %s", d.State)
	}
	hint, err := w.send(consumer, dispatch.SendInput{To: id.Box(), Type: hub.TypeGuidance, Body: "hint"})
	if err != nil {
		t.Fatal(err)
	}
	_, stranger := w.register("w-2")
	where := func(want dispatch.Whereabouts) {
		t.Helper()
		if got, err := w.dispatch.Message(context.Background(), p, hint.Message); err != nil || got.Delivery != want {
			t.Errorf("the guidance is %s, %v; want %s", got.Delivery, err, want)
		}
		if _, err := w.dispatch.Message(context.Background(), stranger, hint.Message); !hub.IsCode(err, hub.CodeMessageNotFound) {
			t.Errorf("another worker reads it: %v", err)
		}
	}
	where(dispatch.Queued)
	first, err := w.check(p, mail.CheckInput{Box: one.ID.Box()})
	where(dispatch.Delivered)
	again, err2 := w.check(p, mail.CheckInput{Box: one.ID.Box()})
	if err != nil || err2 != nil || kindsOf(first) != "session_start guidance" || again.Messages[0].ID != first.Messages[0].ID || first.Messages[1].To != id.Box() {
		t.Fatalf("%v %v: %s, then %+v", err, err2, kindsOf(first), again.Messages)
	}
	if _, d := w.states(task, id); d.State != hub.Starting {
		t.Error("receiving alone takes a Dispatch up")
	}
	w.take(p)
	where(dispatch.Acknowledged)
	if _, d := w.states(task, id); d.State != hub.Ready {
		t.Errorf("an acknowledged session_start leaves it %s", d.State)
	}
	if _, err := w.send(p, report(task, id, hub.OutcomeSucceeded, "done")); err != nil {
		t.Fatal(err)
	}
	b := w.take(p)
	var c hub.SessionControl
	if err := json.Unmarshal(b.Messages[0].Payload, &c); err != nil || kindsOf(b) != "session_close" || c.State != "succeeded" || c.Dispatch != id {
		t.Errorf("%v: after the end came %s %+v", err, kindsOf(b), c)
	}
	if tk, d := w.states(task, id); d.State != hub.Succeeded || tk.State != hub.TaskCompleted || len(w.inbox(r)) != 1 {
		t.Errorf("settled as %s, Task %s", d.State, tk.State)
	}
}

// Acceptance L9: presence takes up, and makes no mail; a straggler changes nothing.
func TestAcceptance_L09_PresenceOfAnAttachedWorkerIsNoMail(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	one, p := w.register("w-1")
	_, stranger := w.register("w-2")
	task := w.newTask(r)
	id := w.given(one, task)
	present := func(p hub.Principal) []hub.DispatchID {
		live, err := dispatch.TakeUp(context.Background(), w.store, p, []hub.DispatchID{id, hub.NewDispatchID()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return live
	}
	if live := present(stranger); len(live) != 0 {
		t.Errorf("a foreign presence is told %v", live)
	}
	if _, d := w.states(task, id); d.State != hub.Starting {
		t.Errorf("a foreign presence made it %s", d.State)
	}
	if live := present(p); len(live) != 1 || live[0] != id {
		t.Errorf("its own presence is told %v", live)
	}
	if _, d := w.states(task, id); d.State != hub.Ready || len(w.inbox(r)) != 0 {
		t.Errorf("presence left it %s, with %d messages", d.State, len(w.inbox(r)))
	}
	if _, err := w.send(p, report(task, id, hub.OutcomeFailed, "no")); err != nil {
		t.Fatal(err)
	}
	before, d := w.states(task, id)
	if live := present(p); len(live) != 0 {
		t.Errorf("a straggler is told %v", live)
	}
	if after, d2 := w.states(task, id); after.Version != before.Version || d2.Version != d.Version || len(w.inbox(r)) != 1 {
		t.Error("a straggling presence changed something")
	}
}

// Acceptance V7: what is not the worker's own changes nothing.
func TestAcceptance_V07_AttachedMessagesNameTheirOwnDispatch(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	one, p := w.register("w-1")
	other, _ := w.register("w-2")
	if _, err := w.send(p, status("x")); !hub.IsCode(err, hub.CodeDispatchInactive) {
		t.Errorf("without a Dispatch: %v", err)
	}
	t1, t2, t3 := w.newTask(r), w.newTask(r), w.newTask(r)
	a := w.given(one, t1)
	if _, err := w.send(p, status("x")); err != nil {
		t.Errorf("with one: %v", err)
	}
	b, foreign := w.given(one, t2), w.given(other, t3)
	_, err := w.send(p, status("x"))
	if !hub.IsCode(err, hub.CodeInvalidArgument) || !strings.Contains(err.Error(), string(a)) || !strings.Contains(err.Error(), string(b)) {
		t.Errorf("with two: %v", err)
	}
	in := status("x")
	in.Report.Dispatch = b
	if _, err := w.send(p, in); err != nil {
		t.Errorf("named: %v", err)
	}
	in.Report.Dispatch = foreign
	if _, err := w.send(p, in); !hub.IsCode(err, hub.CodeDispatchNotFound) {
		t.Errorf("another worker's: %v", err)
	}
	for name, bad := range map[string]dispatch.SendInput{
		"no dispatch": report(t1, "", hub.OutcomeSucceeded, "x"), "another worker's": report(t3, foreign, hub.OutcomeSucceeded, "x"),
		"another Task": report(t2, a, hub.OutcomeSucceeded, "x"),
	} {
		if _, err := w.send(p, bad); !hub.IsCode(err, hub.CodeLifecycleInvalid) {
			t.Errorf("a report with %s: %v", name, err)
		}
	}
	if _, d := w.states(t3, foreign); d.State != hub.Starting {
		t.Errorf("the foreign Dispatch is %s", d.State)
	}
}

func TestAttachedGenerationFencesTheFormerLoop(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	one, p := w.register("w-1")
	id := w.given(one, w.newTask(r))
	old := p
	old.Generation = one.Generation
	held, err := w.check(old, mail.CheckInput{Box: one.ID.Box()})
	if err != nil || len(held.Messages) != 1 {
		t.Fatalf("%+v, %v", held, err)
	}
	waiting := make(chan error, 1)
	drained(w.waiting)
	go func() {
		_, err := w.check(p, mail.CheckInput{Box: one.ID.Box(), Ack: held.Delivery, WaitMS: 60_000})
		waiting <- err
	}()
	awaitKey(t, w.waiting, string(one.ID.Box()))
	fresh, err := w.dispatch.AttachLoop(context.Background(), w.request(p, "attachWorker", nil))
	if err != nil || fresh.Worker.Generation != one.Generation+1 {
		t.Fatalf("%+v, %v", fresh, err)
	}
	if err := <-waiting; !hub.IsCode(err, hub.CodeConsumerFenced) {
		t.Errorf("the former loop's wait ended with %v", err)
	}
	if _, err := w.check(old, mail.CheckInput{Box: one.ID.Box()}); !hub.IsCode(err, hub.CodeConsumerFenced) {
		t.Errorf("the former loop checks: %v", err)
	}
	p.Generation = fresh.Worker.Generation
	if live, err := dispatch.TakeUp(context.Background(), w.store, p, []hub.DispatchID{id}, nil); err != nil || len(live) != 1 {
		t.Errorf("%v, %v", live, err)
	}
}

func drained(ch chan string) {
	for {
		select {
		case <-ch:
		default:
			return
		}
	}
}

func awaitKey(t *testing.T, ch chan string, key string) {
	t.Helper()
	for got := range ch {
		if got == key {
			return
		}
	}
}

func TestAttachedRevocationEndsWaitsAtOnce(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	one, p := w.register("w-1")
	task := w.newTask(r)
	id := w.given(one, task)
	w.take(p)
	asked, err := w.send(p, dispatch.SendInput{Type: hub.TypeQuestion, Body: "Go on?"})
	if err != nil {
		t.Fatal(err)
	}
	drained(w.waiting)
	ended := make(chan error, 3)
	go func() { _, err := w.check(p, mail.CheckInput{Box: one.ID.Box(), WaitMS: 60_000}); ended <- err }()
	awaitKey(t, w.waiting, string(one.ID.Box()))
	go func() {
		_, err := w.mail.Await(context.Background(), p, asked.Message, mail.MaxWaitMS*1e6)
		ended <- err
	}()
	awaitKey(t, w.waiting, p.ID)
	go func() {
		ended <- w.mail.Listen(context.Background(), p, one.ID.Box(), mail.MaxWaitMS*1e6, func(bool) error { return nil })
	}()
	awaitKey(t, w.waiting, string(one.ID.Box()))
	if _, err := w.dispatch.Revoke(context.Background(), w.request(operator(), "revokeWorker", one.Name), one.Name); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := <-ended; !hub.IsCode(err, hub.CodeInvalidToken) {
			t.Errorf("a wait ended with %v", err)
		}
	}
	if _, err := w.send(p, report(task, id, hub.OutcomeSucceeded, "late")); !hub.IsCode(err, hub.CodeInvalidToken) {
		t.Errorf("a report afterwards: %v", err)
	}
	if _, err := w.give(one, w.newTask(r), "", ""); !hub.IsCode(err, hub.CodeWorkerNotFound) {
		t.Errorf("a Dispatch afterwards: %v", err)
	}
	w.register("w-1") // the name is free
}

// A drain is atomic with giving work: what came before it is the worker's, what
// comes after it is refused, and nothing is both or neither.
func TestAttachedDrainRacesWithDispatch(t *testing.T) {
	const rounds = 100
	w := newWorld(t)
	r, _ := w.newRun()
	given, refused := 0, 0
	for range rounds {
		one, p := w.register("w-" + strings.ToLower(strings.TrimPrefix(string(hub.NewRequestID()), "req_")))
		task := w.newTask(r)
		var side sync.WaitGroup
		side.Go(func() {
			if _, err := w.dispatch.Drain(context.Background(), w.request(operator(), "drainWorker", one.Name), one.Name); err != nil {
				t.Error(err)
			}
		})
		id, err := w.give(one, task, "", "")
		side.Wait()
		switch b := w.take(p); {
		case err == nil && kindsOf(b) == "session_start":
			given++
			if _, d := w.states(task, id); d.State != hub.Ready {
				t.Errorf("a live Dispatch of a draining worker is %s", d.State)
			}
		case hub.IsCode(err, hub.CodeWorkerDraining) && len(b.Messages) == 0:
			refused++
		default:
			t.Fatalf("%v, and the mailbox has %q", err, kindsOf(b))
		}
		if _, err := w.give(one, w.newTask(r), "", ""); !hub.IsCode(err, hub.CodeWorkerDraining) {
			t.Fatalf("after the drain: %v", err)
		}
	}
	t.Logf("%d rounds: %d given, %d refused", rounds, given, refused)
}

func (w *world) fence(id hub.DispatchID) hub.Dispatch {
	w.t.Helper()
	var d hub.Dispatch
	w.update(func(tx store.Tx) (err error) {
		d, _, err = dispatch.Fence(tx, id, hub.FenceItem{Request: hub.NewRequestID()})
		return err
	})
	return d
}

func (w *world) neverBegun(id hub.DispatchID) (never bool) {
	w.t.Helper()
	w.view(func(rx store.Rx) error {
		a, _, err := rx.Attachment("", id)
		if err == nil {
			never, err = dispatch.NeverBegun(rx, a)
		}
		return err
	})
	return never
}

// Queued work is cancelled without a turn; what a Delivery has held, even one that
// was fenced, is not proven to be idle.
func TestAttachedCancelContract(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	one, p := w.register("w-1")
	queued := w.given(one, w.newTask(r))
	w.fence(queued)
	if !w.neverBegun(queued) {
		t.Error("queued work may have begun")
	}
	if b := w.take(p); b.Delivery != "" {
		t.Errorf("what was taken back came: %s", kindsOf(b))
	}
	task := w.newTask(r)
	id := w.given(one, task)
	if _, err := w.check(p, mail.CheckInput{Box: one.ID.Box()}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.dispatch.AttachLoop(context.Background(), w.request(p, "attachWorker", nil)); err != nil {
		t.Fatal(err)
	}
	w.fence(id)
	if w.neverBegun(id) {
		t.Error("what a fenced Delivery held is said never to have begun")
	}
	b := w.take(p)
	if kindsOf(b) != "session_start control" {
		t.Fatalf("the next loop gets %q", kindsOf(b))
	}
	if sent, err := w.send(p, report(task, id, hub.OutcomeSucceeded, "too late")); err != nil || sent.Verdict != hub.VerdictStale {
		t.Errorf("success after the fence: %+v, %v", sent, err)
	}
	if sent, err := w.send(p, report(task, id, hub.OutcomeCancelled, "gave up")); err != nil || sent.Verdict != hub.VerdictAccepted {
		t.Errorf("cancelled after the fence: %+v, %v", sent, err)
	}
	if tk, d := w.states(task, id); d.State != hub.Stopped || d.Reason != "" || tk.State != hub.TaskBlocked {
		t.Errorf("it is %s (%s), Task %s", d.State, d.Reason, tk.State)
	}
	if b := w.take(p); kindsOf(b) != "session_close" {
		t.Errorf("after the stop came %q", kindsOf(b))
	}
}

func TestAttachedSessionsGoOnWithTheRetry(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	one, p := w.register("w-1")
	other, q := w.register("w-2")
	task := w.newTask(r)
	first, err := w.give(one, task, "", "w1--t1")
	if err != nil {
		t.Fatal(err)
	}
	set := func(p hub.Principal, raw string) (hub.Session, error) {
		out, err := w.dispatch.SetBackendCtx(context.Background(), w.request(p, "updateSession", hub.NewRequestID()),
			dispatch.BackendCtxInput{Session: "w1--t1", BackendCtx: json.RawMessage(raw)})
		return out.Session, err
	}
	if s, err := set(p, ` { "id" : "abc" } `); err != nil || string(s.BackendCtx) != `{"id":"abc"}` || s.Status != hub.SessionOpen || s.Dispatch != first {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := set(q, `{}`); !hub.IsCode(err, hub.CodeSessionNotFound) {
		t.Errorf("another worker sets it: %v", err)
	}
	if _, err := set(p, `"`+strings.Repeat("x", hub.MaxBackendCtxBytes)+`"`); !hub.IsCode(err, hub.CodeTooLarge) {
		t.Errorf("more than 64 KiB: %v", err)
	}
	if _, err := w.send(p, report(task, first, hub.OutcomeFailed, "no")); err != nil {
		t.Fatal(err)
	}
	show := func(p hub.Principal) hub.Session {
		s, err := w.dispatch.Session(context.Background(), p, "w1--t1")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := show(operator()); s.Status != hub.SessionClosed || string(s.BackendCtx) != `{"id":"abc"}` {
		t.Errorf("after the end it is %+v", s)
	}
	second, err := w.give(other, task, first, "w1--t1")
	if err != nil {
		t.Fatal(err)
	}
	if s := show(q); s.Status != hub.SessionOpen || s.BackendCtx != nil || s.Dispatch != second || s.Worker != other.ID {
		t.Errorf("the retry begins with %+v", s)
	}
	if _, err := w.dispatch.Session(context.Background(), p, "w1--t1"); !hub.IsCode(err, hub.CodeSessionNotFound) {
		t.Errorf("the former worker reads it: %v", err)
	}
}

// A redelivery after the hub was killed keeps the message, and what the worker has
// is told with its payload.
func TestAttachedAssignmentsAreTold(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	one, p := w.register("w-1")
	a, b := w.given(one, w.newTask(r)), w.given(one, w.newTask(r))
	w.view(func(rx store.Rx) error {
		own, next, err := dispatch.Assigned(rx, one.ID, 0, 1)
		if err != nil || len(own) != 1 || own[0].Dispatch != a || own[0].Handed || next == 0 {
			t.Errorf("first page %+v, %d, %v", own, next, err)
		}
		rest, next, err := dispatch.Assigned(rx, one.ID, next, 10)
		var s hub.SessionStart
		if err != nil || len(rest) != 1 || next != 0 || json.Unmarshal(rest[0].Start, &s) != nil || s.Dispatch != b {
			t.Errorf("second page %+v, %d, %v", rest, next, err)
		}
		return nil
	})
	w.take(p)
	w.view(func(rx store.Rx) error {
		own, _, err := dispatch.Assigned(rx, one.ID, 0, 10)
		if err != nil || len(own) != 2 || !own[0].Handed || !own[1].TakenUp {
			t.Errorf("%+v, %v", own, err)
		}
		return nil
	})
}

// At a peer the same mail flows: guidance and fences from home, take-up and reports
// to it, session_close when the home's verdict is known.
func TestAttachedAtAPeer(t *testing.T) {
	p := newPair(t)
	r, consumer := p.home.newRun()
	one, worker := p.owner.register("w-1")
	begin := func() (hub.TaskID, hub.DispatchID) {
		task, id := p.home.newTask(r), hub.NewDispatchID()
		p.home.update(func(tx store.Tx) error {
			_, err := dispatch.Begin(tx, dispatch.Attempt{
				ID: id, Task: task, Server: hub.Server{PeerID: p.ownerAtHome, Name: "other"}, PeerRequest: []byte("{}"),
				Pin: hub.Pin{Lineage: "hub_" + p.owner.id, StoreID: p.owner.id, Epoch: 1},
			})
			return err
		})
		p.owner.update(func(tx store.Tx) error {
			a, start := startOf(one, id, task, r, p.homeAtOwner, string(id))
			return dispatch.AttachWorker(tx, a, start)
		})
		return task, id
	}
	task, id := begin()
	p.owner.take(worker)
	p.ackOwner(p.importHome(p.outbox()).Acks)
	if _, d := p.home.states(task, id); d.State != hub.Ready {
		t.Errorf("taken up at the owner, at home it is %s", d.State)
	}
	if _, err := p.home.send(consumer, dispatch.SendInput{To: id.Box(), Type: hub.TypeGuidance, Body: "hint"}); err != nil {
		t.Fatal(err)
	}
	p.toOwner()
	if b := p.owner.take(worker); kindsOf(b) != "guidance" || b.Messages[0].To != id.Box() {
		t.Errorf("over the relay came %+v", b.Messages)
	}
	if sent, err := p.owner.send(worker, report(task, id, hub.OutcomeSucceeded, "done")); err != nil || sent.State != dispatch.SentQueued {
		t.Fatalf("%+v, %v", sent, err)
	}
	p.ackOwner(p.importHome(p.outbox()).Acks)
	if _, d := p.home.states(task, id); d.State != hub.Succeeded {
		t.Errorf("reported, at home it is %s", d.State)
	}
	if b := p.owner.take(worker); kindsOf(b) != "session_close" {
		t.Errorf("after the verdict came %q", kindsOf(b))
	}
	task, id = begin()
	p.owner.take(worker)
	p.home.fence(id)
	p.toOwner()
	if b := p.owner.take(worker); kindsOf(b) != "control" {
		t.Errorf("after the fence came %q", kindsOf(b))
	}
	if _, err := p.owner.send(worker, report(task, id, hub.OutcomeCancelled, "gave up")); err != nil {
		t.Fatal(err)
	}
	p.ackOwner(p.importHome(p.outbox()).Acks)
	if _, d := p.home.states(task, id); d.State != hub.Stopped || d.Reason != "" {
		t.Errorf("cancelled, at home it is %s (%s)", d.State, d.Reason)
	}
	if b := p.owner.take(worker); kindsOf(b) != "session_close" {
		t.Errorf("after the stop came %q", kindsOf(b))
	}
}
