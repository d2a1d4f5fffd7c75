package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

// inboxModel is what a mailbox and its consumers should be.
type inboxModel struct {
	w    *world
	run  hub.RunID
	now  hub.Principal   // the present consumer
	olds []hub.Principal // fenced ones

	sent  int // bodies are 0, 1, 2, …
	acked int
	batch hub.DeliveryID // outstanding
	size  int
	past  []hub.DeliveryID // acknowledged in the present generation
}

func (m *inboxModel) send(t *rapid.T) {
	for range rapid.IntRange(1, 70).Draw(t, "messages") {
		in := dispatch.SendInput{To: m.run.Box(), Type: hub.TypeStatus, Body: fmt.Sprint(m.sent)}
		if _, err := m.w.send(operator(), in); err != nil {
			t.Fatal(err)
		}
		m.sent++
	}
}

// check takes a batch, with or without an ack of the outstanding one.
func (m *inboxModel) check(t *rapid.T) {
	in := mail.CheckInput{Box: m.run.Box(), Limit: rapid.IntRange(0, hub.MaxBatch).Draw(t, "limit")}
	if m.batch != "" && rapid.Bool().Draw(t, "ack") {
		in.Ack = m.batch
		m.acked, m.past, m.batch = m.acked+m.size, append(m.past, m.batch), ""
	}
	got, err := m.w.check(m.now, in)
	if err != nil {
		t.Fatal(err)
	}
	m.compare(t, got, in)
}

func (m *inboxModel) compare(t *rapid.T, got mail.Batch, in mail.CheckInput) {
	want := min(m.sent-m.acked, hub.MaxBatch)
	if in.Limit > 0 {
		want = min(want, in.Limit)
	}
	if m.batch != "" {
		want = m.size
	}
	if len(got.Messages) != want || (got.Delivery == "") != (want == 0) || got.Replayed != (m.batch != "") {
		t.Fatalf("%d messages (%s, replayed %v), want %d", len(got.Messages), got.Delivery, got.Replayed, want)
	}
	if m.batch != "" && got.Delivery != m.batch {
		t.Fatalf("the outstanding batch is %s, was %s", got.Delivery, m.batch)
	}
	for i, msg := range got.Messages {
		if msg.Body != fmt.Sprint(m.acked+i) {
			t.Fatalf("message %s where %d is due", msg.Body, m.acked+i)
		}
	}
	if want > 0 && got.WaitingBehind != int64(m.sent-m.acked-want) {
		t.Fatalf("%d wait behind, want %d", got.WaitingBehind, m.sent-m.acked-want)
	}
	m.batch, m.size = got.Delivery, want
}

// ackAgain repeats an old ack: it consumes nothing.
func (m *inboxModel) ackAgain(t *rapid.T) {
	if len(m.past) == 0 {
		t.Skip("nothing was acknowledged")
	}
	in := mail.CheckInput{Box: m.run.Box(), Ack: rapid.SampledFrom(m.past).Draw(t, "past")}
	got, err := m.w.check(m.now, in)
	if err != nil || got.Acknowledged != in.Ack {
		t.Fatalf("%+v %v", got, err)
	}
	m.compare(t, got, in)
}

func (m *inboxModel) use(*rapid.T) {
	m.olds = append(m.olds, m.now)
	m.now = m.w.use(m.run)
	m.batch, m.past = "", nil
}

// former consumers get nothing and consume nothing.
func (m *inboxModel) former(t *rapid.T) {
	if len(m.olds) == 0 {
		t.Skip("nobody was fenced")
	}
	in := mail.CheckInput{Box: m.run.Box(), Ack: m.batch}
	if _, err := m.w.check(rapid.SampledFrom(m.olds).Draw(t, "old"), in); !hub.IsCode(err, hub.CodeConsumerFenced) {
		t.Fatalf("a former consumer: %v", err)
	}
}

// TestModel_Inbox: whatever senders, consumers and rebinds do, the inbox is a
// queue of which each message is delivered in order until it is acknowledged.
// Invariants 1, 2 and 3 of package mail.
func TestModel_Inbox(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &inboxModel{w: w}
		m.run, m.now = w.newRun()
		t.Repeat(map[string]func(*rapid.T){
			"send": m.send, "check": m.check, "ackAgain": m.ackAgain, "use": m.use, "former": m.former,
		})
	})
}

// taskModel follows one Task through its attempts.
type taskModel struct {
	w     *world
	run   hub.RunID
	task  hub.TaskID
	d     hub.DispatchID // the latest
	state hub.DispatchState
	dones int // worker_done messages that are due
	sum   string
}

