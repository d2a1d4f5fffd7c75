package work_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

func startInput(task hub.TaskID) work.StartInput {
	return work.StartInput{Task: task, Spec: hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "demo", Name: "one", Agent: "sh"}}
}

func startRequest(t *testing.T, key hub.RequestID, in work.StartInput) receipt.Request {
	t.Helper()
	r, err := receipt.New(operator, key, "worker.start", in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAcceptance_Q05_StartKilledAtEachStage: the hub dies before or after each
// commit of a start. The next process tells the truth about what runs, and
// repeating the request starts nothing a second time.
// Invariants 1, 3, 4 and 8.
func TestAcceptance_Q05_StartKilledAtEachStage(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			if completed := killedStart(t, n, after); completed {
				if n < 6 {
					t.Fatalf("a start has only %d commits", n-1)
				}
				break
			}
		}
	}
}

func killedStart(t *testing.T, n int, after bool) (completed bool) {
	t.Run(fmt.Sprintf("commit %d, after=%v", n, after), func(t *testing.T) {
		m := newMachine(t)
		task := m.newTask()
		key, in := hub.NewRequestID(), startInput(task)
		f := &frozen{Store: m.store, left: n, after: after, died: make(chan struct{}), never: make(chan struct{})}
		t.Cleanup(func() { close(f.never) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := m.hubOf(f).Start(context.Background(), startRequest(t, key, in), in); err != nil {
				t.Logf("the dying hub: %v", err)
			}
		}()
		select {
		case <-f.died:
		case <-done:
			completed = true
		case <-time.After(10 * time.Second):
			t.Fatal("neither died nor done")
		}
		m.restartAndJudge(t, task, key, in)
	})
	return completed
}

func (m *machine) restartAndJudge(t *testing.T, task hub.TaskID, key hub.RequestID, in work.StartInput) {
	again := m.hubOf(m.store)
	if err := again.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	tk, d := m.task(task)
	launched := m.terms.launches
	switch {
	case tk.Latest == "" && tk.State == hub.TaskReady && launched == 0:
		return // the start left nothing behind
	case launched == 1 && d.State == hub.Ready && tk.State == hub.TaskDispatched:
	case launched == 0 && d.State == hub.Failed && tk.State == hub.TaskFailed:
	default:
		t.Fatalf("%d launches, Dispatch %s (%s), Task %s", launched, d.State, d.Reason, tk.State)
	}
	if rec := m.receipt(t, key); rec.State != store.ReceiptDone || rec.Object != string(d.ID) || rec.Run != d.Run {
		t.Errorf("before it is repeated the request is on record as %s of %q", rec.State, rec.Object)
	}
	r, err := again.Start(t.Context(), startRequest(t, key, in), in)
	if err != nil || r.Dispatch != d.ID || !r.Mutation.Replayed {
		t.Fatalf("the repeated request: %+v %v", r, err)
	}
	if (r.State == hub.StartReady) != (launched == 1) || r.Stage == "" {
		t.Errorf("the receipt says %s at %s after %d launches", r.State, r.Stage, launched)
	}
	if m.terms.launches != launched || m.trees.made > 1 {
		t.Errorf("the repetition had effects: %d launches, %d worktrees", m.terms.launches, m.trees.made)
	}
	if r.State == hub.StartFailed && m.trees.made == 1 && len(r.Residuals)+len(r.Effects) == 0 {
		t.Error("the worktree that was made is not listed")
	}
}

func (m *machine) receipt(t *testing.T, key hub.RequestID) (rec store.Receipt) {
	t.Helper()
	err := m.store.View(t.Context(), func(rx store.Rx) (err error) {
		rec, err = receipt.Show(rx, operator, key)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return rec
}

// TestExitWhileTheHubWasDown: the exit is found and committed at restart.
// Invariants 7 and 8.
func TestExitWhileTheHubWasDown(t *testing.T) {
	m := newMachine(t)
	task := m.newTask()
	in := startInput(task)
	r, err := m.hubOf(m.store).Start(t.Context(), startRequest(t, "", in), in)
	if err != nil || r.State != hub.StartReady {
		t.Fatalf("%+v %v", r, err)
	}
	woken, cancel := m.bus.Subscribe(string(hub.TopicDispatch), string(r.Dispatch))
	defer cancel()
	if err := m.hubOf(m.store).Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, d := m.task(task)
	var a hub.Attachment
	if err := m.store.View(t.Context(), func(rx store.Rx) (err error) { a, _, err = rx.Attachment("", d.ID); return err }); err != nil {
		t.Fatal(err)
	}
	p, _ := m.terms.find(a.Terminal)
	close(p.exited)
	select {
	case <-woken:
	case <-time.After(10 * time.Second):
		t.Fatal("the exit was not committed")
	}
	tk, d := m.task(task)
	if d.State != hub.Succeeded || d.Evidence != hub.EvidenceExit || tk.State != hub.TaskCompleted {
		t.Errorf("Dispatch %s by %s, Task %s", d.State, d.Evidence, tk.State)
	}
	if tk.Result != "output [redacted]" {
		t.Errorf("result %q", tk.Result)
	}
}

// TestStopWhileStarting: a stop that comes while the start composes ends it,
// and proves that nothing runs.
// Invariant 6.
func TestStopWhileStarting(t *testing.T) {
	m := newMachine(t)
	task := m.newTask()
	reached, proceed := make(chan struct{}), make(chan struct{})
	m.trees.pause = func(context.Context) { close(reached); <-proceed }
	s := m.hubOf(m.store)
	in := startInput(task)
	started := make(chan hub.Receipt, 1)
	go func() {
		r, err := s.Start(context.Background(), startRequest(t, "", in), in)
		if err != nil {
			t.Error(err)
		}
		started <- r
	}()
	<-reached
	_, d := m.task(task)
	stopped := make(chan hub.StopResult, 1)
	go func() {
		stop := work.StopInput{Dispatch: d.ID}
		req, err := receipt.New(operator, "", "worker.stop", stop)
		if err != nil {
			t.Error(err)
		}
		r, err := s.Stop(context.Background(), req, stop)
		if err != nil {
			t.Error(err)
		}
		stopped <- r
	}()
	for m.state(task) != hub.Stopping {
	}
	close(proceed)
	r, st := <-started, <-stopped
	if r.State != hub.StartFailed || r.DispatchState != hub.Stopped && r.DispatchState != hub.Stopping {
		t.Errorf("the start says %s, %s", r.State, r.DispatchState)
	}
	if st.State != hub.Stopped || m.terms.launches != 0 {
		t.Errorf("the stop says %+v, %d launches", st, m.terms.launches)
	}
	if tk, d := m.task(task); d.State != hub.Stopped || tk.State != hub.TaskBlocked {
		t.Errorf("Dispatch %s, Task %s", d.State, tk.State)
	}
}

func (m *machine) state(task hub.TaskID) hub.DispatchState {
	_, d := m.task(task)
	return d.State
}

// Invariant 5.
func TestStopEndsTheProcessOnce(t *testing.T) {
	m := newMachine(t)
	task := m.newTask()
	s := m.hubOf(m.store)
	in := startInput(task)
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil {
		t.Fatal(err)
	}
	stop := work.StopInput{Dispatch: r.Dispatch}
	req, err := receipt.New(operator, "", "worker.stop", stop)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		st, err := s.Stop(t.Context(), req, stop)
		if err != nil || st.State != hub.Stopped || st.Action != hub.ActionEnded || st.Mutation.Replayed != (i == 1) {
			t.Errorf("stop %d: %+v %v", i, st, err)
		}
		for _, left := range st.Residuals {
			if left.Kind == "terminal" {
				t.Errorf("a stopped worker's terminal is left over: %+v", left)
			}
		}
	}
	other, err := receipt.New(operator, "", "worker.stop", stop)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := s.Stop(t.Context(), other, stop); err != nil || !st.AlreadySettled {
		t.Errorf("a new stop of a stopped Dispatch: %+v %v", st, err)
	}
}
