package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// desk is a hub's use-cases without outside effects, over one view of the store.
type desk struct {
	runs     *run.Service
	mail     *mail.Service
	dispatch *dispatch.Service
	work     interface {
		Abandon(context.Context, receipt.Request, hub.DispatchID) (hub.StopResult, error)
	}
}

func (m *machine) deskOf(st store.Store) desk {
	return desk{
		runs:     &run.Service{Store: st, Tokens: deskTokens{}},
		mail:     &mail.Service{Store: st, Access: dispatch.Access{}, Bus: m.bus, Draining: make(chan struct{})},
		dispatch: &dispatch.Service{Store: st},
		work:     m.hubOf(st),
	}
}

type deskTokens struct{}

func (deskTokens) Consumer(r hub.RunID, g int64) string {
	return keystore.DeriveToken([]byte("k"), "whc_", "consumer", string(r), g)
}
func (deskTokens) Sum(s string) string { return keystore.TokenSum(s) }

// scene is what the mutations are made on: a Run with its consumer, a Task that
// nobody works at, one with a worker, and a batch that was delivered.
type scene struct {
	run        hub.RunID
	idle, task hub.TaskID
	dispatch   hub.DispatchID
	delivery   hub.DeliveryID
	message    hub.MessageID // of the worker, in the batch
	consumer   hub.Principal
	worker     hub.Principal
}

func (m *machine) newScene(t *testing.T) scene {
	t.Helper()
	d, ctx := m.deskOf(m.store), t.Context()
	b, err := d.runs.Create(ctx, deskRequest(t, operator, "run.create"), run.CreateInput{Objective: "o"})
	if err != nil {
		t.Fatal(err)
	}
	s := scene{run: b.Run.ID, consumer: operator}
	s.consumer.Consumer = hub.ConsumerProof{Run: s.run, Generation: 1}
	for _, id := range []*hub.TaskID{&s.idle, &s.task} {
		c, err := d.runs.CreateTask(ctx, deskRequest(t, operator, "task.create"), s.run, hub.Task{Spec: "true"})
		if err != nil {
			t.Fatal(err)
		}
		*id = c.Task.ID
	}
	s.dispatch = hub.NewDispatchID()
	s.worker = hub.Principal{Kind: hub.DispatchCap, ID: string(s.dispatch), Credential: "cap-" + string(s.dispatch)}
	if err := m.store.Update(ctx, store.New, s.begin); err != nil {
		t.Fatal(err)
	}
	sent, err := d.dispatch.Send(ctx, deskRequest(t, s.worker, "message.send"), dispatch.SendInput{Type: hub.TypeStatus, Body: "first"})
	if err != nil {
		t.Fatal(err)
	}
	s.message = sent.Message
	got, err := d.mail.Check(ctx, deskRequest(t, s.consumer, "mailbox.check"), mail.CheckInput{Box: s.run.Box()})
	if err != nil || got.Delivery == "" {
		t.Fatalf("%+v %v", got, err)
	}
	s.delivery = got.Delivery
	return s
}

func (s scene) begin(tx store.Tx) error {
	if _, err := dispatch.Begin(tx, dispatch.Attempt{ID: s.dispatch, Task: s.task, Request: hub.NewRequestID()}); err != nil {
		return err
	}
	a := hub.Attachment{Dispatch: s.dispatch, Task: s.task, Run: s.run, Capability: hub.CapActive, Completion: "report", Spec: hub.StartSpec{MayCoordinate: true}, Terminal: "t"}
	if err := dispatch.Attach(tx, a, s.worker.Credential); err != nil {
		return err
	}
	_, err := dispatch.EndStart(tx, s.dispatch, dispatch.Start{Event: hub.EvStarted})
	return err
}

