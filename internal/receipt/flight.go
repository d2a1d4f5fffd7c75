package receipt

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Flights lets concurrent equal requests share one run. The zero value is
// ready; it is safe for concurrent use and holds only what runs now.
type Flights struct {
	mu      sync.Mutex
	running map[flightKey]*Flight // guarded by mu
}

type flightKey struct {
	space string
	key   hub.RequestID
}

// Flight is one running request.
type Flight struct {
	req    Request
	begun  atomic.Bool   // it is being recorded, or is: it goes on without its callers
	onset  any           // what its record says while it runs; read after known is closed
	known  chan struct{} // closed once it is on record
	done   chan struct{}
	answer any // read after done is closed
	err    error
}

// Join returns the flight of r and whether the caller flies it: it then has to
// Land it. A different request under the same key is request_mismatch.
func (f *Flights) Join(r Request) (fl *Flight, mine bool, err error) {
	k := flightKey{r.Principal.Space(), r.Key}
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl, ok := f.running[k]; ok {
		q := fl.req
		return fl, false, r.match(store.Receipt{Principal: q.Principal.Name(), Op: q.Op, Sum: q.sum()})
	}
	if f.running == nil {
		f.running = map[flightKey]*Flight{}
	}
	fl = &Flight{req: r, known: make(chan struct{}), done: make(chan struct{})}
	f.running[k] = fl
	return fl, true, nil
}

// Land ends a flight with its answer and wakes everybody who joined it.
func (f *Flights) Land(fl *Flight, answer any, err error) {
	fl.answer, fl.err = answer, err
	f.mu.Lock()
	delete(f.running, flightKey{fl.req.Principal.Space(), fl.req.Key})
	f.mu.Unlock()
	close(fl.done)
}

// recorded notes that the flight is on record.
func (fl *Flight) recorded(onset any) {
	fl.onset = onset
	close(fl.known)
}

// Wait returns the flight's answer. If ctx ends first it returns ctx's error, or
// if the operation is on record and goes on, what is recorded and
// outcome_unknown.
func (fl *Flight) Wait(ctx context.Context) (any, error) {
	select {
	case <-fl.done:
		return fl.answer, fl.err
	case <-ctx.Done():
	}
	if !fl.begun.Load() {
		return nil, ctx.Err()
	}
	select { // being recorded takes one transaction
	case <-fl.done:
		return fl.answer, fl.err
	case <-fl.known:
		return fl.onset, underWay(fl.req, ctx.Err())
	}
}
