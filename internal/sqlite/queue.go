package sqlite

import (
	"sync"
	"sync/atomic"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// job is one Update on its way. It is taken by the writer or withdrawn by its
// caller, never both.
type job struct {
	gone  func() error // why the caller no longer waits, nil while it does
	fn    func(store.Tx) error
	done  chan error // capacity 1; the first answer counts
	owned atomic.Bool
}

func newJob(gone func() error, fn func(store.Tx) error) *job {
	return &job{gone: gone, fn: fn, done: make(chan error, 1)}
}

// withdraw reports whether the job will never run.
func (j *job) withdraw() bool { return j.owned.CompareAndSwap(false, true) }

// start reports whether the writer is to run the job; it answers one whose
// caller has given up.
func (j *job) start() bool {
	if !j.owned.CompareAndSwap(false, true) {
		return false
	}
	if err := j.gone(); err != nil {
		j.answer(err)
		return false
	}
	return true
}

func (j *job) answer(err error) {
	select {
	case j.done <- err:
	default:
	}
}

const (
	classes = int(store.New) + 1
	// keptSlot of each eight goes to the last class, if it has a job.
	keptSlot = 8
)

// queue holds the waiting jobs of the three classes, first in, first out
// within each. It is safe for concurrent use.
type queue struct {
	wake chan struct{} // capacity 1: something waits, or the queue has ended

	mu      sync.Mutex
	waiting [classes][]*job // guarded by mu
	refusal error           // guarded by mu; set once no more jobs are taken
	failed  error           // guarded by mu
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) push(c store.Class, j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal != nil {
		return q.refusal
	}
	q.waiting[c] = append(q.waiting[c], j)
	q.rouse()
	return nil
}

func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop returns the next job for the slot of a group, nil if none waits.
func (q *queue) pop(slot int) *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := classes - 1
	if slot%keptSlot == keptSlot-1 && len(q.waiting[last]) > 0 {
		return q.shift(last)
	}
	for c := range q.waiting {
		if len(q.waiting[c]) > 0 {
			return q.shift(c)
		}
	}
	return nil
}

func (q *queue) shift(c int) *job {
	j := q.waiting[c][0]
	q.waiting[c][0] = nil
	q.waiting[c] = q.waiting[c][1:]
	return j
}

// wait blocks until a job waits; false says that none will ever come.
func (q *queue) wait() bool {
	for {
		q.mu.Lock()
		n, over := 0, q.refusal != nil
		for _, w := range q.waiting {
			n += len(w)
		}
		q.mu.Unlock()
		if n > 0 || over {
			return n > 0
		}
		<-q.wake
	}
}

// close takes no more jobs; those that wait are still run.
func (q *queue) close(refusal error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal == nil {
		q.refusal = refusal
	}
	q.rouse()
}

// fail takes no more jobs and answers those that wait: none of them ran.
func (q *queue) fail(cause error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = &hub.Error{Code: hub.CodeInternal, Message: "the store has failed and the hub must restart", Err: cause}
	q.refusal = q.failed
	for c, w := range q.waiting {
		for _, j := range w {
			j.answer(q.failed)
		}
		q.waiting[c] = nil
	}
	q.rouse()
}

func (q *queue) failure() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}
