package receipt_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
)

// aging is a store whose clock a test advances, and how often its requests had
// their effect.
type aging struct {
	*testing.T
	st      *sqlite.Store
	clock   atomic.Int64
	effects int
}

func newAging(t *testing.T) *aging {
	a := &aging{T: t}
	a.clock.Store(int64(hub.MicrosOf(time.Now())))
	a.st = openAt(t, func() hub.Micros { return hub.Micros(a.clock.Load()) })
	return a
}

func (a *aging) pass(d time.Duration) { a.clock.Add(d.Microseconds()) }

func (a *aging) do(key hub.RequestID, run hub.RunID) (answer, error) {
	return receipt.Do(a.Context(), a.st, store.New, request(a.T, operator, key, "x"), func(store.Tx) (answer, error) {
		a.effects++
		return answer{Value: a.effects, Run: run}, nil
	})
}

func (a *aging) show(key hub.RequestID) (rec store.Receipt, err error) {
	err = a.st.View(a.Context(), func(rx store.Rx) (err error) {
		rec, err = receipt.Show(rx, operator, key)
		return err
	})
	return rec, err
}

// Invariant 10, for what belongs to no Run.
func TestUnscopedAnswersExpire(t *testing.T) {
	a := newAging(t)
	key := hub.NewRequestID()
	if _, err := a.do(key, ""); err != nil {
		t.Fatal(err)
	}
	a.pass(receipt.UnscopedLife)
	if got, err := a.do(key, ""); err != nil || !got.Mutation.Replayed || got.Value != 1 {
		t.Fatalf("within its life: %+v %v", got, err)
	}
	a.pass(time.Second)
	if _, err := a.do(key, ""); !hub.IsCode(err, hub.CodeRequestExpired) {
		t.Errorf("after its life: %v", err)
	}
	if _, err := a.show(key); !hub.IsCode(err, hub.CodeRequestExpired) {
		t.Errorf("shown after its life: %v", err)
	}
	if a.effects != 1 {
		t.Errorf("%d effects", a.effects)
	}
}

// Invariant 10, for what belongs to a Run: the record outlives its body, also
// when the body has been swept away.
func TestAnswersOfRunsLoseTheirBodies(t *testing.T) {
	a := newAging(t)
	key, other := hub.NewRequestID(), hub.NewRequestID()
	for _, k := range []hub.RequestID{key, other} {
		if _, err := a.do(k, "run_a"); err != nil {
			t.Fatal(err)
		}
		a.pass(receipt.BodyLife)
	}
	a.pass(-time.Hour) // other is within its life
	if n, err := receipt.Sweep(t.Context(), a.st); err != nil || n != 1 {
		t.Fatalf("the sweep passed %d receipts: %v", n, err)
	}
	if n, err := receipt.Sweep(t.Context(), a.st); err != nil || n != 0 {
		t.Fatalf("the next sweep passed %d receipts: %v", n, err)
	}
	rec, err := a.show(key)
	if err != nil || len(rec.Body) != 0 || !receipt.BodyExpired(rec, hub.Micros(a.clock.Load())) || rec.Object != "made" || rec.Sum == "" {
		t.Errorf("%+v %v", rec, err)
	}
	if _, err := a.do(key, "run_a"); !hub.IsCode(err, hub.CodeRequestExpired) {
		t.Errorf("a repeated request whose answer is gone: %v", err)
	}
	if got, err := a.do(other, "run_a"); err != nil || got.Value != 2 || a.effects != 2 {
		t.Errorf("the younger one: %+v %v, %d effects", got, err, a.effects)
	}
}

// Invariant 10: an unfinished request is not forgotten.
func TestUnfinishedRequestsStay(t *testing.T) {
	a := newAging(t)
	jobs := group.New(t.Context())
	defer jobs.Stop(time.Second)
	g, key := receipt.NewGate(a.st, jobs.Go), hub.NewRequestID()
	e := &effects{release: make(chan struct{}), unknown: true}
	close(e.release)
	op := e.operation()
	if _, err := receipt.Long(t.Context(), g, request(t, operator, key, "x"), op); err != nil {
		t.Fatal(err)
	}
	a.pass(2 * receipt.BodyLife)
	if _, err := receipt.Sweep(t.Context(), a.st); err != nil {
		t.Fatal(err)
	}
	if rec, err := a.show(key); err != nil || rec.State != store.ReceiptUnknown || len(rec.Body) == 0 {
		t.Errorf("%+v %v", rec, err)
	}
}
