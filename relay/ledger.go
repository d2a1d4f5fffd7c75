package relay

import (
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// ledger knows what this session has sent, so that a peer cannot acknowledge
// more, and which Dispatches the peer has parked.
type ledger struct {
	mu    sync.Mutex
	at    map[hub.DispatchID]entry    // guarded by mu
	tries map[hub.DispatchID]struct{} // parked with a retry; guarded by mu
}

type entry struct {
	sent, acked int64 // acked: in this session, or before its first item
	held        int64 // the last item that was passed over
	parked      bool
	late        bool // its backlog is sent beside the log, see fair.go
	// A queue that the peer parked is tried again at retry, ever less often;
	// zero: not in this session.
	retry time.Time
	pause time.Duration
}

// Pauses before a queue that the peer parked is tried again: what it lacks, an
// attachment that is still being made, may come at any moment.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// ledgerSoft is the number of entries beyond which finished ones are dropped.
const ledgerSoft = 1 << 16

func newLedger() *ledger {
	return &ledger{at: map[hub.DispatchID]entry{}, tries: map[hub.DispatchID]struct{}{}}
}

// mark notes items as sent; it comes before the write.
func (l *ledger) mark(items []hub.Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.at) > ledgerSoft {
		l.prune()
	}
	for _, it := range items {
		e, ok := l.at[it.Dispatch]
		if !ok {
			e.acked = it.Seq - 1
		}
		e.sent = max(e.sent, it.Seq)
		l.at[it.Dispatch] = e
	}
}

func (l *ledger) prune() {
	for d, e := range l.at {
		if e.acked >= max(e.sent, e.held) && !e.parked {
			delete(l.at, d)
		}
	}
}

// check refuses an ack, or a verdict, beyond what was sent.
func (l *ledger) check(a hub.Ack) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.at[a.Dispatch]
	if !ok && a.Seq == 0 && len(a.Verdicts) == 0 && len(l.at) < ledgerSoft {
		return nil // it refuses a queue before anything of it came
	}
	if !ok || a.Seq > e.sent {
		return protocolf("ack of %d for %s, of which %d was sent", a.Seq, clip(string(a.Dispatch)), e.sent)
	}
	for _, v := range a.Verdicts {
		if v.Seq < 1 || v.Seq > a.Seq {
			return protocolf("verdict on %d in an ack of %d for %s", v.Seq, a.Seq, a.Dispatch)
		}
	}
	return nil
}

// acked notes a committed ack. A Dispatch that is no longer parked is due to be
// sent again from where the peer is: its items were held back meanwhile.
func (l *ledger) acked(a hub.Ack) (due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at[a.Dispatch]
	due = e.parked && a.Parked == "" && a.Seq > e.acked
	e.acked = max(e.acked, a.Seq)
	switch {
	case a.Conflicting():
		e.parked, e.retry = true, time.Time{}
		delete(l.tries, a.Dispatch)
	case a.Parked != "" && e.parked && !e.retry.IsZero():
		// Said again on what was in flight behind it: the retry stands.
	case a.Parked != "":
		e.parked, e.pause = true, min(max(firstRetry, 2*e.pause), lastRetry)
		e.retry = time.Now().Add(e.pause)
		l.tries[a.Dispatch] = struct{}{}
	case due:
		e.pause, e.retry = 0, time.Now()
		l.tries[a.Dispatch] = struct{}{}
	case !e.parked:
		e.pause, e.retry = 0, time.Time{}
		delete(l.tries, a.Dispatch)
	}
	l.at[a.Dispatch] = e
	return due
}

// due returns at most room of the parked queues whose time to be tried again has
// come, and lets them flow. The others stay due.
func (l *ledger) due(now time.Time, room int) (again []hub.Want) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range l.tries {
		if len(again) >= room {
			break
		}
		e := l.at[d]
		if now.Before(e.retry) {
			continue
		}
		e.parked, e.retry = false, time.Time{}
		l.at[d] = e
		delete(l.tries, d)
		again = append(again, hub.Want{Dispatch: d, Seq: e.acked + 1})
	}
	return again
}

// nextDue is how long until a parked queue is tried again; false: none is.
func (l *ledger) nextDue(now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range l.tries {
		if w := max(0, l.at[d].retry.Sub(now)); !ok || w < wait {
			wait, ok = w, true
		}
	}
	return wait, ok
}

func (l *ledger) park(d hub.DispatchID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at[d]
	e.parked, e.retry = true, time.Time{}
	l.at[d] = e
	delete(l.tries, d)
}