func deskRequest(t *testing.T, p hub.Principal, op string) receipt.Request {
	t.Helper()
	r, err := receipt.New(p, "", op, op)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mutation is one local mutation: who makes it, how, and how often its effect
// is in the store.
type mutation struct {
	by      func(scene) hub.Principal
	call    func(context.Context, desk, receipt.Request, scene) (any, error)
	effects func(store.Rx, scene) (int64, error)
}

func asOperator(scene) hub.Principal   { return operator }
func asConsumer(s scene) hub.Principal { return s.consumer }
func asWorker(s scene) hub.Principal   { return s.worker }

var mutations = map[string]mutation{
	"run create": {asOperator, func(ctx context.Context, d desk, r receipt.Request, _ scene) (any, error) {
		return d.runs.Create(ctx, r, run.CreateInput{Objective: "another"})
	}, func(rx store.Rx, _ scene) (int64, error) {
		rs, _, err := rx.RunList(store.Page{Limit: 50})
		return int64(len(rs)) - 1, err
	}},
	"run create by a worker": {asWorker, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		return d.runs.Create(ctx, r, run.CreateInput{Objective: "parts"})
	}, func(rx store.Rx, s scene) (int64, error) {
		rs, _, err := rx.RunList(store.Page{Limit: 50})
		if err != nil {
			return 0, err
		}
		a, _, err := rx.Attachment("", s.dispatch)
		b, bound, berr := rx.Binding("terminal:t")
		if whole := len(rs) == 2; err == nil && (whole != (a.Child != "") || whole != bound || a.Child != b.Run) {
			err = fmt.Errorf("%d Runs, the child of the worker is %q, its terminal bound to %q", len(rs), a.Child, b.Run)
		}
		return int64(len(rs)) - 1, errors.Join(err, berr)
	}},
	"run use": {asOperator, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		return d.runs.Use(ctx, r, s.run, "")
	}, func(rx store.Rx, s scene) (int64, error) {
		r, err := rx.Run(s.run)
		return r.Generation - 1, err
	}},
	"task create": {asOperator, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		return d.runs.CreateTask(ctx, r, s.run, hub.Task{Spec: "another"})
	}, func(rx store.Rx, s scene) (int64, error) {
		ts, _, err := rx.TaskList(s.run, "", store.Page{Limit: 50})
		return int64(len(ts)) - 2, err
	}},
	"task update": {asOperator, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		return d.runs.UpdateTask(ctx, r, run.UpdateInput{Task: s.idle, Change: hub.TaskChange{Title: "another"}})
	}, func(rx store.Rx, s scene) (int64, error) {
		t, err := rx.Task(s.idle)
		return t.Version - 1, err
	}},
	"send": {asWorker, func(ctx context.Context, d desk, r receipt.Request, _ scene) (any, error) {
		return d.dispatch.Send(ctx, r, dispatch.SendInput{Type: hub.TypeStatus, Body: "another"})
	}, moreMail},
	"ask": {asWorker, func(ctx context.Context, d desk, r receipt.Request, _ scene) (any, error) {
		return d.dispatch.Send(ctx, r, dispatch.SendInput{Type: hub.TypeQuestion, Body: "another?"})
	}, moreMail},
	"send a batch": {asOperator, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		one := dispatch.SendInput{To: s.run.Box(), Type: hub.TypeStatus, Body: "another"}
		return d.dispatch.SendBatch(ctx, r, []dispatch.SendInput{one, one, one})
	}, func(rx store.Rx, s scene) (int64, error) {
		n, err := moreMail(rx, s)
		if n%3 != 0 {
			return n, fmt.Errorf("%d messages of a batch of three", n)
		}
		return n / 3, err
	}},
	"report": {asWorker, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		return d.dispatch.Send(ctx, r, dispatch.SendInput{
			Type: hub.TypeWorkerDone, Body: "done", Report: hub.Report{Task: s.task, Dispatch: s.dispatch, Outcome: hub.OutcomeSucceeded},
		})
	}, settlements},
	"check with ack": {asConsumer, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		return d.mail.Check(ctx, r, mail.CheckInput{Box: s.run.Box(), Ack: s.delivery})
	}, func(rx store.Rx, s scene) (int64, error) {
		mb, err := rx.Mailbox(s.run.Box())
		return mb.Done, err
	}},
	"reply": {asConsumer, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		return d.dispatch.Reply(ctx, r, dispatch.ReplyInput{Message: s.message, Body: "go on"})
	}, func(rx store.Rx, s scene) (int64, error) {
		mb, err := rx.Mailbox(s.dispatch.Box())
		return mb.Seq, err
	}},
	"abandon": {asOperator, func(ctx context.Context, d desk, r receipt.Request, s scene) (any, error) {
		return d.work.Abandon(ctx, r, s.dispatch)
	}, func(rx store.Rx, s scene) (int64, error) {
		d, err := rx.Dispatch(s.dispatch)
		if d.State != hub.Abandoned {
			return 0, err
		}
		return d.Version - 2, err // begun, started, abandoned
	}},
}

