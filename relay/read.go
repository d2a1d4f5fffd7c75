package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// read takes frames off the connection. It never waits for a write, only for
// the applier, which never waits for the network: two busy peers cannot block
// each other.
func (l *link) read(ctx context.Context) error {
	interval := l.cfg.Ping
	for {
		f, err := l.next(ctx, interval)
		if err != nil {
			return err
		}
		l.doubt.heard.Add(1)
		if p, ok := f.(wire.Ping); ok {
			interval = clampInterval(p.IntervalMS)
		}
		if err := l.take(ctx, f); err != nil {
			return err
		}
	}
}

func clampInterval(ms int64) time.Duration {
	if ms >= maxInterval.Milliseconds() {
		return maxInterval
	}
	return max(time.Duration(ms)*time.Millisecond, 10*time.Millisecond)
}

// next reads one frame; a peer that is silent for two pings is dead.
func (l *link) next(ctx context.Context, interval time.Duration) (wire.Frame, error) {
	limit, cancel := context.WithTimeout(ctx, 2*interval+interval/2)
	defer cancel()
	l.reading.Store(true)
	f, err := l.receive(limit)
	l.reading.Store(false)
	if err != nil && ctx.Err() == nil && errors.Is(limit.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("the peer has been silent for two pings: %w", err)
	}
	return f, err
}

func (l *link) take(ctx context.Context, f wire.Frame) error {
	switch f := f.(type) {
	case wire.Items:
		if err := l.checkItems(f.Items); err != nil {
			return err
		}
		return l.pass(ctx, f)
	case wire.Acks:
		for _, a := range f.Acks {
			if err := l.sent.check(a); err != nil {
				return err
			}
		}
		return l.pass(ctx, f)
	case wire.Kept:
		for _, w := range f.From {
			if err := checkDispatch(w.Dispatch); err != nil {
				return err
			}
		}
		return l.pass(ctx, f)
	case wire.Wants:
		for _, w := range f.Wants {
			if err := l.wanted(w); err != nil {
				return err
			}
		}
	case wire.Credit:
		l.out.addCredit(f.Bytes)
	case wire.Ping:
		l.out.addPong()
		return l.vouched(f.PresenceSeq)
	case wire.Presence:
		return l.hear(f)
	case wire.Pong:
	case wire.Goodbye:
		return &PeerGone{f.Code, f.Text}
	default:
		return protocolf("%T inside a session", f)
	}
	return nil
}

func (l *link) pass(ctx context.Context, f wire.Frame) error {
	select {
	case l.in <- f:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkItems refuses what no source sends. Whose Dispatch it is and whether
// the sequence fits is judged by the importer, per Dispatch.
func (l *link) checkItems(items []hub.Item) error {
	size := 0
	for _, it := range items {
		size += wire.ItemSize(it)
		if err := checkDispatch(it.Dispatch); err != nil {
			return err
		}
		if it.Seq < 1 || it.Pos < 1 || it.ID == "" {
			return protocolf("item %d of %s has no sequence, position or id", it.Seq, it.Dispatch)
		}
	}
	if !l.inFlight.take(int64(size)) {
		return protocolf("more items than were granted")
	}
	return nil
}

func (l *link) wanted(w hub.Want) error {
	if err := checkDispatch(w.Dispatch); err != nil {
		return err
	}
	if w.Seq < 1 || w.Until != 0 && w.Until < w.Seq {
		return protocolf("a want of the sequences %d to %d", w.Seq, w.Until)
	}
	return l.out.addResend(w)
}
