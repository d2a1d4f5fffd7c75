package relay

import (
	"context"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// apply commits what the reader took: all frames that have arrived by then
// share one commit of acks and one import.
func (l *link) apply(ctx context.Context) error {
	for {
		in, err := l.arrived(ctx)
		if err != nil {
			return err
		}
		if err := l.commitAcks(ctx, in.acks); err != nil {
			return err
		}
		if err := l.commitItems(ctx, in.items); err != nil {
			return err
		}
		if err := l.skip(ctx, in.kept); err != nil {
			return err
		}
	}
}

// arrivals is what some frames brought.
type arrivals struct {
	items []hub.Item
	acks  []hub.Ack
	kept  []hub.Want
}

func (in *arrivals) add(f wire.Frame) {
	switch f := f.(type) {
	case wire.Items:
		in.items = append(in.items, f.Items...)
	case wire.Acks:
		in.acks = append(in.acks, f.Acks...)
	case wire.Kept:
		in.kept = append(in.kept, f.From...)
	}
}

func (l *link) arrived(ctx context.Context) (in arrivals, err error) {
	select {
	case f := <-l.in:
		in.add(f)
	case <-ctx.Done():
		return in, ctx.Err()
	}
	for range mergedFrames - 1 {
		select {
		case f := <-l.in:
			in.add(f)
		default:
			return in, nil
		}
	}
	return in, nil
}

func (l *link) commitAcks(ctx context.Context, acks []hub.Ack) error {
	acks = mergeAcks(acks)
	if len(acks) == 0 {
		return nil
	}
	if err := l.cfg.Source.Acked(ctx, l.peer, l.send, acks); err != nil {
		return fmt.Errorf("recording acks: %w", err)
	}
	for _, a := range acks {
		if l.sent.acked(a) {
			l.out.wake()
		}
	}
	return nil
}

func (l *link) commitItems(ctx context.Context, items []hub.Item) error {
	if len(items) == 0 {
		return nil
	}
	kept, size := l.ahead.bytes, int64(0)
	feed := l.feed
	for _, it := range items {
		size += itemSize(it)
		feed.Position = max(feed.Position, it.Pos)
	}
	items = l.ahead.join(items)
	res, err := l.cfg.Importer.Import(ctx, l.peer, l.recv, feed, items)
	if err != nil {
		return fmt.Errorf("importing: %w", err)
	}
	l.feed = feed
	acks, wants := l.refused.stand(res)
	wants = l.ahead.settle(items, acks, wants)
	size += kept - l.ahead.bytes // what is kept holds its credit
	l.inFlight.give(size)
	l.gaps.closed(acks)
	l.out.add(l.behind.cap(items, acks), l.gaps.opened(wants), size)
	return nil
}

// skip goes on behind items that were asked for and that the source has no more.
func (l *link) skip(ctx context.Context, kept []hub.Want) error {
	if kept = l.gaps.asked(kept); len(kept) == 0 {
		return nil
	}
	acks, err := l.cfg.Importer.Skip(ctx, l.peer, l.recv, l.feed, kept)
	if err != nil {
		return fmt.Errorf("going on behind lost items: %w", err)
	}
	l.gaps.closed(acks)
	before := l.ahead.bytes
	items := l.ahead.release(acks)
	parks, wants := l.ahead.after(acks)
	size := before - l.ahead.bytes
	for _, it := range items {
		size -= itemSize(it) // their credit is given back with their import
	}
	l.inFlight.give(size)
	l.out.add(parks, l.gaps.opened(wants), size)
	return l.commitItems(ctx, items)
}

// mergeAcks leaves one ack per Dispatch: the furthest, with all verdicts. A park
// stands until the queue advances; of a queue in conflict nothing is acknowledged.
func mergeAcks(acks []hub.Ack) []hub.Ack {
	at := make(map[hub.DispatchID]int, len(acks))
	out := acks[:0:0]
	for _, a := range acks {
		i, ok := at[a.Dispatch]
		if !ok {
			at[a.Dispatch] = len(out)
			out = append(out, a)
			continue
		}
		o := &out[i]
		if o.Conflicting() || a.Conflicting() {
			if a.Conflicting() {
				*o = a
			}
			*o = hub.Ack{Dispatch: o.Dispatch, Parked: o.Parked}
			continue
		}
		o.Verdicts = append(o.Verdicts[:len(o.Verdicts):len(o.Verdicts)], a.Verdicts...)
		if a.Seq > o.Seq || a.Seq == o.Seq && a.Parked != "" {
			o.Seq, o.Parked = a.Seq, a.Parked
		}
	}
	return out
}