// flowing drops items of parked Dispatches, and remembers how far: the log has
// passed them, so only a resend brings them.
func (l *ledger) flowing(items []hub.Item) []hub.Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := items[:0:0]
	for _, it := range items {
		e := l.at[it.Dispatch]
		if !e.parked {
			out = append(out, it)
			continue
		}
		e.held = max(e.held, it.Seq)
		l.at[it.Dispatch] = e
	}
	return out
}

// passed is how far the log has passed a queue: what was sent of it, or held.
func (l *ledger) passed(d hub.DispatchID) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.at[d].sent, l.at[d].held)
}

// behind knows the Dispatches of which the peer has sent less in this session
// than we have imported in earlier ones, and how much. The acks of an earlier
// session may be lost, and the peer takes an ack only of what it has sent in
// this one, so such a queue is acknowledged as it comes in again.
type behind map[hub.DispatchID]int64

// cap lowers acks to what the peer has sent. A parked item is beyond that.
func (b behind) cap(items []hub.Item, acks []hub.Ack) []hub.Ack {
	came := make(map[hub.DispatchID]int64, len(acks))
	for _, it := range items {
		came[it.Dispatch] = max(came[it.Dispatch], it.Seq)
	}
	for i := range acks {
		a := &acks[i]
		sent := max(came[a.Dispatch], b[a.Dispatch])
		if a.Seq <= sent || a.Conflicting() {
			delete(b, a.Dispatch)
			continue
		}
		b[a.Dispatch] = sent
		a.Seq, a.Parked = sent, ""
	}
	return acks
}

// refused knows the queues whose next item was refused in this session, and why.
// An import forgets it with its transaction, but what was in flight behind the
// item opens no gap: the park stands until the queue advances.
type refused map[hub.DispatchID]hub.Ack

func (r refused) stand(res hub.ImportResult) (acks []hub.Ack, wants []hub.Want) {
	acks = mergeAcks(res.Acks)
	for i, a := range acks {
		switch before, ok := r[a.Dispatch]; {
		case a.Parked != "":
			if len(r) >= ledgerSoft {
				clear(r) // a liar's: its gaps end its session
			}
			r[a.Dispatch] = hub.Ack{Seq: a.Seq, Parked: a.Parked}
		case ok && before.Seq == a.Seq:
			acks[i].Parked = before.Parked
		default:
			delete(r, a.Dispatch)
		}
	}
	for _, w := range res.Wants {
		if _, ok := r[w.Dispatch]; !ok {
			wants = append(wants, w)
		}
	}
	return acks, wants
}

// gaps remembers which sequences were asked for again, so that each is asked
// for once per interval and not with every import behind it.
type gaps struct {
	again time.Duration

	mu   sync.Mutex
	open map[hub.DispatchID]gap // guarded by mu
}

type gap struct {
	seq, until int64
	at         time.Time
	asks       int
}

func newGaps(again time.Duration) *gaps {
	return &gaps{again: again, open: map[hub.DispatchID]gap{}}
}

// opened returns those wants that have not been asked for yet.
func (g *gaps) opened(wants []hub.Want) []hub.Want {
	g.mu.Lock()
	defer g.mu.Unlock()
	var fresh []hub.Want
	for _, w := range wants {
		if o, ok := g.open[w.Dispatch]; !ok || o.seq != w.Seq {
			g.open[w.Dispatch] = gap{seq: w.Seq, until: w.Until, at: time.Now(), asks: 1}
			fresh = append(fresh, w)
		}
	}
	return fresh
}

func (g *gaps) closed(acks []hub.Ack) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range acks {
		if o, ok := g.open[a.Dispatch]; ok && (a.Seq >= o.seq || a.Parked != "") {
			delete(g.open, a.Dispatch)
		}
	}
}

// asked leaves those answers that are to an open gap and behind it.
func (g *gaps) asked(kept []hub.Want) (out []hub.Want) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range kept {
		if o, ok := g.open[w.Dispatch]; ok && w.Seq > o.seq {
			out = append(out, w)
		}
	}
	return out
}

// overdue returns the gaps to ask for again now.
func (g *gaps) overdue() ([]hub.Want, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var due []hub.Want
	for d, o := range g.open {
		if time.Since(o.at) < g.again {
			continue
		}
		if o.asks++; o.asks > maxReissues {
			return nil, protocolf("item %d of %s never comes", o.seq, d)
		}
		o.at = time.Now()
		g.open[d] = o
		due = append(due, hub.Want{Dispatch: d, Seq: o.seq, Until: o.until})
	}
	return due, nil
}

func (g *gaps) any() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open) > 0
}

// budget counts item bytes that the peer may have in flight: its window, and
// as much again for frames that cross a grant.
type budget struct {
	mu   sync.Mutex
	left int64 // guarded by mu
}

func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= n
	return b.left >= 0
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}
