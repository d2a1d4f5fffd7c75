package relay

import (
	"context"
	"fmt"
	"math"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// maxLook bounds how many batches of the log are looked through for one that
// holds something to send.
const maxLook = 64

// batch sends one batch. What is beside the log and the log take turns, so that
// neither a Dispatch with a long backlog nor one that is sent again delays
// another's item by more than one batch.
func (s *sender) batch(ctx context.Context) (busy bool, err error) {
	log := s.more || s.again < s.until
	if s.turn = !s.turn; s.turn || !log {
		if w, ok := s.out.takeResend(); ok {
			return true, s.resend(ctx, w)
		}
		if len(s.late) > 0 {
			return true, s.catchUp(ctx)
		}
	}
	switch {
	case s.again < s.until:
		return true, s.retrace(ctx)
	case s.more:
		return true, s.push(ctx)
	}
	return false, nil
}

// push sends the next items of the log, and of each Dispatch no more than its
// share: the rest is late.
func (s *sender) push(ctx context.Context) error {
	for range maxLook {
		items, err := s.cfg.Source.After(ctx, s.peer, s.send, s.pos, s.room())
		if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		if len(items) == 0 {
			s.more = false
			return nil
		}
		items = items[:min(len(items), s.cfg.BatchItems)]
		s.pos = items[len(items)-1].Pos
		items, late := s.sent.share(items, s.cfg.BatchItems/2, s.cfg.Batch/2)
		s.late = append(s.late, late...)
		if len(items) > 0 {
			return s.items(ctx, items)
		}
	}
	return nil
}

// retrace sends what a peer had acknowledged and has lost.
func (s *sender) retrace(ctx context.Context) error {
	items, err := s.cfg.Source.Between(ctx, s.peer, s.send, s.again, s.until, s.room())
	if err != nil {
		return fmt.Errorf("reading the log again: %w", err)
	}
	if len(items) == 0 {
		s.again = s.until
		return nil
	}
	items = items[:min(len(items), s.cfg.BatchItems)]
	s.again = items[len(items)-1].Pos
	return s.items(ctx, items)
}

// catchUp sends the next batch of the backlog that has waited longest.
func (s *sender) catchUp(ctx context.Context) error {
	w := s.late[0]
	s.late = s.late[1:]
	if s.sent.stuck(w.Dispatch) {
		return nil // its retry begins with what is not acknowledged
	}
	items, err := s.queue(ctx, w)
	if err != nil {
		return err
	}
	if err := s.items(ctx, items); err != nil {
		return err
	}
	w.Seq = math.MaxInt64 // nothing is left of it
	if len(items) > 0 {
		w.Seq = items[len(items)-1].Seq + 1
	}
	if s.sent.trails(w) {
		s.late = append(s.late, w)
	}
	return nil
}

// share leaves of each Dispatch what is due: the first of its items, and others
// up to a number of items and bytes. One that has more is late from there on: the log passes
// its items until its backlog has been sent.
func (l *ledger) share(items []hub.Item, count, bytes int) (due []hub.Item, late []hub.Want) {
	l.mu.Lock()
	defer l.mu.Unlock()
	type use struct{ items, bytes int }
	used := map[hub.DispatchID]use{}
	for _, it := range items {
		e, u := l.at[it.Dispatch], used[it.Dispatch]
		u.items, u.bytes = u.items+1, u.bytes+wire.ItemSize(it)
		used[it.Dispatch] = u
		if e.parked || !e.late && (u.items == 1 || u.items <= count && u.bytes <= bytes) {
			due = append(due, it)
			continue
		}
		if !e.late {
			late = append(late, hub.Want{Dispatch: it.Dispatch, Seq: it.Seq})
		}
		e.late, e.held = true, max(e.held, it.Seq)
		l.at[it.Dispatch] = e
	}
	return due, late
}

// stuck reports whether a late Dispatch has been parked, and then is late no more.
func (l *ledger) stuck(d hub.DispatchID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at[d]
	if e.parked {
		e.late = false
		l.at[d] = e
	}
	return e.parked
}

// trails reports whether the log has passed more of a late Dispatch than was
// sent; if not, it is late no more.
func (l *ledger) trails(w hub.Want) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at[w.Dispatch]
	e.late = w.Seq <= max(e.sent, e.held)
	l.at[w.Dispatch] = e
	return e.late
}
