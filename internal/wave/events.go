package wave

import (
	"context"
	"fmt"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	eventBatch  = 256                 // events read in one transaction, at most
	eventKeep   = 30 * 24 * time.Hour // of events whose wave has ended
	sweptEvents = 1000                // dropped in one transaction, at most
)

// Tail says what is read of the log of events. At most one field of Filter is set.
type Tail struct {
	Filter store.EventFilter
	After  *int64        // the sequence to begin behind; nil: with the oldest kept
	Once   bool          // end behind the newest event
	Beat   time.Duration // most between two calls of take, above 0
}

// Events is what Follow hands over. What the filter selects up to Seq has been
// handed over with it, so that a reader may go on behind Seq. Without a List it is
// a sign of life.
type Events struct {
	List []hub.WaveEvent
	Seq  int64
	At   hub.Micros
}

// Follow hands over the events that the tail selects, in order and each once, and
// a sign of life when all there are have been handed over and after each Beat. It
// returns when ctx ends, with the error of take, and, Once, behind that first sign
// of life. What cannot begin is refused before take is called. A credential that
// ends, ends it, and so do events that are dropped before they are handed over. It
// holds no transaction while take runs.
func (s *Service) Follow(ctx context.Context, p hub.Principal, t Tail, take func(Events) error) error {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicEvent), string(t.Filter.Wave))
	defer cancel()
	f := &follower{s: s, p: p, filter: t.Filter, take: take}
	if err := f.begin(ctx, t); err != nil {
		return err
	}
	if err := f.catchUp(ctx, true); err != nil || t.Once {
		return err
	}
	beat := time.NewTicker(t.Beat)
	defer beat.Stop()
	for {
		due := false
		select {
		case <-woken:
		case <-beat.C:
			due = true
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := f.catchUp(ctx, due); err != nil {
			return err
		}
	}
}

// follower is one tail. One goroutine uses it. Events up to at have been handed
// over; up to gone they were dropped before it began.
type follower struct {
	s        *Service
	p        hub.Principal
	filter   store.EventFilter
	at, gone int64
	take     func(Events) error
}

func (f *follower) begin(ctx context.Context, t Tail) error {
	return f.s.Store.View(ctx, func(rx store.Rx) error {
		err := receipt.Authorize(rx, f.p)
		if err == nil {
			f.at, f.gone, err = tailStart(rx, t)
		}
		return err
	})
}

type tailReader interface {
	store.EventReader
	store.WaveReader
	store.RunReader
}

// tailStart is the sequence that a tail begins behind, and the last that is gone. It
// refuses a filter of what there is not, and a cursor that the log cannot serve: one
// from behind its end, and one from before events that are gone, unless none of the
// wave's can be.
func tailStart(rx tailReader, t Tail) (at, gone int64, err error) {
	whole := false // nothing that the filter selects was ever dropped
	if t.Filter.Wave != "" {
		w, err := rx.Wave(t.Filter.Wave)
		if err != nil {
			return 0, 0, err
		}
		whole = !w.Status.Final()
	}
	if t.Filter.Run != "" {
		if _, err := rx.Run(t.Filter.Run); err != nil {
			return 0, 0, err
		}
	}
	gone, last, err := rx.EventRange()
	switch {
	case err != nil || t.After == nil:
		return 0, gone, err
	case *t.After < 0 || *t.After > last:
		return 0, 0, cursorAhead(*t.After, last)
	case *t.After < gone && !whole:
		return 0, 0, cursorGone(*t.After, last)
	}
	return *t.After, gone, nil
}

func cursorAhead(at, last int64) error {
	e := hub.Errorf(hub.CodeCursorInvalid, "the cursor %d is none of this log, which ends with %d", at, last)
	e.Field, e.Hint = "cursor", "give the seq of an event that this hub has sent, or none"
	return e
}

func cursorGone(at, last int64) error {
	e := hub.Errorf(hub.CodeCursorExpired, "events behind the cursor %d are not kept any more", at)
	e.Field = "cursor"
	e.Hint = fmt.Sprintf("look at the present state with wave status or wave list, then follow from the cursor %d: nothing is missed between the two", last)
	return e
}

// catchUp hands over everything that there is; with beat a sign of life after it.
func (f *follower) catchUp(ctx context.Context, beat bool) error {
	for {
		es, err := f.next(ctx)
		if err != nil {
			return err
		}
		f.at = es.Seq
		if len(es.List) == 0 {
			if !beat {
				return nil
			}
			return f.take(es)
		}
		if err := f.take(es); err != nil {
			return err
		}
	}
}

// next reads one batch. An empty one has come to the end of the log.
func (f *follower) next(ctx context.Context) (es Events, err error) {
	err = f.s.Store.View(ctx, func(rx store.Rx) error {
		if err := receipt.Authorize(rx, f.p); err != nil {
			return err
		}
		gone, last, err := rx.EventRange()
		switch {
		case err != nil:
			return err
		case gone > f.gone && f.at < gone:
			return cursorGone(f.at, last)
		}
		es = Events{Seq: max(last, f.at), At: rx.Now()}
		if es.List, err = rx.Events(f.filter, f.at, eventBatch); err == nil && len(es.List) > 0 {
			es.Seq = es.List[len(es.List)-1].Seq
		}
		return err
	})
	return es, err
}

// SweepEvents drops events of 30 days ago, but none of a wave that has not ended.
// It returns how many are gone.
func (s *Service) SweepEvents(ctx context.Context) (swept int, err error) {
	for {
		var n int
		err := s.Store.Update(ctx, store.New, func(tx store.Tx) (err error) {
			n, err = tx.SweepEvents(tx.Now().Add(-eventKeep), sweptEvents)
			return err
		})
		swept += n
		if err != nil || n < sweptEvents {
			return swept, err
		}
	}
}
