// Package group owns goroutines: each has a parent that cancels it and waits
// for it to end.
package group

import (
	"context"
	"sync"
	"time"
)

// Group runs goroutines until Stop. It is safe for concurrent use.
type Group struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	stopped bool // guarded by mu
	wg      sync.WaitGroup
}

// New makes a Group whose goroutines get a context derived from parent.
func New(parent context.Context) *Group {
	ctx, cancel := context.WithCancel(parent)
	return &Group{ctx: ctx, cancel: cancel}
}

// Go runs fn in a goroutine of the group. It returns false, and runs nothing,
// once Stop was called.
func (g *Group) Go(fn func(context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		fn(g.ctx)
	}()
	return true
}

// Stop refuses new goroutines, cancels the running ones and waits for them at
// most for the given time; it reports whether all have ended.
func (g *Group) Stop(wait time.Duration) bool {
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	g.cancel()
	done := make(chan struct{})
	go func() {
		g.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(wait):
		return false
	}
}