// moreMail is how much mail the Run has beside the scene's.
func moreMail(rx store.Rx, s scene) (int64, error) {
	mb, err := rx.Mailbox(s.run.Box())
	return mb.Seq - 1, err
}

// settlements counts the mail of one settlement, if Dispatch and Task say the
// same.
func settlements(rx store.Rx, s scene) (int64, error) {
	n, err := moreMail(rx, s)
	d, err2 := rx.Dispatch(s.dispatch)
	t, err3 := rx.Task(s.task)
	if settled := d.State == hub.Succeeded; settled != (n > 0) || settled != (t.State == hub.TaskCompleted) {
		return n, fmt.Errorf("the Dispatch is %s, the Task %s, with %d messages", d.State, t.State, n)
	}
	return n, errors.Join(err, err2, err3)
}

// TestAcceptance_Q04_EveryLocalMutationIsBothOrNeither: the hub dies before or
// after each commit of each local mutation. Effect and receipt are both there or
// neither is, and the same request has its effect once and one answer.
func TestAcceptance_Q04_EveryLocalMutationIsBothOrNeither(t *testing.T) {
	for name, mut := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []bool{false, true} {
				n := 1
				for ; !mut.killed(t, n, after); n++ {
				}
				if n < 2 {
					t.Fatal("nothing was committed")
				}
			}
		})
	}
}

// killed makes the mutation on a hub that dies at its n-th commit, and again on
// the next one. It returns true when there are fewer commits.
func (mut mutation) killed(t *testing.T, n int, after bool) (completed bool) {
	t.Run(fmt.Sprintf("commit %d, after=%v", n, after), func(t *testing.T) {
		m := newMachine(t)
		s := m.newScene(t)
		r := deskRequest(t, mut.by(s), "mutation")
		f := &frozen{Store: m.store, left: n, after: after, died: make(chan struct{}), never: make(chan struct{})}
		t.Cleanup(func() { close(f.never) })
		done := make(chan error, 1)
		go func() {
			_, err := mut.call(context.Background(), m.deskOf(f), r, s)
			done <- err
		}()
		select {
		case <-f.died:
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			completed = true
		case <-time.After(10 * time.Second):
			t.Fatal("neither died nor done")
		}
		mut.judge(t, m, s, r, completed || after)
	})
	return completed
}

// judge repeats the request on the next hub; committed says that the dead one
// committed it.
func (mut mutation) judge(t *testing.T, m *machine, s scene, r receipt.Request, committed bool) {
	t.Helper()
	found, effects := mut.inStore(t, m, s, r)
	if found != committed || (effects == 1) != committed || effects > 1 {
		t.Fatalf("committed: %v, but the receipt is there: %v, with %d effects", committed, found, effects)
	}
	first, replayed := mut.answer(t, m, s, r)
	if replayed != committed {
		t.Errorf("the next hub's answer is a replay: %v", replayed)
	}
	again, replayed := mut.answer(t, m, s, r)
	if first != again || !replayed {
		t.Errorf("answered\n%s\nand then, replayed=%v,\n%s", first, replayed, again)
	}
	if found, effects = mut.inStore(t, m, s, r); !found || effects != 1 {
		t.Errorf("in the end the receipt is there: %v, with %d effects", found, effects)
	}
}

func (mut mutation) inStore(t *testing.T, m *machine, s scene, r receipt.Request) (found bool, effects int64) {
	t.Helper()
	err := m.store.View(t.Context(), func(rx store.Rx) (err error) {
		if _, found, err = rx.Receipt(r.Principal.Space(), r.Key); err != nil {
			return err
		}
		effects, err = mut.effects(rx, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, effects
}

// answer makes the request and returns its answer without the mark of a replay.
func (mut mutation) answer(t *testing.T, m *machine, s scene, r receipt.Request) (text string, replayed bool) {
	t.Helper()
	got, err := mut.call(t.Context(), m.deskOf(m.store), r, s)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	made := fields["mutation"].(map[string]any)
	replayed = made["replayed"] == true
	delete(made, "replayed")
	if raw, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return string(raw), replayed
}
