package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

var errTest = errors.New("refused by the test")

func openTest(t testing.TB, cfg Config, drv seam) *Store {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "hub.db")
	}
	s, err := open(context.Background(), cfg, drv, migrations)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

// until waits for a condition, at most ten seconds.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within ten seconds", what)
		}
	}
}

func (q *queue) len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		n += len(w)
	}
	return n
}

func putRun(id string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.PutRun(hub.Run{ID: hub.RunID(id)}) }
}

func hasRun(t testing.TB, s *Store, id string) bool {
	t.Helper()
	err := s.View(context.Background(), func(rx store.Rx) error { _, err := rx.Run(hub.RunID(id)); return err })
	if err != nil && !hub.IsCode(err, hub.CodeRunNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// held occupies the writer, queues the closures in the order given and lets
// all of them run as one group. It returns the holder's answer and theirs.
type held struct {
	t       *testing.T
	s       *Store
	entered chan struct{}
	release chan struct{}
	holder  chan error
	answers []chan error
}

func hold(t *testing.T, s *Store, fn func(store.Tx) error) *held {
	h := &held{t: t, s: s, entered: make(chan struct{}), release: make(chan struct{}), holder: make(chan error, 1)}
	var first sync.Once
	go func() {
		h.holder <- s.Update(context.Background(), store.Import, func(tx store.Tx) error {
			first.Do(func() {
				close(h.entered)
				<-h.release
			})
			return fn(tx)
		})
	}()
	<-h.entered
	return h
}

func (h *held) add(ctx context.Context, c store.Class, fn func(store.Tx) error) {
	h.t.Helper()
	n := h.s.queue.len()
	done := make(chan error, 1)
	h.answers = append(h.answers, done)
	go func() { done <- h.s.Update(ctx, c, fn) }()
	until(h.t, "queueing", func() bool { return h.s.queue.len() > n })
}

func (h *held) finish() (others []error, holder error) {
	close(h.release)
	for _, a := range h.answers {
		others = append(others, <-a)
	}
	return others, <-h.holder
}

// Invariant 5: classes in order, one slot of eight for the last.
func TestClassOrder(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	h := hold(t, s, putRun("holder"))
	var ran []store.Class
	for i := range 36 {
		c := store.Class(2 - i/12) // New is queued first, Import last
		h.add(context.Background(), c, func(store.Tx) error { ran = append(ran, c); return nil })
	}
	if others, err := h.finish(); err != nil || errors.Join(others...) != nil {
		t.Fatal(err, others)
	}
	slots := append([]store.Class{store.Import}, ran...)
	var rest []store.Class
	for i, c := range slots[:24] {
		if kept := i%8 == 7; kept && c != store.New {
			t.Errorf("slot %d went to class %d", i, c)
		} else if !kept {
			rest = append(rest, c)
		}
	}
	if !slices.IsSorted(rest) || slices.Contains(rest, store.New) {
		t.Errorf("order of classes %v", slots)
	}
}

// Invariant 3: a failing closure of a group takes back only its own.
func TestGroupKeepsGoodClosures(t *testing.T) {
	var commits atomic.Int32
	s := openTest(t, Config{Hook: func(p string) {
		if p == "before_commit" {
			commits.Add(1)
		}
	}}, builtin)
	h := hold(t, s, putRun("holder"))
	h.add(context.Background(), store.New, putRun("a"))
	h.add(context.Background(), store.New, func(tx store.Tx) error { return errors.Join(putRun("b")(tx), errTest) })
	h.add(context.Background(), store.New, func(tx store.Tx) error { _ = putRun("c")(tx); panic("by the test") })
	h.add(context.Background(), store.New, putRun("d"))
	others, err := h.finish()
	if err != nil || others[0] != nil || !errors.Is(others[1], errTest) || !hub.IsCode(others[2], hub.CodeInternal) || others[3] != nil {
		t.Fatal(err, others)
	}
	for id, want := range map[string]bool{"holder": true, "a": true, "b": false, "c": false, "d": true} {
		if hasRun(t, s, id) != want {
			t.Errorf("%s stored: %v", id, !want)
		}
	}
	if commits.Load() != 1 {
		t.Errorf("%d commits for one group", commits.Load())
	}
}

// Invariant 6: what gives up while it waits never runs.
func TestCancelWhileQueued(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	h := hold(t, s, putRun("holder"))
	ctx, cancel := context.WithCancel(context.Background())
	ran := false
	h.add(ctx, store.New, func(store.Tx) error { ran = true; return nil })
	h.add(context.Background(), store.New, putRun("a"))
	cancel()
	if err := <-h.answers[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("answer %v", err)
	}
	h.answers = h.answers[1:]
	if others, err := h.finish(); err != nil || others[0] != nil {
		t.Fatal(err, others)
	}
	if ran || !hasRun(t, s, "a") {
		t.Errorf("the cancelled closure ran: %v", ran)
	}
}

// Invariant 4: when SQLite drops the transaction, the closures run again one
// by one and only the one at fault is refused.
func TestRerun(t *testing.T) {
	var sigs []hub.Signal
	s := openTest(t, Config{Publish: func(s []hub.Signal) { sigs = append(sigs, s...) }}, builtin)
	h := hold(t, s, putRun("holder"))
	var runs atomic.Int32
	h.add(context.Background(), store.New, func(tx store.Tx) error {
		runs.Add(1)
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: "a"})
		return putRun("a")(tx)
	})
	h.add(context.Background(), store.New, func(tx store.Tx) error {
		if err := putRun("b")(tx); err != nil {
			return err
		}
		return errors.Join(tx.(*Tx).conn.once("ROLLBACK"), errTest)
	})
	h.add(context.Background(), store.New, putRun("c"))
	others, err := h.finish()
	if err != nil || others[0] != nil || !errors.Is(others[1], errTest) || others[2] != nil {
		t.Fatal(err, others)
	}
	if !hasRun(t, s, "holder") || !hasRun(t, s, "a") || hasRun(t, s, "b") || !hasRun(t, s, "c") {
		t.Error("a good closure of a dropped group was not stored, or the bad one was")
	}
	if runs.Load() != 2 || len(sigs) != 1 {
		t.Errorf("ran %d times, signals %v", runs.Load(), sigs)
	}
}

