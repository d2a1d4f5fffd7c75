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
		items, acks, err := l.arrived(ctx)
		if err != nil {
			return err
		}
		if err := l.commitAcks(ctx, acks); err != nil {
			return err
		}
		if err := l.commitItems(ctx, items); err != nil {
			return err
		}
	}
}

func (l *link) arrived(ctx context.Context) (items []hub.Item, acks []hub.Ack, err error) {
	add := func(f wire.Frame) {
		switch f := f.(type) {
		case wire.Items:
			items = append(items, f.Items...)
		case wire.Acks:
			acks = append(acks, f.Acks...)
		}
	}
	select {
	case f := <-l.in:
		add(f)
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	for range mergedFrames - 1 {
		select {
		case f := <-l.in:
			add(f)
		default:
			return items, acks, nil
		}
	}
	return items, acks, nil
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
		if again, ok := l.sent.acked(a); ok {
			if err := l.out.addResend(again); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *link) commitItems(ctx context.Context, items []hub.Item) error {
	if len(items) == 0 {
		return nil
	}
	size := 0
	feed := l.feed
	for _, it := range items {
		size += wire.ItemSize(it)
		feed.Position = max(feed.Position, it.Pos)
	}
	res, err := l.cfg.Importer.Import(ctx, l.peer, l.recv, feed, items)
	if err != nil {
		return fmt.Errorf("importing: %w", err)
	}
	l.feed = feed
	l.inFlight.give(int64(size))
	acks, wants := l.refused.stand(res)
	l.gaps.closed(acks)
	l.out.add(l.behind.cap(items, acks), l.gaps.opened(wants), int64(size))
	return nil
}

// mergeAcks leaves one ack per Dispatch: the furthest, with all verdicts. A park
// stands until the queue advances.
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
		o.Verdicts = append(o.Verdicts[:len(o.Verdicts):len(o.Verdicts)], a.Verdicts...)
		if a.Seq > o.Seq || a.Seq == o.Seq && a.Parked != "" {
			o.Seq, o.Parked = a.Seq, a.Parked
		}
	}
	return out
}
