package wave

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// meanwhile is a store in which something happens once while a wave is being read:
// its snapshot is taken already.
type meanwhile struct {
	store.Store
	happens func()
}

func (m *meanwhile) View(ctx context.Context, fn func(store.Rx) error) error {
	return m.Store.View(ctx, func(rx store.Rx) error { return fn(inMidst{rx, m}) })
}

type inMidst struct {
	store.Rx
	m *meanwhile
}

func (r inMidst) WaveUsages(id hub.WaveID) ([]hub.DispatchUsage, error) {
	if fn := r.m.happens; fn != nil {
		r.m.happens = nil
		fn()
	}
	return r.Rx.WaveUsages(id)
}

// What is committed while a loop reads its wave for the first time is told to it.
func TestNoSignalIsMissedWhileAWaveIsRead(t *testing.T) {
	w := newWorld(t)
	w.spawned(w.input("w1", entry("a")))
	task := w.tasks("w1")[0].Task
	m := &meanwhile{Store: w.store}
	w.Service.Store = m
	w.Service.Config.Spawn = func(func(context.Context)) bool { return false }
	var loops sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	told := false
	m.happens = func() {
		w.told(ctx, &loops, hub.TopicTask, []string{string(task)})
		l := w.engine.loop("w1")
		l.mu.Lock()
		defer l.mu.Unlock()
		_, told = l.dirty[task]
		cancel()
	}
	w.follow(ctx, &loops, "w1", false)
	loops.Wait()
	if !told {
		t.Error("nothing told the loop of the change")
	}
}

// blind is a store that cannot be read at first.
type blind struct {
	store.Store
	looked chan struct{}
	once   sync.Once
}

func (b *blind) View(ctx context.Context, fn func(store.Rx) error) (err error) {
	err = hub.Errorf(hub.CodeInternal, "it cannot be read now")
	b.once.Do(func() { close(b.looked) })
	return err
}

// An engine whose first look fails looks again, and does not end.
func TestAFailedLookDoesNotEndTheEngine(t *testing.T) {
	w := newWorld(t)
	b := &blind{Store: w.store, looked: make(chan struct{})}
	w.Service.Store = b
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-b.looked
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended: %v", err)
	}
	var loops sync.WaitGroup
	if !w.beginAll(t.Context(), &loops, true) {
		t.Error("what was not seen after the hub came up counts as seen")
	}
}

// begun gives the task of w1 a Dispatch of this hub, started as r says.
func (w *world) begun(r hub.Receipt) hub.DispatchID {
	w.Helper()
	id, task := hub.NewDispatchID(), w.tasks("w1")[0].Task
	w.update(func(tx store.Tx) error {
		_, err := dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: task, Server: hub.Server{Name: "here"}, Request: hub.NewRequestID(), Receipt: r})
		return err
	})
	return id
}

// A stop whose end could not be recorded is asked for again: else the wave would
// wait for it for ever.
func TestAStopThatCameToNothingIsAskedForAgain(t *testing.T) {
	w := newWorld(t)
	w.spawned(w.input("w1", entry("a")))
	id := w.begun(hub.Receipt{})
	now, here := Instant{Mono: time.Second}, func(fn func(context.Context)) bool { fn(t.Context()); return true }
	w.Service.Config.Spawn = here
	w.Service.Config.Clock = func() Instant { return now }
	w.Service.Work = work.New(work.Config{Store: w.store, Gate: receipt.NewGate(w.store, here), Log: w.Service.Log})
	w.cancel("w1")
	l := newLoop(w.Service, "w1")
	state := func() (s hub.DispatchState) {
		w.view(func(rx store.Rx) error {
			d, err := rx.Dispatch(id)
			s = d.State
			return err
		})
		return s
	}
	// The fence, the record of the stop, and what came of it.
	w.store.failing(func(nth int) error {
		if nth == 3 {
			return hub.Errorf(hub.CodeStorageFull, "no room")
		}
		return nil
	})
	if _, done, err := l.reconcile(t.Context()); done || err != nil || state() != hub.Stopping {
		t.Fatalf("done %v, %v; it is %s", done, err, state())
	}
	for range 2 { // what came of it, and the pause
		now.Mono += time.Second
		l.poke(func() { l.stale = true })
		if _, done, err := l.reconcile(t.Context()); done || err != nil {
			t.Fatalf("done %v, %v", done, err)
		}
	}
	if state() != hub.StopUnknown {
		t.Fatalf("it is %s", state())
	}
	l.poke(func() { l.stale = true })
	if _, done, err := l.reconcile(t.Context()); !done || err != nil || w.wave("w1").Status != hub.WaveCancelled {
		t.Errorf("done %v, %v; the wave is %s", done, err, w.wave("w1").Status)
	}
}

// An attempt goes on in the worktree of one before it only while that is there.
func TestARemovedWorktreeIsNotGoneOnIn(t *testing.T) {
	w := newWorld(t)
	w.spawned(w.input("w1", startOf("a", hub.WaveStart{Agent: "sh", Worktree: hub.WorktreeNewTopLevel, Repo: "demo"})))
	tree := hub.Worktree{ID: hub.NewWorktreeID(), Name: "w1-a", Path: "/w1-a"}
	w.begun(hub.Receipt{Effects: []hub.Resource{{Kind: "worktree", Action: "created", ID: string(tree.ID)}}})
	placed := func() string {
		t.Helper()
		in := work.StartInput{Spec: hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "demo", Agent: "sh"}}
		var r hub.WaveRow
		task := w.tasks("w1")[0].Task
		w.view(func(rx store.Rx) (err error) {
			r, _, err = rx.WaveRow(task)
			return err
		})
		if err := w.goOn(t.Context(), &in, r); err != nil {
			t.Fatal(err)
		}
		return in.Spec.Worktree
	}
	equal(t, hub.WorktreeNewTopLevel, placed())
	w.update(func(tx store.Tx) error { return tx.PutWorktree(tree) })
	equal(t, "id:"+string(tree.ID), placed())
}
