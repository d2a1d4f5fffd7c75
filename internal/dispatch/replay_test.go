package dispatch_test

import (
	"context"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// waited is a finished wait that brought a batch, as a request to repeat.
func (w *world) waited(r hub.RunID, consumer hub.Principal) (receipt.Request, mail.CheckInput, mail.Batch) {
	w.t.Helper()
	in := mail.CheckInput{Box: r.Box(), WaitMS: 60_000}
	q := w.request(consumer, "mailbox.check", in)
	b, err := w.mail.Check(context.Background(), q, in)
	if err != nil {
		w.t.Fatal(err)
	}
	return q, in, b
}

// A finished wait is a record: it is read again while another call waits, and
// by the consumer that it was given to also after that one has been fenced.
// Invariant 10 of package mail.
func TestAFinishedWaitIsReadAgain(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	w.fill(r, 2)
	q, in, b := w.waited(r, consumer)
	if _, err := w.check(consumer, mail.CheckInput{Box: r.Box(), Ack: b.Delivery}); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		_, err := w.mail.Check(gone, w.request(consumer, "mailbox.check", "another"), in)
		left <- err
	}()
	w.untilWaits(r)
	again := func(p hub.Principal) (mail.Batch, error) {
		q := q
		q.Principal = p
		return w.mail.Check(context.Background(), q, in)
	}
	if got, err := again(consumer); err != nil || !got.Mutation.Replayed || got.Delivery != b.Delivery || len(got.Messages) != 2 {
		t.Errorf("beside a waiter: %+v %v", got, err)
	}
	leave()
	<-left
	now := w.use(r)
	if got, err := again(consumer); err != nil || got.Delivery != b.Delivery {
		t.Errorf("by the fenced consumer that it was given to: %+v %v", got, err)
	}
	for name, p := range map[string]hub.Principal{"the present consumer": now, "an operator": operator()} {
		if got, err := again(p); !hub.IsCode(err, hub.CodeConsumerFenced) || len(got.Messages) > 0 {
			t.Errorf("by %s: %+v %v", name, got, err)
		}
	}
}

// An equal request joins a wait that is under way only as the same consumer.
func TestOnlyTheSameConsumerJoinsAWait(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	in := mail.CheckInput{Box: r.Box(), WaitMS: 60_000}
	q := w.request(consumer, "mailbox.check", in)
	got := make(chan error, 2)
	call := func(p hub.Principal) {
		q := q
		q.Principal = p
		_, err := w.mail.Check(context.Background(), q, in)
		got <- err
	}
	go call(consumer)
	w.untilWaits(r)
	go call(operator())
	w.fill(r, 1)
	first, second := <-got, <-got
	if first == nil {
		first, second = second, first
	}
	if !hub.IsCode(first, hub.CodeConsumerFenced) && !hub.IsCode(first, hub.CodeConsumerRequired) || second != nil {
		t.Errorf("the consumer and an operator: %v and %v", second, first)
	}
}

// A recorded reply is shown to the generation that made it only.
func TestAReplyIsReplayedToItsConsumer(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	d := w.begin(w.newTask(r))
	sent, err := w.send(worker(d), status("hello"))
	if err != nil {
		t.Fatal(err)
	}
	in := dispatch.ReplyInput{Message: sent.Message, Body: "go on"}
	q := w.request(consumer, "message.reply", in)
	reply := func(p hub.Principal) (dispatch.Sent, error) {
		q := q
		q.Principal = p
		return w.dispatch.Reply(context.Background(), q, in)
	}
	first, err := reply(consumer)
	if err != nil {
		t.Fatal(err)
	}
	now := w.use(r)
	if again, err := reply(consumer); err != nil || again.Message != first.Message || !again.Mutation.Replayed {
		t.Errorf("by the fenced consumer that made it: %+v %v", again, err)
	}
	for name, p := range map[string]hub.Principal{"the present consumer": now, "an operator": operator()} {
		if got, err := reply(p); !hub.IsCode(err, hub.CodeConsumerFenced) || got.Message != "" {
			t.Errorf("by %s: %+v %v", name, got, err)
		}
	}
}

// A Run whose terminal took another one has no consumer: the token of the
// generation that it keeps proves nothing, and is not handed out again.
func TestAReleasedRunHasNoConsumer(t *testing.T) {
	w := newWorld(t)
	p := operator()
	p.Context = "tty:1"
	key := hub.NewRequestID()
	create := func(key hub.RequestID, in run.CreateInput) run.Bound {
		q, err := receipt.New(p, key, "run.create", in)
		if err != nil {
			t.Fatal(err)
		}
		b, err := w.runs.Create(context.Background(), q, in)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	in := run.CreateInput{Objective: "first", Context: p.Context}
	first := create(key, in)
	consumer := operator()
	consumer.Consumer = hub.ConsumerProof{Run: first.Run.ID, Generation: 1}
	create(hub.NewRequestID(), run.CreateInput{Objective: "second", Context: p.Context, Bind: run.BindRebind})
	if b, err := w.check(consumer, mail.CheckInput{Box: first.Run.ID.Box()}); !hub.IsCode(err, hub.CodeConsumerRequired) {
		t.Errorf("its token receives %+v %v", b, err)
	}
	if again := create(key, in); !again.Mutation.Replayed || again.Binding.Token != "" || again.Run.Generation != 1 {
		t.Errorf("the record: %+v, binding %+v", again, again.Binding)
	}
	rows := w.audits(first.Run.ID)
	if len(rows) != 3 || rows[0].Action != "released" || rows[0].Context != p.Context || rows[0].Principal != "operator" || rows[0].At == 0 {
		t.Errorf("audit rows %+v", rows)
	}
	b, err := w.runs.Use(context.Background(), w.request(operator(), "run.use", nil), first.Run.ID, "")
	if err != nil || b.Run.Generation != 2 || b.Binding.Token == "" {
		t.Errorf("it can be used again: %+v %v", b, err)
	}
	if _, err := w.check(consumer, mail.CheckInput{Box: first.Run.ID.Box()}); !hub.IsCode(err, hub.CodeConsumerFenced) {
		t.Errorf("its former token, when somebody has taken over: %v", err)
	}
}

func (w *world) audits(r hub.RunID) (rows []hub.Audit) {
	w.t.Helper()
	w.view(func(rx store.Rx) (err error) {
		rows, err = rx.Audits(r, 10)
		return err
	})
	return rows
}
