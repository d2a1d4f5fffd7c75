package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	maxGroup     = 512     // closures per commit
	maxTxBytes   = 8 << 20 // bytes that one closure may bind
	maxGroupSize = 8 << 20 // bytes after which a group takes no more closures
	// gathering is how often the writer lets others run before it closes a
	// group: that makes groups several times larger and costs no latency.
	gathering = 4
)

// writer owns the one connection that writes. Its goroutine is run.
type writer struct {
	conn      *conn
	drv       seam
	cfg       Config
	queue     *queue
	committed func(bytes int)
	fatal     func(error)
	ended     chan struct{}

	goid    atomic.Int64 // of run
	running atomic.Bool  // a closure is running
	cur     *group       // owned by run
}

func newWriter(c *conn, drv seam, cfg Config, q *queue, committed func(int), fatal func(error)) *writer {
	return &writer{conn: c, drv: drv, cfg: cfg, queue: q, committed: committed, fatal: fatal, ended: make(chan struct{})}
}

// group is the closures of one commit. errs has the answer of each.
type group struct {
	jobs  []*job
	errs  []error
	sigs  []hub.Signal
	bytes int
	wrote bool
	now   hub.Micros
	began time.Time
}

// answer gives each closure its own answer, or all of them err if it is set.
func (g *group) answer(err error) {
	for i, j := range g.jobs {
		if err != nil {
			j.answer(err)
		} else {
			j.answer(g.errs[i])
		}
	}
}

// errDied says that SQLite dropped the transaction of a group.
var errDied = errors.New("the transaction was rolled back by SQLite")

func (w *writer) run() {
	defer close(w.ended)
	w.goid.Store(goroutineID())
	whole := false
	defer func() {
		if !whole { // a closure ended the goroutine: runtime.Goexit
			w.abandon(hub.Errorf(hub.CodeInternal, "a transaction ended the writer's goroutine"))
		}
	}()
	for w.queue.wait() {
		w.serve()
	}
	whole = true
}

func (w *writer) abandon(err error) {
	if w.cur != nil {
		w.cur.answer(err)
	}
	w.fatal(err)
}

// callsItself reports whether the caller runs inside a closure of this writer.
// The look at the goroutine is taken only while a closure runs.
func (w *writer) callsItself() bool {
	return w.running.Load() && goroutineID() == w.goid.Load()
}

// goroutineID reads the number in "goroutine 12 [running]:".
func goroutineID() int64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// serve runs what waits as one group and commits it.
func (w *writer) serve() {
	first := w.take(0)
	if first == nil {
		return
	}
	g, err := w.fill(first)
	switch {
	case err == nil:
		w.settle(g)
	case errors.Is(err, errDied):
		w.rerun(g)
	default:
		w.refuse(g, err)
	}
	w.cur = nil
}

// take returns the next job that still has a caller, nil if none waits.
func (w *writer) take(slot int) *job {
	for {
		j := w.queue.pop(slot)
		if j == nil || j.start() {
			return j
		}
	}
}

// gather is take, but lets others run before it gives up.
func (w *writer) gather(slot int) *job {
	for range gathering {
		if j := w.take(slot); j != nil {
			return j
		}
		runtime.Gosched()
	}
	return w.take(slot)
}

func (w *writer) fill(first *job) (*group, error) {
	g, err := w.begin(first)
	if err != nil {
		return g, err
	}
	for j := first; ; {
		if err := w.runOne(g, j); err != nil {
			return g, err
		}
		if len(g.jobs) == maxGroup || g.bytes >= maxGroupSize {
			return g, nil
		}
		if j = w.gather(len(g.jobs)); j == nil {
			return g, nil
		}
		g.jobs = append(g.jobs, j)
	}
}

// begin opens a transaction for a group that starts with the job.
func (w *writer) begin(first *job) (*group, error) {
	g := &group{now: w.cfg.Now(), began: time.Now(), jobs: []*job{first}}
	w.cur = g
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return g, fmt.Errorf("beginning a transaction: %w", err)
	}
	return g, nil
}

