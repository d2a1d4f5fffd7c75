package mail

import (
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// waiters holds the one actionable waiter of each mailbox. Safe for concurrent
// use; the zero value is ready.
type waiters struct {
	mu   sync.Mutex
	byID map[hub.Box]*waiter // guarded by mu
}

type waiter struct {
	generation int64
	since      time.Time
}

// claim registers a waiter for the generation and returns the release. An equal
// or newer generation's waiter makes it waiter_exists; an older one's is
// replaced, for it is about to learn that it is fenced.
func (w *waiters) claim(box hub.Box, generation int64, now time.Time) (release func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cur, ok := w.byID[box]; ok && cur.generation >= generation {
		e := hub.Errorf(hub.CodeWaiterExists, "another call has waited on %s for %s", box, now.Sub(cur.since).Round(time.Second))
		e.Hint = "end that call, or use check --peek, which disturbs nobody"
		return nil, e
	}
	if w.byID == nil {
		w.byID = map[hub.Box]*waiter{}
	}
	mine := &waiter{generation: generation, since: now}
	w.byID[box] = mine
	return func() { w.release(box, mine) }, nil
}

func (w *waiters) release(box hub.Box, mine *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID[box] == mine {
		delete(w.byID, box)
	}
}
