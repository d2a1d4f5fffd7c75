package relay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// sender is the one writer of a session: control frames first, then items.
type sender struct {
	*link
	pos  int64 // in this hub's log; a session starts at 0, see DESIGN.md R4
	more bool  // the log may hold items behind pos
	// again and until are the acknowledged part of the log that a peer which has
	// lost it gets first.
	again, until int64
	late         []hub.Want // backlogs that are sent beside the log
	turn         bool       // it is the turn of what is beside the log
	teller       *teller
	glance       glance
}

// sendAll runs until the session fails and then says goodbye.
func (l *link) sendAll(ctx context.Context) error {
	wake, unsubscribe := l.cfg.Feed.Subscribe(l.peer)
	defer unsubscribe()
	ping := time.NewTicker(l.cfg.Ping)
	defer ping.Stop()
	look := time.NewTicker(l.cfg.Look)
	defer look.Stop()
	s := &sender{link: l, more: true, teller: l.newTeller()}
	defer s.teller.end()
	if l.lacks {
		s.until = l.log.Acked
	}
	if err := s.write(ctx, s.pingOf(0)); err != nil {
		return err
	}
	for {
		busy, err := s.step(ctx)
		if err != nil {
			return err
		}
		if err := s.wait(ctx, busy, wake, ping.C, look.C); err != nil {
			return err
		}
	}
}

// step flushes control frames and sends at most one batch. busy says that
// there may be more to send at once.
func (s *sender) step(ctx context.Context) (busy bool, err error) {
	if err := s.askAgain(); err != nil {
		return false, err
	}
	for _, f := range s.out.control(s.cfg.Ping.Milliseconds()) {
		if err := s.write(ctx, f); err != nil {
			return false, err
		}
	}
	told, err := s.tell(ctx)
	if err != nil || s.out.creditLeft() <= 0 {
		return told, err
	}
	busy, err = s.batch(ctx)
	return busy || told, err
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// wait blocks until something happens; when busy it only looks.
func (s *sender) wait(ctx context.Context, busy bool, wake <-chan struct{}, ping, look <-chan time.Time) error {
	var now <-chan struct{}
	var again <-chan time.Time
	switch {
	case busy:
		now = closed
	default:
		if pause, ok := s.untilAgain(); ok {
			t := time.NewTimer(pause)
			defer t.Stop()
			again = t.C
		}
	}
	select {
	case <-s.failed:
	case <-wake:
		s.more = true
	case <-s.teller.woken():
		s.teller.more = true
	case <-ping:
		return s.ping(ctx)
	case <-look:
		return s.look(ctx)
	case <-s.doubt.raised:
		s.doubt.begin(s.cfg.Proof)
		return s.ping(ctx)
	case <-s.doubt.due:
		if err := s.doubt.settle(); err != nil {
			return err
		}
	case <-again:
	case <-s.out.ready:
	case <-now:
	}
	return s.leaving(ctx)
}

// leaving says goodbye once the session has failed.
func (s *sender) leaving(ctx context.Context) error {
	select {
	case <-s.failed:
		s.goodbye(ctx, s.failure)
		return s.failure
	default:
		return nil
	}
}

// ping says how long this hub's silence means nothing, and that what it last said
// of its workers is so.
func (s *sender) ping(ctx context.Context) error {
	seq, err := s.vouch(ctx)
	if err != nil {
		return err
	}
	return s.write(ctx, s.pingOf(seq))
}

func (s *sender) pingOf(presence int64) wire.Ping {
	return wire.Ping{IntervalMS: s.cfg.Ping.Milliseconds(), PresenceSeq: presence}
}

// untilAgain is how long until something has to be repeated; false: nothing.
func (s *sender) untilAgain() (time.Duration, bool) {
	var pause time.Duration
	ok := false
	if s.out.room() > 0 {
		pause, ok = s.sent.nextDue(time.Now())
	}
	if s.gaps.any() && (!ok || s.cfg.Again < pause) {
		return s.cfg.Again, true
	}
	return pause, ok
}

// askAgain repeats wants whose answer is overdue, and tries queues again that
// the peer had parked.
func (s *sender) askAgain() error {
	for _, w := range s.sent.due(time.Now(), s.out.room()) {
		if err := s.out.addResend(w); err != nil {
			return err
		}
	}
	due, err := s.gaps.overdue()
	if len(due) > 0 {
		s.out.add(nil, due, 0)
	}
	return err
}

func (s *sender) room() int {
	return int(min(int64(s.cfg.Batch), s.out.creditLeft()))
}

// resend sends a queue again as far as was asked for and the log has passed it;
// what follows comes from the log.
func (s *sender) resend(ctx context.Context, w hub.Want) error {
	items, err := s.queue(ctx, w)
	if err != nil || len(items) == 0 {
		return err
	}
	if items[0].Seq != w.Seq {
		return s.write(ctx, wire.Kept{From: []hub.Want{{Dispatch: w.Dispatch, Seq: items[0].Seq}}})
	}
	if err := s.items(ctx, items); err != nil {
		return err
	}
	w.Seq = items[len(items)-1].Seq + 1
	if until := s.sent.passed(w.Dispatch); w.Seq <= until && (w.Until == 0 || w.Seq <= w.Until) {
		return s.out.addResend(w)
	}
	return nil
}

// queue reads the next batch of a queue, up to w.Until if that is set.
func (s *sender) queue(ctx context.Context, w hub.Want) ([]hub.Item, error) {
	items, err := s.cfg.Source.Queue(ctx, s.peer, s.send, w.Dispatch, w.Seq, s.room())
	if err != nil {
		return nil, fmt.Errorf("reading the queue of %s: %w", w.Dispatch, err)
	}
	items = items[:min(len(items), s.cfg.BatchItems)]
	for n, it := range items {
		if w.Until != 0 && it.Seq > w.Until && n > 0 {
			return items[:n], nil
		}
	}
	return items, nil
}

// items writes items in as few frames as they fit.
func (s *sender) items(ctx context.Context, items []hub.Item) error {
	var frame []hub.Item
	size := 0
	for _, it := range items {
		n := wire.ItemSize(it)
		if n > wire.ItemsRoom {
			if err := s.frame(ctx, frame); err != nil { // what comes before it is due
				return err
			}
			frame, size = nil, 0
			if err := s.park(ctx, it.Dispatch, fmt.Sprintf("too_large: item %d has %d bytes", it.Seq, n)); err != nil {
				return err
			}
			continue
		}
		if size+n > wire.ItemsRoom {
			if err := s.frame(ctx, frame); err != nil {
				return err
			}
			frame, size = nil, 0
		}
		frame = append(frame, it)
		size += n
	}
	return s.frame(ctx, frame)
}

func (s *sender) frame(ctx context.Context, items []hub.Item) error {
	items = s.sent.flowing(items)
	if len(items) == 0 {
		return nil
	}
	size := 0
	for _, it := range items {
		size += wire.ItemSize(it)
	}
	s.sent.mark(items)
	s.out.spend(int64(size))
	return s.write(ctx, wire.Items{Items: items})
}

// park holds one Dispatch back for this session and records why.
func (s *sender) park(ctx context.Context, d hub.DispatchID, reason string) error {
	s.sent.park(d)
	return s.cfg.Source.Acked(ctx, s.peer, s.send, []hub.Ack{{Dispatch: d, Parked: clipText(reason)}})
}

// clipText bounds what goes into one frame and keeps it UTF-8.
func clipText(s string) string {
	if len(s) > ackText {
		s = s[:ackText]
	}
	return strings.ToValidUTF8(s, "")
}
