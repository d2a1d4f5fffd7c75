package receipt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Gate runs operations with outside effects, once per request id. It is safe
// for concurrent use. The operations run in goroutines of Spawn and end with
// its context, not with their caller's.
type Gate struct {
	w       store.Store
	spawn   func(func(context.Context)) bool
	flights Flights
}

// NewGate makes a Gate. spawn runs a function in a goroutine that has an
// owner; it returns false when the owner is stopping.
func NewGate(w store.Store, spawn func(func(context.Context)) bool) *Gate {
	return &Gate{w: w, spawn: spawn}
}

// Operation is a mutation with outside effects.
type Operation[T any] struct {
	// Class is that of Begin's transaction.
	Class store.Class
	// Prepare validates with reads outside the store, before anything is
	// committed; it does not run for a request that is on record.
	Prepare func(context.Context) error
	// Begin validates and commits the first stage together with the running
	// receipt. An error leaves nothing behind.
	Begin func(store.Tx) (T, error)
	// Perform makes the effects, committing each stage before the effect that
	// follows it, and returns the answer.
	Perform func(context.Context, T) (T, error)
	// Observe finds out what became of a request that was begun, without
	// repeating its effects, and returns the answer as it is known now.
	Observe func(context.Context, T) (T, error)
	// Definite says that coded errors of Perform and Observe mean that nothing
	// happened; else any error after Begin leaves the outcome open.
	Definite bool
	// Unknown reports whether an answer says outcome_unknown.
	Unknown func(T) bool
	// Open completes the answer that Begin recorded for a caller who cannot
	// learn the outcome: the operation goes on without it, or its end could not
	// be recorded. nil: the caller gets the error outcome_unknown.
	Open func(T) T
}

// Long runs op once for r and returns its answer; a repeated request joins,
// replays or observes. When ctx ends first the operation goes on: once it has
// begun the answer is that of op.Open, before that ctx's error.
func Long[T any, P Result[T]](ctx context.Context, g *Gate, r Request, op Operation[T]) (T, error) {
	var out T
	fl, mine, err := g.flights.Join(r)
	if err != nil {
		return out, err
	}
	if mine && !g.spawn(func(ctx context.Context) { run[T, P](ctx, g, fl, op) }) {
		g.flights.Land(fl, nil, hub.Errorf(hub.CodeHubDraining, "the hub is stopping"))
	}
	answer, err := fl.Wait(ctx)
	out, _ = answer.(T) // equal requests have equal operations
	if op.Open != nil && answer != nil && hub.IsCode(err, hub.CodeOutcomeUnknown) {
		return op.Open(out), nil
	}
	if err != nil {
		return *new(T), err
	}
	if !mine {
		P(&out).Mut().Replayed = true
	}
	return out, nil
}

func run[T any, P Result[T]](ctx context.Context, g *Gate, fl *Flight, op Operation[T]) {
	out, err := perform[T, P](ctx, g, fl, op)
	if err != nil && fl.onset == nil {
		g.flights.Land(fl, nil, err) // nothing is on record
		return
	}
	g.flights.Land(fl, out, err)
}

func perform[T any, P Result[T]](ctx context.Context, g *Gate, fl *Flight, op Operation[T]) (T, error) {
	r := fl.req
	if err := Prepare(ctx, g.w, r, op.Prepare); err != nil {
		return *new(T), err
	}
	fl.begun.Store(true)
	begun, rec, found, err := begin[T, P](ctx, g, r, op)
	switch {
	case err != nil:
		return begun, err
	case found && rec.State == store.ReceiptDone:
		return replay[T, P](rec)
	}
	fl.recorded(begun)
	do := op.Perform
	if found {
		do = op.Observe
	}
	out, err := do(ctx, begun)
	if _, coded := errors.AsType[*hub.Error](err); coded && op.Definite {
		return begun, cmp.Or(finish[T, P](ctx, g, r, begun, store.ReceiptRefused), err)
	}
	if err != nil {
		return begun, underWay(r, err)
	}
	P(&out).Mut().RequestID, P(&out).Mut().Replayed = r.Key, found
	state := store.ReceiptDone
	if op.Unknown(out) {
		state = store.ReceiptUnknown
	}
	if err := finish[T, P](ctx, g, r, out, state); err != nil {
		return begun, underWay(r, err)
	}
	return out, nil
}