// Invariant 4: a closure that hides the loss of the transaction cannot write
// outside of one.
func TestHiddenLossIsFound(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	err := s.Update(context.Background(), store.New, func(tx store.Tx) error {
		return errors.Join(putRun("a")(tx), tx.(*Tx).conn.once("ROLLBACK"))
	})
	if err == nil || hasRun(t, s, "a") {
		t.Fatalf("answer %v for a transaction that is gone", err)
	}
	if err := s.Update(context.Background(), store.New, putRun("b")); err != nil {
		t.Fatal(err)
	}
}

// Invariant 8: a full disk is clean. SQLite rolls the whole group back; the
// small closure is stored nevertheless, and the store goes on.
func TestDiskFull(t *testing.T) {
	s := openTest(t, Config{OnFatal: func(err error) { t.Errorf("fatal: %v", err) }}, builtin)
	limit := func(tx store.Tx, pages int) error {
		return tx.(*Tx).conn.once(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
	}
	big := func(tx store.Tx) error {
		for i := range 7 {
			r := hub.Run{ID: hub.RunID(fmt.Sprint("big", i)), Objective: string(make([]byte, 1<<20))}
			if err := tx.PutRun(r); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.Update(context.Background(), store.New, func(tx store.Tx) error { return limit(tx, 400) }); err != nil {
		t.Fatal(err)
	}
	h := hold(t, s, putRun("holder"))
	h.add(context.Background(), store.New, putRun("a"))
	h.add(context.Background(), store.New, big)
	h.add(context.Background(), store.New, func(tx store.Tx) error { _ = big(tx); return nil })
	others, err := h.finish()
	if err != nil || others[0] != nil || !hub.IsCode(others[1], hub.CodeStorageFull) || !hub.IsCode(others[2], hub.CodeStorageFull) {
		t.Fatal(err, others)
	}
	if !hasRun(t, s, "holder") || !hasRun(t, s, "a") || hasRun(t, s, "big0") {
		t.Error("a full disk must refuse the large closures and keep the small ones")
	}
	if err := s.Update(context.Background(), store.New, func(tx store.Tx) error { return errors.Join(limit(tx, 1<<30), big(tx)) }); err != nil {
		t.Fatal(err)
	}
}

// Invariant 8: a COMMIT for which there is no room stores nothing of the group
// and does not stop the store.
func TestFullCommit(t *testing.T) {
	f, drv := faultySeam(t)
	s := openTest(t, Config{OnFatal: func(err error) { t.Errorf("fatal: %v", err) }}, drv)
	h := hold(t, s, putRun("holder"))
	h.add(context.Background(), store.New, func(store.Tx) error { return errTest })
	f.full.Store(true)
	f.armed.Store("COMMIT")
	others, err := h.finish()
	if !hub.IsCode(err, hub.CodeStorageFull) || !hub.IsCode(others[0], hub.CodeStorageFull) || hasRun(t, s, "holder") {
		t.Fatal(err, others)
	}
	f.armed.Store("")
	if err := s.Update(context.Background(), store.New, putRun("holder")); err != nil {
		t.Fatal(err)
	}
}

// Invariant 6: also when the end of the context has not been noticed yet.
func TestEndedContextIsSeenAtTheStart(t *testing.T) {
	j := newJob(func() error { return context.DeadlineExceeded }, nil)
	if j.start() || <-j.done != context.DeadlineExceeded {
		t.Error("a job whose context had ended was started")
	}
}

// Invariant 7: an unknown outcome is said, stops the store and is told once.
func TestCommitErrorStopsTheStore(t *testing.T) {
	f, drv := faultySeam(t)
	var fatal, published atomic.Int32
	s := openTest(t, Config{
		OnFatal: func(err error) { fatal.Add(1) },
		Publish: func([]hub.Signal) { published.Add(1) },
	}, drv)
	h := hold(t, s, putRun("holder"))
	h.add(context.Background(), store.New, func(tx store.Tx) error {
		tx.Signal(hub.Signal{Topic: hub.TopicPeer})
		return putRun("a")(tx)
	})
	h.add(context.Background(), store.New, func(tx store.Tx) error { return errTest })
	f.armed.Store("COMMIT")
	others, err := h.finish()
	for _, e := range append(others, err) {
		if !hub.IsCode(e, hub.CodeOutcomeUnknown) || !errors.Is(e, errDisk) {
			t.Errorf("answer %v", e)
		}
	}
	if err := s.Update(context.Background(), store.Settle, putRun("b")); !hub.IsCode(err, hub.CodeInternal) {
		t.Errorf("a failed store answers %v", err)
	}
	until(t, "OnFatal", func() bool { return fatal.Load() > 0 })
	if fatal.Load() != 1 || published.Load() != 0 {
		t.Errorf("OnFatal %d times, published %d times", fatal.Load(), published.Load())
	}
}

// Invariant 7: an error of the disk before anything ran is no unknown outcome,
// but stops the store too.
func TestBeginErrorStopsTheStore(t *testing.T) {
	f, drv := faultySeam(t)
	fatal := make(chan error, 1)
	s := openTest(t, Config{OnFatal: func(err error) { fatal <- err }}, drv)
	f.armed.Store("BEGIN IMMEDIATE")
	if err := s.Update(context.Background(), store.New, putRun("a")); !hub.IsCode(err, hub.CodeInternal) {
		t.Errorf("answer %v", err)
	}
	if err := <-fatal; !errors.Is(err, errDisk) {
		t.Errorf("OnFatal got %v", err)
	}
}

// Invariant 7: a closure that ends the writer's goroutine leaves nobody waiting.
func TestGoexitLeavesNobodyWaiting(t *testing.T) {
	fatal := make(chan error, 1)
	s := openTest(t, Config{OnFatal: func(err error) { fatal <- err }}, builtin)
	h := hold(t, s, func(store.Tx) error { runtime.Goexit(); return nil })
	h.add(context.Background(), store.New, putRun("a"))
	others, err := h.finish()
	if !hub.IsCode(err, hub.CodeInternal) || !hub.IsCode(others[0], hub.CodeInternal) || hasRun(t, s, "a") {
		t.Fatal(err, others)
	}
	<-fatal
}

// Invariant 2: a group that wrote nothing is not committed, so not synced.
func TestReadOnlyGroupsAreNotSynced(t *testing.T) {
	var points atomic.Int32
	s := openTest(t, Config{Hook: func(string) { points.Add(1) }}, builtin)
	for range 20 {
		err := s.Update(context.Background(), store.Settle, func(tx store.Tx) error {
			_, _, err := tx.Receipt("local", "none")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Update(context.Background(), store.New, func(tx store.Tx) error { return errors.Join(putRun("a")(tx), errTest) }); !errors.Is(err, errTest) {
		t.Fatal(err)
	}
	if points.Load() != 0 {
		t.Errorf("%d hooks of commits that had nothing to keep", points.Load())
	}
}

// Invariants 1 and 9: COMMIT, then signals, then the answer.
func TestOrderOfACommit(t *testing.T) {
	var seen []string
	var s *Store
	look := func(point string) {
		if point == "checkpoint" {
			return
		}
		if len(s.writer.cur.jobs[0].done) > 0 {
			t.Errorf("%s: already answered", point)
		}
		seen = append(seen, fmt.Sprint(point, " ", hasRun(t, s, "a")))
	}
	s = openTest(t, Config{Hook: look, Publish: func([]hub.Signal) { look("published") }}, builtin)
	err := s.Update(context.Background(), store.New, func(tx store.Tx) error {
		tx.Signal(hub.Signal{Topic: hub.TopicPeer})
		return putRun("a")(tx)
	})
	want := []string{"before_commit false", "after_commit true", "published true", "before_answer true"}
	if err != nil || !slices.Equal(seen, want) {
		t.Errorf("%v, order %v", err, seen)
	}
}

// Invariant 10: a transaction is of no use after its closure.
func TestUseAfterEnd(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	var tx store.Tx
	var rx store.Rx
	err := errors.Join(
		s.Update(context.Background(), store.New, func(x store.Tx) error { tx = x; return nil }),
		s.View(context.Background(), func(x store.Rx) error { rx = x; return nil }))
	if err != nil {
		t.Fatal(err)
	}
	if err := putRun("a")(tx); !errors.Is(err, errEnded) {
		t.Errorf("writing: %v", err)
	}
	if _, err := rx.Run("a"); !errors.Is(err, errEnded) {
		t.Errorf("reading: %v", err)
	}
}

// Invariant 11: new work is refused early, settlement and imports go on.
func TestFreeSpaceWatermark(t *testing.T) {
	s := openTest(t, Config{FreeSpaceMin: 1000}, builtin)
	var free, looks atomic.Int64
	var now atomic.Int64
	s.space.volume = func(string) (volume, error) { looks.Add(1); return volume{size: 1 << 40, free: free.Load()}, nil }
	s.space.elapsed = func() time.Duration { return time.Duration(now.Load()) }
	s.space.at.Store(0)
	try := func(c store.Class, want hub.Code) {
		t.Helper()
		err := s.Update(context.Background(), c, func(store.Tx) error { return nil })
		if hub.CodeOf(err) != want {
			t.Errorf("class %d: %v", c, err)
		}
	}
	free.Store(999)
	try(store.New, "") // the look at opening still counts
	now.Store(int64(time.Second))
	try(store.New, hub.CodeStorageFull)
	try(store.Settle, "")
	try(store.Import, "")
	free.Store(1000)
	try(store.New, hub.CodeStorageFull)
	now.Store(int64(2 * time.Second))
	try(store.New, "")
	if n := (volume{size: 160}).needed(1000); n != 10 {
		t.Errorf("a volume of 160 bytes needs %d free", n)
	}
	if looks.Load() != 2 {
		t.Errorf("looked %d times in two seconds", looks.Load())
	}
}

// Invariant 12: after Close everything is refused, what waited was run.
func TestCloseRunsWhatWaits(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	h := hold(t, s, putRun("holder"))
	h.add(context.Background(), store.New, putRun("a"))
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	until(t, "closing", func() bool {
		return hub.IsCode(s.queue.push(store.New, newJob(func() error { return context.Canceled }, nil)), hub.CodeHubDraining)
	})
	if others, err := h.finish(); err != nil || others[0] != nil {
		t.Fatal(err, others)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if err := s.Update(context.Background(), store.New, putRun("b")); !hub.IsCode(err, hub.CodeHubDraining) {
		t.Errorf("Update after Close: %v", err)
	}
	if err := s.View(context.Background(), func(store.Rx) error { return nil }); !hub.IsCode(err, hub.CodeHubDraining) {
		t.Errorf("View after Close: %v", err)
	}
}

// Invariant 13: commits are checkpointed beside the writer, at once when the
// log is large; an idle store is left alone.
func TestCheckpointer(t *testing.T) {
	rounds := make(chan struct{}, 100)
	cfg := Config{Hook: func(p string) {
		if p == "checkpoint" {
			rounds <- struct{}{}
		}
	}}
	large := hub.Run{ID: "large", Objective: string(make([]byte, 3<<20))}
	for name, c := range map[string]struct {
		after time.Duration
		run   hub.Run
	}{"large": {time.Hour, large}, "small": {time.Millisecond, hub.Run{ID: "small"}}} {
		s := openTest(t, cfg, builtin)
		s.checker.after = c.after
		if err := s.Update(context.Background(), store.New, func(tx store.Tx) error { return tx.PutRun(c.run) }); err != nil {
			t.Fatal(err)
		}
		select {
		case <-rounds:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: no checkpoint", name)
		}
		select {
		case <-rounds:
			t.Errorf("%s: an idle store was checkpointed again", name)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Invariant 7: a checkpoint that fails on the disk stops the store.
func TestCheckpointErrorStopsTheStore(t *testing.T) {
	f, drv := faultySeam(t)
	fatal := make(chan error, 1)
	s := openTest(t, Config{OnFatal: func(err error) { fatal <- err }}, drv)
	s.checker.after = time.Millisecond
	f.armed.Store("PRAGMA wal_checkpoint(PASSIVE)")
	if err := s.Update(context.Background(), store.New, putRun("a")); err != nil {
		t.Fatal(err)
	}
	if err := <-fatal; !errors.Is(err, errDisk) {
		t.Errorf("OnFatal got %v", err)
	}
	if err := s.Update(context.Background(), store.New, putRun("b")); !hub.IsCode(err, hub.CodeInternal) {
		t.Errorf("a failed store answers %v", err)
	}
}