// runOne runs the group's newest job under its own savepoint and records its
// answer. It fails with errDied if the transaction is gone.
func (w *writer) runOne(g *group, j *job) error {
	if _, err := w.conn.exec("SAVEPOINT r"); err != nil {
		g.errs = append(g.errs, fmt.Errorf("setting a savepoint: %w", err))
		return errDied
	}
	tx := &Tx{querier: querier{&session{conn: w.conn}}, drv: w.drv, now: g.now}
	err := w.guarded(j.fn, tx)
	if err == nil {
		err = tx.broken
	}
	g.errs = append(g.errs, err)
	g.bytes += tx.bytes
	if err != nil {
		return w.undo()
	}
	if _, err := w.conn.exec("RELEASE r"); err != nil {
		g.errs[len(g.errs)-1] = fmt.Errorf("releasing a savepoint: %w", err)
		return errDied
	}
	g.wrote = g.wrote || tx.wrote
	g.sigs = append(g.sigs, tx.sigs...)
	return nil
}

// undo takes one closure's changes back. That it fails is the proof that the
// transaction has ended: without one there is no such savepoint.
func (w *writer) undo() error {
	if _, err := w.conn.exec("ROLLBACK TO r"); err != nil {
		return errDied
	}
	if _, err := w.conn.exec("RELEASE r"); err != nil {
		return errDied
	}
	return nil
}

func (w *writer) guarded(fn func(store.Tx) error, tx *Tx) (err error) {
	w.running.Store(true)
	defer func() {
		w.running.Store(false)
		tx.ended = true
		if p := recover(); p != nil {
			err = &hub.Error{Code: hub.CodeInternal, Message: "a transaction panicked", Err: fmt.Errorf("%v\n%s", p, debug.Stack())}
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.count()
}

// rerun runs the closures of a dropped group again, one per transaction, so
// that only the one at fault is refused.
func (w *writer) rerun(dead *group) {
	w.rollback()
	for _, j := range dead.jobs {
		if err := w.queue.failure(); err != nil {
			j.answer(err)
			continue
		}
		w.rerunOne(j)
	}
}

func (w *writer) rerunOne(j *job) {
	g, err := w.begin(j)
	if err != nil {
		w.refuse(g, err)
		return
	}
	if w.runOne(g, j) == nil {
		w.settle(g)
		return
	}
	w.rollback()
	g.answer(nil)
}

// rollback ends the transaction, if there still is one: that there is none is
// its usual error. One that could not be ended makes the next BEGIN fail, which
// stops the store.
func (w *writer) rollback() { _, _ = w.conn.exec("ROLLBACK") }

// refuse answers a group that could not begin; nothing of it was committed.
func (w *writer) refuse(g *group, err error) {
	f := w.drv.classify(err)
	if f == faultFull {
		err = storageFull(err)
	}
	g.answer(err)
	if f != faultFull && f != faultBusy {
		w.fatal(err)
	}
}

// settle commits a group and answers it.
func (w *writer) settle(g *group) {
	if !g.wrote {
		w.rollback()
		w.publish(g)
		g.answer(nil)
		return
	}
	w.cfg.Hook("before_commit")
	if _, err := w.conn.exec("COMMIT"); err != nil {
		w.uncommitted(g, err)
		return
	}
	w.cfg.Hook("after_commit")
	w.committed(g.bytes)
	w.cfg.Committed(len(g.jobs), time.Since(g.began))
	w.publish(g)
	w.cfg.Hook("before_answer")
	g.answer(nil)
}

// uncommitted answers a group whose COMMIT failed. A full disk is clean:
// nothing was committed. Of anything else the outcome is not known before the
// store is opened again. Errors of single closures may rest on what others of
// the group wrote, so all get the same answer.
func (w *writer) uncommitted(g *group, err error) {
	if w.drv.classify(err) == faultFull {
		w.rollback()
		g.answer(storageFull(err))
		return
	}
	err = fmt.Errorf("committing: %w", err)
	g.answer(&hub.Error{Code: hub.CodeOutcomeUnknown, Message: "the store could not say whether this was committed", Err: err})
	w.fatal(err)
}

func (w *writer) publish(g *group) {
	if len(g.sigs) == 0 {
		return
	}
	seen := make(map[hub.Signal]bool, len(g.sigs))
	once := g.sigs[:0]
	for _, s := range g.sigs {
		if !seen[s] {
			seen[s] = true
			once = append(once, s)
		}
	}
	w.cfg.Publish(once)
}

func storageFull(err error) error {
	return &hub.Error{Code: hub.CodeStorageFull, Message: "nothing was stored", Err: err}
}