// underWay is the error of an operation that has begun: whatever went wrong, its
// effect may have happened, and its record is there to be asked for again.
func underWay(r Request, err error) error {
	e := hub.Errorf(hub.CodeOutcomeUnknown, "%s is on record as %s and its end is not known", r.Op, r.Key)
	e.Hint = "repeat the request under the same id: it looks, and does nothing twice"
	e.Err = err
	return e
}

// Prepare runs fn, which looks at the world outside of the store, unless r is
// on record: a recorded answer does not depend on the world any more.
func Prepare(ctx context.Context, s store.Reader, r Request, fn func(context.Context) error) error {
	var found bool
	err := s.View(ctx, func(rx store.Rx) (err error) {
		_, found, err = Find(rx, r)
		return err
	})
	if err != nil || found || fn == nil {
		return err
	}
	return fn(ctx)
}

// begin is beginTx in a transaction of its own.
func begin[T any, P Result[T]](ctx context.Context, g *Gate, r Request, op Operation[T]) (T, store.Receipt, bool, error) {
	var out T
	var rec store.Receipt
	var found bool
	err := g.w.Update(ctx, op.Class, func(tx store.Tx) (err error) {
		out, rec, found, err = beginTx[T, P](tx, r, func(tx store.Tx) (T, error) {
			if err := tooMany(tx, r.Principal.Name()); err != nil {
				return *new(T), err
			}
			return op.Begin(tx)
		})
		return err
	})
	return out, rec, found, err
}

// BeginInTx begins a long operation inside a transaction that the caller has: begin
// and the running receipt commit with it or not at all. Long with the same request
// then observes what was begun. A request that is on record begins nothing again
// and is answered as it is recorded. It is not refused for others that are
// unfinished: what causes it is decided, and could not be committed without it.
func BeginInTx[T any, P Result[T]](tx store.Tx, r Request, begin func(store.Tx) (T, error)) (T, error) {
	out, _, found, err := beginTx[T, P](tx, r, begin)
	if err != nil {
		return *new(T), err
	}
	P(&out).Mut().Replayed = found
	return out, nil
}

// beginTx finds the record of r or makes it, running, with begin.
func beginTx[T any, P Result[T]](tx store.Tx, r Request, begin func(store.Tx) (T, error)) (out T, rec store.Receipt, found bool, err error) {
	if rec, found, err = Find(tx, r); err != nil {
		return out, rec, found, err
	}
	if found {
		return out, rec, found, json.Unmarshal(rec.Body, &out)
	}
	if out, err = begin(tx); err != nil {
		return out, rec, found, err
	}
	P(&out).Mut().RequestID = r.Key
	if rec, err = r.Record(tx.Now(), store.ReceiptRunning, P(&out)); err != nil {
		return out, rec, found, err
	}
	return out, rec, found, tx.PutReceipt(rec)
}

// MaxUnfinished bounds the unfinished receipts of one principal.
const MaxUnfinished = 10_000

func tooMany(tx store.Receipts, principal string) error {
	n, err := tx.UnfinishedReceipts(principal)
	if err == nil && n >= MaxUnfinished {
		return hub.Errorf(hub.CodeReceiptsFull, "%d requests of %s are unfinished", n, principal)
	}
	return err
}

func finish[T any, P Result[T]](ctx context.Context, g *Gate, r Request, out T, state store.ReceiptState) error {
	stored := out
	P(&stored).Mut().Replayed = false
	return g.w.Update(ctx, store.Settle, func(tx store.Tx) error {
		rec, err := r.Record(tx.Now(), state, P(&stored))
		if err != nil {
			return err
		}
		return Save(tx, rec)
	})
}
