package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// fill puts n messages into the Run's mailbox.
func (w *world) fill(r hub.RunID, n int) {
	w.t.Helper()
	for i := range n {
		if _, err := w.send(operator(), dispatch.SendInput{To: r.Box(), Type: hub.TypeStatus, Subject: "s", Body: fmt.Sprint(i)}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) use(r hub.RunID) hub.Principal {
	w.t.Helper()
	b, err := w.runs.Use(context.Background(), w.request(operator(), "run.use", hub.NewRequestID()), r, "")
	if err != nil {
		w.t.Fatal(err)
	}
	p := operator()
	p.Consumer = hub.ConsumerProof{Run: r, Generation: b.Run.Generation}
	return p
}

func TestAcceptance_I01_I02_BatchesUntilAcknowledged(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	w.fill(r, 60)
	first, err := w.check(consumer, mail.CheckInput{Box: r.Box()})
	if err != nil || len(first.Messages) != 50 || first.Replayed || first.WaitingBehind != 10 {
		t.Fatalf("%d messages, %d behind, %v", len(first.Messages), first.WaitingBehind, err)
	}
	w.fill(r, 1)
	again, err := w.check(consumer, mail.CheckInput{Box: r.Box(), Limit: 1, Types: []hub.MessageType{hub.TypeQuestion}})
	if err != nil || again.Delivery != first.Delivery || len(again.Messages) != 50 || !again.Replayed || again.WaitingBehind != 11 {
		t.Fatalf("%+v %v", again.Delivery, err)
	}
	for range 2 { // the second ack consumes nothing newer
		next, err := w.check(consumer, mail.CheckInput{Box: r.Box(), Ack: first.Delivery})
		if err != nil || next.Acknowledged != first.Delivery || len(next.Messages) != 11 || next.Messages[0].Body != "50" {
			t.Fatalf("%d messages after the ack, %v", len(next.Messages), err)
		}
	}
}

func TestAcceptance_I03_ForeignAcks(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	other, otherConsumer := w.newRun()
	w.fill(r, 1)
	w.fill(other, 1)
	b, err := w.check(otherConsumer, mail.CheckInput{Box: other.Box()})
	if err != nil {
		t.Fatal(err)
	}
	for ack, want := range map[hub.DeliveryID]hub.Code{
		b.Delivery:          hub.CodeStaleDelivery,
		hub.NewDeliveryID(): hub.CodeStaleDelivery,
		"delivery_x":        hub.CodeInvalidArgument,
	} {
		if _, err := w.check(consumer, mail.CheckInput{Box: r.Box(), Ack: ack}); !hub.IsCode(err, want) {
			t.Errorf("ack %s: %v", ack, err)
		}
	}
	if got, err := w.check(consumer, mail.CheckInput{Box: r.Box()}); err != nil || len(got.Messages) != 1 {
		t.Errorf("something was consumed: %+v %v", got, err)
	}
}

func TestAcceptance_R03_R04_R05_UseFencesTheFormerConsumer(t *testing.T) {
	w := newWorld(t)
	r, old := w.newRun()
	w.fill(r, 2)
	b, err := w.check(old, mail.CheckInput{Box: r.Box()})
	if err != nil {
		t.Fatal(err)
	}
	fresh := w.use(r)
	if _, err := w.check(old, mail.CheckInput{Box: r.Box(), Ack: b.Delivery}); !hub.IsCode(err, hub.CodeConsumerFenced) {
		t.Errorf("a late ack: %v", err)
	}
	in := dispatch.ReplyInput{Message: b.Messages[0].ID, Body: "x"}
	if _, err := w.dispatch.Reply(context.Background(), w.request(old, "message.reply", in), in); !hub.IsCode(err, hub.CodeConsumerFenced) {
		t.Errorf("a late reply: %v", err)
	}
	if _, err := w.runs.CreateTask(context.Background(), w.request(old, "task.create", "t"), r, hub.Task{Spec: "x"}); err != nil {
		t.Errorf("the former consumer's task: %v", err)
	}
	got, err := w.check(fresh, mail.CheckInput{Box: r.Box()})
	if err != nil || got.Delivery == b.Delivery || len(got.Messages) != 2 || got.Messages[0].ID != b.Messages[0].ID || got.Replayed {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := w.check(fresh, mail.CheckInput{Box: r.Box(), Ack: b.Delivery}); !hub.IsCode(err, hub.CodeStaleDelivery) {
		t.Errorf("the former batch: %v", err)
	}
}

func TestUseWakesTheWaiterWithoutData(t *testing.T) {
	w := newWorld(t)
	r, old := w.newRun()
	ended := make(chan error, 1)
	go func() {
		_, err := w.check(old, mail.CheckInput{Box: r.Box(), WaitMS: 10_000})
		ended <- err
	}()
	w.untilWaits(r)
	fresh := w.use(r)
	if err := <-ended; !hub.IsCode(err, hub.CodeConsumerFenced) {
		t.Errorf("the former waiter: %v", err)
	}
	w.fill(r, 1)
	if b, err := w.check(fresh, mail.CheckInput{Box: r.Box(), WaitMS: 10_000}); err != nil || len(b.Messages) != 1 {
		t.Errorf("the new consumer: %+v %v", b, err)
	}
}

// untilWaits returns when the next waiter of the Run's mailbox is registered.
func (w *world) untilWaits(r hub.RunID) {
	w.t.Helper()
	w.untilWaitsOn(string(r.Box()))
}

// untilWaitsOn returns when the next waiter on the key is registered.
func (w *world) untilWaitsOn(key string) {
	w.t.Helper()
	limit := time.After(10 * time.Second)
	for {
		select {
		case got := <-w.waiting:
			if got == key {
				return
			}
		case <-limit:
			w.t.Fatal("nobody waits")
		}
	}
}

// forgetWaits drops what is known of waiters that have come and gone.
func (w *world) forgetWaits() {
	for len(w.waiting) > 0 {
		<-w.waiting
	}
}

// Invariants 4 and 5 of package mail.
func TestAcceptance_I05_I06_OneWaiter(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	got := make(chan mail.Batch, 1)
	go func() {
		b, err := w.check(consumer, mail.CheckInput{Box: r.Box(), WaitMS: 10_000})
		if err != nil {
			t.Error(err)
		}
		got <- b
	}()
	w.untilWaits(r)
	if _, err := w.check(consumer, mail.CheckInput{Box: r.Box(), WaitMS: 10_000}); !hub.IsCode(err, hub.CodeWaiterExists) {
		t.Errorf("a second waiter: %v", err)
	}
	w.fill(r, 1)
	if b := <-got; len(b.Messages) != 1 {
		t.Fatalf("the first waiter got %+v", b)
	}
	other, alone := w.newRun()
	b, err := w.check(alone, mail.CheckInput{Box: other.Box(), WaitMS: 20})
	if err != nil || !b.TimedOut || b.Delivery != "" {
		t.Fatalf("%+v %v", b, err)
	}
	gone, leave := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		in := mail.CheckInput{Box: other.Box(), WaitMS: 10_000}
		_, err := w.mail.Check(gone, w.request(alone, "mailbox.check", in), in)
		left <- err
	}()
	w.untilWaits(other)
	leave()
	<-left
	if b, err := w.check(alone, mail.CheckInput{Box: other.Box(), WaitMS: 20}); err != nil || !b.TimedOut {
		t.Fatalf("the waiter outlived its caller: %+v %v", b, err)
	}
}

func TestAcceptance_I07_I08_AckAndWaitIsOneRequest(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	w.fill(r, 1)
	b, err := w.check(consumer, mail.CheckInput{Box: r.Box()})
	if err != nil {
		t.Fatal(err)
	}
	in := mail.CheckInput{Box: r.Box(), Ack: b.Delivery, WaitMS: 10_000}
	req := w.request(consumer, "mailbox.check", in)
	gone, leave := context.WithCancel(context.Background())
	cut := make(chan error, 1)
	go func() {
		_, err := w.mail.Check(gone, req, in)
		cut <- err
	}()
	w.untilWaits(r)
	leave()
	if err := <-cut; err == nil {
		t.Fatal("the wait was not cut")
	}
	var all sync.WaitGroup
	for range 5 { // the same request again, from several callers at once
		all.Go(func() {
			got, err := w.mail.Check(context.Background(), req, in)
			if err != nil || got.Acknowledged != b.Delivery || len(got.Messages) != 1 || got.Messages[0].Body != "0" {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
	w.untilWaits(r)
	w.fill(r, 1)
	all.Wait()
}

// Invariant 6 of package mail.
func TestTypesDecideWhenToWakeOnly(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	w.fill(r, 2)
	in := mail.CheckInput{Box: r.Box(), WaitMS: 30, Types: []hub.MessageType{hub.TypeEscalation}}
	if b, err := w.check(consumer, in); err != nil || !b.TimedOut {
		t.Fatalf("%+v %v", b, err)
	}
	if _, err := w.send(operator(), dispatch.SendInput{To: r.Box(), Type: hub.TypeEscalation, Body: "now"}); err != nil {
		t.Fatal(err)
	}
	if b, err := w.check(consumer, in); err != nil || len(b.Messages) != 3 {
		t.Fatalf("%+v %v", b, err)
	}
}

func TestAcceptance_I11_BatchBytes(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	body := strings.Repeat("x", hub.MaxBodyBytes)
	for range 20 {
		if _, err := w.send(operator(), dispatch.SendInput{To: r.Box(), Type: hub.TypeStatus, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := w.check(consumer, mail.CheckInput{Box: r.Box()})
	if err != nil || len(b.Messages) != 16 {
		t.Fatalf("%d messages of 64 KiB in a batch, %v", len(b.Messages), err)
	}
}

func TestAcceptance_R01_R06_Contexts(t *testing.T) {
	w := newWorld(t)
	p := operator()
	p.Context = "tty:1"
	create := func(bind string) (run.Bound, error) {
		in := run.CreateInput{Objective: "o", Bind: bind, Context: p.Context}
		return w.runs.Create(context.Background(), w.request(p, "run.create", hub.NewRequestID()), in)
	}
	first, err := create("")
	if err != nil || first.Run.Generation != 1 || first.Binding.Token == "" {
		t.Fatalf("%+v %v", first, err)
	}
	if _, err := create(""); !hub.IsCode(err, hub.CodeAlreadyBound) {
		t.Fatalf("a second create: %v", err)
	}
	none, err := create(run.BindNone)
	if err != nil || none.Run.Generation != 0 || none.Binding != nil {
		t.Fatalf("%+v %v", none, err)
	}
	w.fill(first.Run.ID, 1)
	second, err := create(run.BindRebind)
	if err != nil {
		t.Fatal(err)
	}
	w.fill(second.Run.ID, 2)
	if b, err := w.check(p, mail.CheckInput{Box: second.Run.ID.Box()}); err != nil || len(b.Messages) != 2 {
		t.Errorf("the second Run: %+v %v", b, err)
	}
	if _, err := w.check(p, mail.CheckInput{Box: first.Run.ID.Box()}); !hub.IsCode(err, hub.CodeConsumerRequired) {
		t.Errorf("the released Run: %v", err)
	}
}

func TestAcceptance_R10_ChildRunsNestThreeDeep(t *testing.T) {
	w := newWorld(t)
	parent, _ := w.newRun()
	for depth := 1; depth <= hub.MaxRunDepth+1; depth++ {
		in := run.CreateInput{Objective: "child", Parent: parent}
		b, err := w.runs.Create(context.Background(), w.request(operator(), "run.create", hub.NewRequestID()), in)
		if depth > hub.MaxRunDepth {
			if !hub.IsCode(err, hub.CodeInvalidArgument) {
				t.Errorf("depth %d: %v", depth, err)
			}
			return
		}
		if err != nil || b.Run.Parent != parent || b.Run.Depth != depth {
			t.Fatalf("depth %d: %+v %v", depth, b.Run, err)
		}
		parent = b.Run.ID
	}
}

func TestAcceptance_L14_UpdateUnlocksAndRefuses(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	a := w.newTask(r)
	b := w.newTask(r, a)
	update := func(in run.UpdateInput) (hub.Task, error) {
		c, err := w.runs.UpdateTask(context.Background(), w.request(operator(), "task.update", hub.NewRequestID()), in)
		return c.Task, err
	}
	id := w.begin(a)
	if _, err := update(run.UpdateInput{Task: a, Change: hub.TaskChange{State: hub.TaskCompleted}}); !hub.IsCode(err, hub.CodeTaskStateInvalid) {
		t.Errorf("a final state beside a live Dispatch: %v", err)
	}
	if _, err := w.send(worker(id), report(a, id, hub.OutcomeFailed, "no")); err != nil {
		t.Fatal(err)
	}
	failed, _ := w.states(a, id)
	if _, err := update(run.UpdateInput{Task: a, IfMatch: `"v0"`, Change: hub.TaskChange{Title: "x"}}); !hub.IsCode(err, hub.CodePreconditionFailed) {
		t.Errorf("another version: %v", err)
	}
	got, err := update(run.UpdateInput{Task: a, IfMatch: run.ETag(failed), Change: hub.TaskChange{Title: "by hand", State: hub.TaskCompleted}})
	if err != nil || got.State != hub.TaskCompleted || got.Title != "by hand" || got.Spec == "" {
		t.Fatalf("%+v %v", got, err)
	}
	w.view(func(rx store.Rx) error {
		st, err := rx.TaskState(b)
		if st != hub.TaskReady {
			t.Errorf("its dependent is %s", st)
		}
		return err
	})
}

// Invariant 7 of mail.
func TestACheckWithoutEffectStoresNothing(t *testing.T) {
	w := newWorld(t)
	r, c := w.newRun()
	recorded := func() (found bool) {
		in := mail.CheckInput{Box: r.Box()}
		req := w.request(c, "mailbox.check", in)
		if _, err := w.mail.Check(context.Background(), req, in); err != nil {
			t.Fatal(err)
		}
		w.view(func(rx store.Rx) (err error) {
			_, found, err = rx.Receipt(req.Principal.Space(), req.Key)
			return err
		})
		return found
	}
	if recorded() {
		t.Error("a check of an empty mailbox is on record")
	}
	id := w.begin(w.newTask(r))
	if _, err := w.send(worker(id), status("x")); err != nil {
		t.Fatal(err)
	}
	for _, batch := range []string{"new", "outstanding"} {
		if !recorded() {
			t.Errorf("a check that returned the %s batch is not on record", batch)
		}
	}
}
