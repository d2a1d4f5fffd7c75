package dispatch

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// What is kept of acknowledged items, for a receiver that loses them: the newest
// of each queue, until keptFor after its Dispatch has settled.
const (
	keptItems  = 1000
	keptBytes  = 8 << 20
	keptFor    = 7 * 24 * 60 * 60 * 1_000_000 // µs
	sweepPage  = 500                          // queues that one look goes through
	sweepItems = 1000                         // items that one transaction drops
)

// SweepQueues drops acknowledged items that are kept no longer, in transactions
// of bounded size, and returns how many. It may be interrupted anywhere.
func (s *Service) SweepQueues(ctx context.Context) (dropped int, err error) {
	for after := int64(0); ; {
		var due []sweeping
		due, after, err = s.dueQueues(ctx, after)
		if err != nil {
			return dropped, err
		}
		for _, q := range due {
			n, err := s.sweepQueue(ctx, q)
			dropped += n
			if err != nil {
				return dropped, err
			}
		}
		if after == 0 {
			return dropped, nil
		}
	}
}

// sweeping is what is to be done about one queue.
type sweeping struct {
	key   store.QueueKey
	upto  int64      // sequences up to here go
	ended hub.Micros // to be noted; unchanged if equal to was
	was   hub.Micros
}

func (s *Service) dueQueues(ctx context.Context, after int64) (due []sweeping, next int64, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		due = nil
		qs, n, err := rx.QueuesFrom(after, sweepPage, keptItems, keptBytes)
		if next = n; err != nil {
			return err
		}
		for _, q := range qs {
			ended, err := hasEnded(rx, q.QueueKey)
			if err != nil {
				return err
			}
			if w := dueOf(q, ended, rx.Now()); w.upto > q.SweptSeq || w.ended != w.was {
				due = append(due, w)
			}
		}
		return nil
	})
	return due, next, err
}

// dueOf decides, without a store, what goes of one queue.
func dueOf(q store.KeptQueue, ended bool, now hub.Micros) sweeping {
	w := sweeping{key: q.QueueKey, upto: q.Surplus, ended: q.EndedAt, was: q.EndedAt}
	switch {
	case !ended:
		w.ended = 0
	case q.EndedAt == 0:
		w.ended = now
	case now >= q.EndedAt+keptFor:
		w.upto = q.AckedSeq
	}
	return w
}

// hasEnded reports whether the Dispatch of a queue has settled, as this hub knows
// it: the home by its state, the owner by its capability.
func hasEnded(rx store.Rx, k store.QueueKey) (bool, error) {
	if k.Direction == hub.ToHome {
		a, ok, err := rx.Attachment(k.Peer, k.Dispatch)
		return !ok || a.Capability.Ended(), err
	}
	d, err := rx.Dispatch(k.Dispatch)
	if hub.IsCode(err, hub.CodeDispatchNotFound) {
		return true, nil
	}
	return err == nil && d.State.Final(), err
}

func (s *Service) sweepQueue(ctx context.Context, q sweeping) (dropped int, err error) {
	for n := sweepItems; n == sweepItems; dropped += n {
		err = s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
			if q.ended != q.was {
				if err := tx.EndQueue(q.key, q.ended); err != nil {
					return err
				}
			}
			n, err = tx.SweepQueue(q.key, q.upto, sweepItems)
			return err
		})
		if err != nil {
			return dropped, err
		}
		q.was = q.ended
	}
	return dropped, nil
}
