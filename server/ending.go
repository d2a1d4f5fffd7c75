package server

import "sync"

// ending tells waits that the hub stops. It is safe for concurrent use; the zero
// value is ready.
type ending struct {
	mu    sync.Mutex
	over  bool           // guarded by mu
	next  int            // guarded by mu
	calls map[int]func() // guarded by mu
}

// whenOver has fn called once, when the hub stops or at once if it does already.
// forget takes that back. fn must not block.
func (e *ending) whenOver(fn func()) (forget func()) {
	e.mu.Lock()
	if e.over {
		e.mu.Unlock()
		fn()
		return func() {}
	}
	defer e.mu.Unlock()
	if e.calls == nil {
		e.calls = map[int]func(){}
	}
	id := e.next
	e.next++
	e.calls[id] = fn
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.calls, id)
	}
}

// end calls what waits; it may be called more than once.
func (e *ending) end() {
	e.mu.Lock()
	calls := e.calls
	e.over, e.calls = true, nil
	e.mu.Unlock()
	for _, fn := range calls {
		fn()
	}
}

func (e *ending) isOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over
}
