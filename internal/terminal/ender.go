package terminal

import (
	"context"
	"errors"
	"sync"
	"time"
)

// tree is what an ender ends; nil proves that nothing is left.
type tree interface {
	end(ctx context.Context, grace time.Duration) error
}

// ender ends a tree on behalf of several callers, one at a time. A caller with
// an earlier deadline cuts the running one short.
type ender struct {
	tree tree
	turn sync.Mutex // held while the tree is being ended

	mu       sync.Mutex // guards the rest
	deadline time.Time  // of the running kill
	cancel   context.CancelFunc
}

// kill ends the tree; SIGKILL follows after grace. Nil when the tree is gone,
// or a caller with less grace has taken over.
func (e *ender) kill(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	deadline := time.Now().Add(grace)
	e.preempt(deadline)
	e.turn.Lock()
	defer e.turn.Unlock()
	e.own(deadline, cancel)
	err := e.tree.end(ctx, time.Until(deadline))
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// preempt cancels a running kill whose deadline is later.
func (e *ender) preempt(deadline time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil && deadline.Before(e.deadline) {
		e.cancel()
	}
}

func (e *ender) own(deadline time.Time, cancel context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline, e.cancel = deadline, cancel
}

// rest waits for a running kill, which keeps its grace, and ends what is left.
func (e *ender) rest(ctx context.Context, grace time.Duration) error {
	e.turn.Lock()
	defer e.turn.Unlock()
	return e.tree.end(ctx, grace)
}
