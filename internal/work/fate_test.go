package work_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// started is a Task with a worker that runs.
func (m *machine) started(t *testing.T, s *work.Service) (hub.TaskID, hub.Receipt) {
	t.Helper()
	task := m.newTask()
	in := startInput(task)
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil || r.State != hub.StartReady {
		t.Fatalf("%+v %v", r, err)
	}
	return task, r
}

func stopOf(t *testing.T, s *work.Service, id hub.DispatchID) hub.StopResult {
	t.Helper()
	in := work.StopInput{Dispatch: id}
	req, err := receipt.New(operator, "", "worker.stop", in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Stop(t.Context(), req, in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func abandonOf(t *testing.T, s *work.Service, id hub.DispatchID) hub.StopResult {
	t.Helper()
	got, err := s.Abandon(t.Context(), deskRequest(t, operator, "worker.abandon"), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestAcceptance_L06_SilenceEndsNothing: a worker that says nothing for ten
// minutes is ready as before, also for a hub that is started then, and its late
// report settles.
func TestAcceptance_L06_SilenceEndsNothing(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	task, r := m.started(t, s)
	const silence = 10 * time.Minute
	m.later.Add(silence.Microseconds())
	next := m.hubOf(m.store)
	if err := next.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]*work.Service{"the same hub": s, "the next one": next} {
		shown, err := of.Show(t.Context(), r.Dispatch)
		if err != nil || shown.Dispatch.State != hub.Ready || shown.Observation.Process != hub.Live {
			t.Errorf("%s: %s, the process %s, %v", name, shown.Dispatch.State, shown.Observation.Process, err)
		}
	}
	m.mails(t, r.Run, 0)
	by := hub.Principal{Kind: hub.DispatchCap, ID: string(r.Dispatch), Credential: "cap-" + string(r.Dispatch)}
	sent, err := m.deskOf(m.store).dispatch.Send(t.Context(), deskRequest(t, by, "message.send"), dispatch.SendInput{
		Type: hub.TypeWorkerDone, Body: "at last", Report: hub.Report{Task: task, Dispatch: r.Dispatch, Outcome: hub.OutcomeSucceeded},
	})
	if err != nil || sent.Verdict != hub.VerdictAccepted {
		t.Fatalf("%+v %v", sent, err)
	}
	tk, d := m.task(task)
	if d.State != hub.Succeeded || d.Evidence != hub.EvidenceReport || tk.State != hub.TaskCompleted || tk.Result != "at last" {
		t.Errorf("Dispatch %s by %s, Task %s", d.State, d.Evidence, tk.State)
	}
	if d.SettledAt-d.CreatedAt < hub.Micros(silence.Microseconds()) {
		t.Errorf("only %d µs went by", d.SettledAt-d.CreatedAt)
	}
}

// TestAStartThatWasOnlyAcceptedHadNoEffect: a hub that died right behind the
// first commit of a start has done nothing, and the next one says so.
func TestAStartThatWasOnlyAcceptedHadNoEffect(t *testing.T) {
	m := newMachine(t)
	task := m.newTask()
	in := startInput(task)
	f := &frozen{Store: m.store, left: 1, after: true, died: make(chan struct{}), never: make(chan struct{})}
	t.Cleanup(func() { close(f.never) })
	r, s := startRequest(t, "", in), m.hubOf(f)
	go func() {
		_, err := s.Start(context.Background(), r, in)
		t.Logf("the dying hub: %v", err)
	}()
	<-f.died
	if err := m.hubOf(m.store).Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	tk, d := m.task(task)
	if d.State != hub.Failed || d.Reason != hub.ReasonNoEffect || tk.State != hub.TaskFailed || m.terms.launches != 0 || m.trees.made != 0 {
		t.Errorf("Dispatch %s (%s), Task %s, %d launches, %d worktrees", d.State, d.Reason, tk.State, m.terms.launches, m.trees.made)
	}
}

// TestAStopCutByARestartIsUnknown: what a stop came to is not guessed, and to
// stop again finds out.
func TestAStopCutByARestartIsUnknown(t *testing.T) {
	m := newMachine(t)
	task, r := m.started(t, m.hubOf(m.store))
	err := m.store.Update(t.Context(), store.Settle, func(tx store.Tx) error {
		_, _, err := dispatch.Fence(tx, r.Dispatch, hub.FenceItem{Request: hub.NewRequestID()})
		return err
	})
	if err != nil || m.state(task) != hub.Stopping {
		t.Fatalf("%s %v", m.state(task), err)
	}
	next := m.hubOf(m.store)
	if err := next.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tk, d := m.task(task); d.State != hub.StopUnknown || tk.State != hub.TaskBlocked {
		t.Errorf("after the restart: Dispatch %s, Task %s", d.State, tk.State)
	}
	if got := stopOf(t, next, r.Dispatch); got.State != hub.Stopped || got.Action != hub.ActionEnded {
		t.Errorf("stopped again: %+v", got)
	}
}

// doubtful can neither verify nor signal a process until it is told so.
type doubtful struct {
	*terminals
	asked, sure *atomic.Int32
}

func (d doubtful) Stop(ctx context.Context, in hub.Incarnation, grace time.Duration) (hub.StopProof, error) {
	d.asked.Add(1)
	if d.sure.Load() == 0 {
		return hub.StopProof{Action: hub.ActionUnknown, State: hub.ProcessState{Liveness: hub.Unverifiable}}, nil
	}
	return d.terminals.Stop(ctx, in, grace)
}

// TestStoppingAgainAsksTheOwnerAgain: each stop of a stop_unknown is another
// look at the process.
func TestStoppingAgainAsksTheOwnerAgain(t *testing.T) {
	m := newMachine(t)
	terms := doubtful{m.terms, &atomic.Int32{}, &atomic.Int32{}}
	s := m.homeOf(nil, terms, 0)
	task, r := m.started(t, s)
	for n := range int32(2) {
		if got := stopOf(t, s, r.Dispatch); got.State != hub.StopUnknown || got.AlreadySettled || terms.asked.Load() != n+1 {
			t.Errorf("stop %d: %+v, asked %d times", n, got, terms.asked.Load())
		}
	}
	terms.sure.Store(1)
	if got := stopOf(t, s, r.Dispatch); got.State != hub.Stopped || terms.asked.Load() != 3 {
		t.Errorf("%+v, asked %d times", got, terms.asked.Load())
	}
	if tk, d := m.task(task); d.State != hub.Stopped || d.Evidence != hub.EvidenceStop || tk.State != hub.TaskBlocked {
		t.Errorf("Dispatch %s by %s, Task %s", d.State, d.Evidence, tk.State)
	}
}

// TestAbandoningWhatHasEndedChangesNothing: neither a final Dispatch nor one
// that was replaced moves, and the replacement's Task stays where it is.
func TestAbandoningWhatHasEndedChangesNothing(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	task, first := m.started(t, s)
	stopOf(t, s, first.Dispatch)
	unchanged := func(when string) {
		t.Helper()
		before := m.record(t, task, first.Dispatch)
		if got := abandonOf(t, s, first.Dispatch); !got.AlreadySettled || got.State != hub.Stopped {
			t.Errorf("%s: %+v", when, got)
		}
		if after := m.record(t, task, first.Dispatch); after != before {
			t.Errorf("%s it changed\n%s\nto\n%s", when, before, after)
		}
	}
	unchanged("stopped,")
	in := startInput(task)
	in.RetryOf, in.Spec.Name = first.Dispatch, "two"
	if r, err := s.Start(t.Context(), startRequest(t, "", in), in); err != nil || r.State != hub.StartReady {
		t.Fatalf("%+v %v", r, err)
	}
	unchanged("replaced,")
	if got := m.state(task); got != hub.Ready {
		t.Errorf("the replacement is %s", got)
	}
}

// record is all that the store says of a Dispatch and its Task, as text.
func (m *machine) record(t *testing.T, task hub.TaskID, id hub.DispatchID) (text string) {
	t.Helper()
	err := m.store.View(t.Context(), func(rx store.Rx) error {
		tk, err := rx.Task(task)
		if err != nil {
			return err
		}
		d, err := rx.Dispatch(id)
		if err != nil {
			return err
		}
		a, _, err := rx.Attachment("", id)
		if err != nil {
			return err
		}
		raw, err := json.MarshalIndent([]any{tk, d, d.Version, a}, "", " ")
		text = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