func (m *taskModel) start(t *rapid.T) {
	id := hub.NewDispatchID()
	err := m.w.store.Update(context.Background(), store.New, func(tx store.Tx) error {
		d, err := dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: m.task, RetryOf: m.d})
		if err != nil {
			return err
		}
		a := hub.Attachment{Dispatch: id, Task: m.task, Run: d.Run, Capability: hub.CapActive, Completion: "report"}
		return errors.Join(dispatch.Attach(tx, a, "cap-"+string(id)))
	})
	may := m.d == "" || m.state.Replaceable()
	if (err == nil) != may || err != nil && !hub.IsCode(err, hub.CodeTaskNotStartable) {
		t.Fatalf("a start in %q: %v", m.state, err)
	}
	if err == nil {
		m.d, m.state, m.sum = id, hub.Starting, ""
	}
}

// event applies e through fn and compares what became of it.
func (m *taskModel) event(t *rapid.T, e hub.Event, fn func(store.Tx) error) {
	if m.d == "" {
		t.Skip("never started")
	}
	if err := m.w.store.Update(context.Background(), store.Settle, fn); err != nil {
		t.Fatal(err)
	}
	m.follow(e)
}

// follow is the contract's table, by the pure function.
func (m *taskModel) follow(e hub.Event) {
	old := m.state
	d, changed, _ := hub.Apply(hub.Dispatch{State: m.state, ReportSum: m.sum}, e)
	m.state, m.sum = d.State, d.ReportSum
	settled := changed && (e.Kind == hub.EvReport || m.state == hub.Failed)
	if settled || changed && m.state == hub.Stopped && old == hub.StopUnknown && e.Kind != hub.EvReport {
		m.dones++
	}
}

func (m *taskModel) report(t *rapid.T) {
	if m.d == "" {
		t.Skip("never started")
	}
	o := rapid.SampledFrom([]hub.Outcome{hub.OutcomeSucceeded, hub.OutcomeFailed, hub.OutcomeCancelled}).Draw(t, "outcome")
	in := report(m.task, m.d, o, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "body"))
	sent, err := m.w.send(worker(m.d), in)
	if hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
		return
	}
	_, _, want := hub.Apply(hub.Dispatch{State: m.state, ReportSum: m.sum}, hub.Event{Kind: hub.EvReport, Outcome: o, Sum: in.Report.Sum(in.Body)})
	if err != nil || sent.Verdict != want {
		t.Fatalf("%s in %s: verdict %q (%v), want %q", o, m.state, sent.Verdict, err, want)
	}
	m.follow(hub.Event{Kind: hub.EvReport, Outcome: o, Sum: in.Report.Sum(in.Body)})
}

func (m *taskModel) actions() map[string]func(*rapid.T) {
	endStart := func(k hub.EventKind) func(*rapid.T) {
		return func(t *rapid.T) {
			m.event(t, hub.Event{Kind: k}, func(tx store.Tx) error {
				_, err := dispatch.EndStart(tx, m.d, dispatch.Start{Event: k})
				return err
			})
		}
	}
	endStop := func(proved bool, k hub.EventKind) func(*rapid.T) {
		return func(t *rapid.T) {
			m.event(t, hub.Event{Kind: k}, func(tx store.Tx) error {
				_, err := dispatch.EndStop(tx, m.d, hub.StopEvidence{Proved: proved})
				return err
			})
		}
	}
	return map[string]func(*rapid.T){
		"start": m.start, "report": m.report,
		"started": endStart(hub.EvStarted), "start fails": endStart(hub.EvStartFailed), "start lost": endStart(hub.EvStartLost),
		"stopped": endStop(true, hub.EvStopProved), "stop lost": endStop(false, hub.EvStopLost),
		"stop": func(t *rapid.T) {
			m.event(t, hub.Event{Kind: hub.EvStop}, func(tx store.Tx) error {
				_, _, err := dispatch.Fence(tx, m.d, hub.FenceItem{})
				return err
			})
		},
		"abandon": func(t *rapid.T) {
			m.event(t, hub.Event{Kind: hub.EvAbandon}, func(tx store.Tx) error {
				_, _, err := dispatch.Abandon(tx, m.d)
				return err
			})
		},
		"": m.invariants,
	}
}

// invariants hold after every step.
func (m *taskModel) invariants(t *rapid.T) {
	if m.d == "" {
		return
	}
	task, d := m.w.states(m.task, m.d)
	if d.State != m.state || task.State != hub.TaskStateFor(m.state) || task.Latest != m.d {
		t.Fatalf("Dispatch %s (want %s), Task %s, latest %s", d.State, m.state, task.State, task.Latest)
	}
	dones := 0
	for _, msg := range m.w.inbox(m.run) {
		if msg.Type == hub.TypeWorkerDone && !msg.Stale {
			dones++
		}
	}
	if dones != m.dones {
		t.Fatalf("%d worker_done in the inbox, want %d", dones, m.dones)
	}
}

// TestModel_TaskAndDispatch: the use-cases follow the table in every order of
// events, a Task follows its latest Dispatch, and each end that no call
// answered is mailed once.
// Invariants 1, 2 and 4.
func TestModel_TaskAndDispatch(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &taskModel{w: w}
		m.run, _ = w.newRun()
		m.task = w.newTask(m.run)
		t.Repeat(m.actions())
	})
}
