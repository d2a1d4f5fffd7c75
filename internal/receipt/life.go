package receipt

import (
	"context"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/store"
)

// How long an answer is kept (design page 3.6). The record itself stays, so
// that its key never has a second effect: an unfinished one whole, a finished
// one without its answer.
const (
	// UnscopedLife is that of an answer that belongs to no Run.
	UnscopedLife = 30 * 24 * time.Hour
	// BodyLife is that of every other one.
	BodyLife = 180 * 24 * time.Hour
)

// BodyExpired reports whether the answer of a finished request is kept no more. Those
// of the engine are kept for ever: it asks under derived ids, whenever it looks.
func BodyExpired(rec store.Receipt, now hub.Micros) bool {
	if rec.State != store.ReceiptDone || rec.Principal == string(hub.Engine) {
		return false
	}
	life := BodyLife
	if rec.Run == "" {
		life = UnscopedLife
	}
	return len(rec.Body) == 0 || now.Sub(rec.CreatedAt) > life
}

// Expired is request_expired for a record whose answer is kept no more, else
// nil.
func Expired(rec store.Receipt, now hub.Micros) error {
	if !BodyExpired(rec, now) {
		return nil
	}
	e := hub.Errorf(hub.CodeRequestExpired, "%s was done (%s) and its answer is no longer kept", rec.Key, rec.Op)
	e.Hint = "look at what it made, or make a new request under a new id"
	if rec.Object != "" {
		e.Hint = "look at " + rec.Object + ", which it made or changed, or make a new request under a new id"
	}
	return e
}

type showRx interface {
	store.ReceiptReader
	Now() hub.Micros
}

// Show returns the record of one of p's own requests. It is request_expired for
// one that belonged to no Run and whose time is over.
func Show(rx showRx, p hub.Principal, key hub.RequestID) (store.Receipt, error) {
	rec, ok, err := rx.Receipt(p.Space(), key)
	switch {
	case err != nil:
		return rec, err
	case !ok || rec.Principal != p.Name():
		return rec, noRequest(key)
	case rec.Run == "":
		return rec, Expired(rec, rx.Now())
	}
	return rec, nil
}

// noRequest may say that a request had no effect only where a whole id was given.
func noRequest(key hub.RequestID) error {
	e := hub.Errorf(hub.CodeRequestNotFound, "the caller has made no request %s", key)
	if !id.Valid(hub.PrefixRequest, string(key)) {
		e.Hint = "give the id whole, or an abbreviation of one of your own requests; this says nothing about what a request did"
	}
	return e
}

const sweepRows = 500

// Sweep drops the answers that are older than BodyLife, in transactions of a
// few hundred rows, and returns how many records it passed. An unfinished
// request keeps its record whole.
func Sweep(ctx context.Context, w store.Writer) (passed int, err error) {
	for {
		var n int
		err := w.Update(ctx, store.New, func(tx store.Tx) (err error) {
			n, err = tx.SweepReceipts(tx.Now().Add(-BodyLife), sweepRows)
			return err
		})
		passed += n
		if err != nil || n < sweepRows {
			return passed, err
		}
	}
}
