package work_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

func requestFor(t *testing.T, key hub.RequestID, op string, in any) receipt.Request {
	t.Helper()
	r, err := receipt.New(operator, key, op, in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// worktrees are all that are on record, by name.
func (m *machine) worktrees(t *testing.T) map[string]hub.Worktree {
	t.Helper()
	out := map[string]hub.Worktree{}
	err := m.store.View(t.Context(), func(rx store.Rx) error {
		ws, _, err := rx.WorktreeList("", store.Page{Limit: 100})
		for _, w := range ws {
			out[w.Name] = w
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dies runs fn on a hub that dies at its n-th commit, and reports whether fn came
// to its end before that.
func (m *machine) dies(t *testing.T, n int, after bool, fn func(*work.Service)) (completed bool) {
	t.Helper()
	f := &frozen{Store: m.store, left: n, after: after, died: make(chan struct{}), never: make(chan struct{})}
	t.Cleanup(func() { close(f.never) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(m.hubOf(f))
	}()
	select {
	case <-f.died:
	case <-done:
		completed = true
	case <-time.After(10 * time.Second):
		t.Fatal("neither died nor done")
	}
	return completed
}

// everyCommit runs fn for a death before and behind each commit, until there are
// no more.
func everyCommit(t *testing.T, atLeast int, fn func(t *testing.T, n int, after bool) (completed bool)) {
	for _, after := range []bool{false, true} {
		for n, completed := 1, false; !completed; n++ {
			t.Run(fmt.Sprintf("commit %d, after=%v", n, after), func(t *testing.T) { completed = fn(t, n, after) })
			if completed && n < atLeast {
				t.Fatalf("there are only %d commits", n-1)
			}
		}
	}
}

// A creation killed anywhere leaves the worktree on record or nothing, its setup
// at most once, and the request repeated says which. Invariants 1, 3 and 11.
func TestAcceptance_Q05_WorktreeKilledAtEachStage(t *testing.T) {
	everyCommit(t, 5, func(t *testing.T, n int, after bool) bool {
		m := newMachine(t)
		m.trees.hook = hub.SetupHook{Found: true, Run: "make", Policy: hub.PolicyImmediate, Hash: "h"}
		key, in := hub.NewRequestID(), work.WorktreeInput{Repo: "demo", Name: "one"}
		completed := m.dies(t, n, after, func(s *work.Service) {
			if _, err := s.CreateWorktree(context.Background(), requestFor(t, key, "createWorktree", in), in); err != nil {
				t.Logf("the dying hub: %v", err)
			}
		})
		again := m.hubOf(m.store)
		if err := again.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		made, setups := m.trees.made, len(m.terms.setups)
		w, known := m.worktrees(t)["one"]
		if known != (made == 1) || known && w.State != hub.WorktreeReady || setups > 1 {
			t.Fatalf("%d made, %d setups, on record: %+v", made, setups, w)
		}
		if !known {
			return completed
		}
		r, err := again.CreateWorktree(t.Context(), requestFor(t, key, "createWorktree", in), in)
		if err != nil || r.State != hub.StartReady || r.Worktree.ID != w.ID || !r.Mutation.Replayed {
			t.Errorf("repeated: %+v %v", r, err)
		}
		if m.trees.made != made || len(m.terms.setups) != setups {
			t.Error("the repetition had effects")
		}
		if s := m.worktrees(t)["one"].Setup.Report; setups == 0 && !s.Over() || setups == 1 && s.State != hub.SetupRunning {
			t.Errorf("after %d launches the setup is %+v", setups, s)
		}
		return completed
	})
}

// The worktree of a start that was killed is on record, ready for another start.
func TestAKilledStartsWorktreeIsAdopted(t *testing.T) {
	m := newMachine(t)
	task, in := m.newTask(), startInput("")
	in.Task = task
	dies := func(s *work.Service) {
		if _, err := s.Start(context.Background(), startRequest(t, "", in), in); err != nil {
			t.Logf("the dying hub: %v", err)
		}
	}
	if m.dies(t, 3, false, dies) { // before it commits what was made
		t.Fatal("it did not die")
	}
	again := m.hubOf(m.store)
	if err := again.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, known := m.worktrees(t)["one"]
	if !known || w.State != hub.WorktreeReady || m.trees.made != 1 {
		t.Fatalf("%d made, on record %+v", m.trees.made, w)
	}
	_, d := m.task(task)
	retry := work.StartInput{Task: task, RetryOf: d.ID, Spec: hub.StartSpec{Worktree: "id:" + string(w.ID), Agent: "sh"}}
	if r, err := again.Start(t.Context(), startRequest(t, "", retry), retry); err != nil || r.State != hub.StartReady {
		t.Errorf("in the adopted worktree: %+v %v", r, err)
	}
}

// A creation that fails is proven to have left nothing, and its name is free.
func TestAFailedCreationLeavesNothing(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	m.trees.fail = errors.New("the disk is full")
	in := work.WorktreeInput{Repo: "demo", Name: "one"}
	r, err := s.CreateWorktree(t.Context(), requestFor(t, "", "createWorktree", in), in)
	if err != nil || r.State != hub.StartFailed || r.FailedStage != hub.StageWorktreeCreating || len(r.Residuals) != 0 || r.LastError != "the disk is full" {
		t.Errorf("%+v %v", r, err)
	}
	start := startInput(m.newTask())
	if r, err := s.Start(t.Context(), startRequest(t, "", start), start); err != nil || r.State != hub.StartFailed || len(r.Residuals) != 0 {
		t.Errorf("a start: %+v %v", r, err)
	}
	if left := m.worktrees(t); len(left) != 0 {
		t.Errorf("on record: %+v", left)
	}
	m.trees.fail = nil
	if r, err := s.CreateWorktree(t.Context(), requestFor(t, "", "createWorktree", in), in); err != nil || r.State != hub.StartReady {
		t.Errorf("%+v %v", r, err)
	}
}

// A removal killed anywhere is undone, or goes on when it is asked for again.
func TestRemovalKilledAtEachStage(t *testing.T) {
	everyCommit(t, 3, func(t *testing.T, n int, after bool) bool {
		m := newMachine(t)
		create := work.WorktreeInput{Repo: "demo", Name: "one"}
		if _, err := m.hubOf(m.store).CreateWorktree(t.Context(), requestFor(t, "", "createWorktree", create), create); err != nil {
			t.Fatal(err)
		}
		key, in := hub.NewRequestID(), work.RemoveInput{Worktree: "one"}
		completed := m.dies(t, n, after, func(s *work.Service) {
			if _, err := s.RemoveWorktree(context.Background(), requestFor(t, key, "removeWorktree", in), in); err != nil {
				t.Logf("the dying hub: %v", err)
			}
		})
		again := m.hubOf(m.store)
		if err := again.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, known := m.worktrees(t)["one"]
		if known && w.State != hub.WorktreeReady && w.State != hub.WorktreeDeleting || m.trees.removed == 1 && w.State == hub.WorktreeReady {
			t.Fatalf("deleted %d times, on record %+v", m.trees.removed, w)
		}
		r, err := again.RemoveWorktree(t.Context(), requestFor(t, key, "removeWorktree", in), in)
		if err != nil || r.Name != "one" || len(m.worktrees(t)) != 0 || m.trees.removed == 0 {
			t.Errorf("repeated: %+v %v, deleted %d times", r, err, m.trees.removed)
		}
		return completed
	})
}

func TestRemovalRefusals(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	_, started := m.started(t, s)
	remove := func(force bool) (hub.WorktreeRemoval, error) {
		in := work.RemoveInput{Worktree: "one", Force: force}
		return s.RemoveWorktree(t.Context(), requestFor(t, "", "removeWorktree", in), in)
	}
	if _, err := remove(true); !hub.IsCode(err, hub.CodeTerminalBusy) {
		t.Errorf("with a live worker: %v", err)
	}
	stopOf(t, s, started.Dispatch)
	m.trees.losses = []hub.Loss{{Kind: hub.LossUntracked, Name: "new"}}
	if _, err := remove(false); !hub.IsCode(err, hub.CodeWorktreeNotEmpty) || m.trees.removed+m.trees.saved != 0 || m.worktrees(t)["one"].State != hub.WorktreeReady {
		t.Errorf("with something to lose: %v, %+v", err, m.worktrees(t)["one"])
	}
	m.trees.remove = func(context.Context) error { return errors.New("busy folder") }
	if _, err := remove(true); !hub.IsCode(err, hub.CodeOutcomeUnknown) || m.worktrees(t)["one"].State != hub.WorktreeDeleting {
		t.Errorf("cut off: %v, %+v", err, m.worktrees(t)["one"])
	}
	task := m.newTask()
	in := work.StartInput{Task: task, Spec: hub.StartSpec{Worktree: "one", Agent: "sh"}}
	if _, err := s.Start(t.Context(), startRequest(t, "", in), in); !hub.IsCode(err, hub.CodeTerminalBusy) {
		t.Errorf("a start in what is being deleted: %v", err)
	}
	m.trees.remove = nil
	if r, err := remove(false); err != nil || len(m.worktrees(t)) != 0 {
		t.Errorf("the deletion goes on: %+v %v", r, err)
	}
}
