package relay

import (
	"cmp"
	"slices"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

const (
	maxCredit = 64 << 20
	// maxOwn is how many queues this hub notes by itself to be sent again; what the
	// peer wants has room beside them.
	maxOwn    = wire.MaxWants
	maxResend = 4 * wire.MaxWants
)

// outbox is what the reader and the applier leave for the sender. Nothing in
// it blocks; it grows only with what this hub itself has committed.
type outbox struct {
	ready chan struct{} // holds one wake-up

	mu      sync.Mutex // guards what follows
	acks    []hub.Ack
	wants   []hub.Want
	grant   int64
	pong    bool
	credit  int64
	resends map[hub.DispatchID]hub.Want
	order   []hub.DispatchID // of resends, each once
}

func newOutbox() *outbox {
	return &outbox{ready: make(chan struct{}, 1), resends: map[hub.DispatchID]hub.Want{}}
}

func (o *outbox) wake() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

func (o *outbox) add(acks []hub.Ack, wants []hub.Want, grant int64) {
	defer o.wake()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acks = append(o.acks, acks...)
	o.wants = append(o.wants, wants...)
	o.grant += grant
}

func (o *outbox) addPong() {
	defer o.wake()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pong = true
}

// addCredit raises what may be sent, up to maxCredit.
func (o *outbox) addCredit(n int64) {
	defer o.wake()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.credit = min(o.credit+min(n, maxCredit), maxCredit)
}

// room is how many more queues this hub may note to be sent again by itself.
func (o *outbox) room() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(0, maxOwn-len(o.resends))
}

// addResend notes that the peer wants a queue again: all that was asked for.
func (o *outbox) addResend(w hub.Want) error {
	defer o.wake()
	o.mu.Lock()
	defer o.mu.Unlock()
	old, ok := o.resends[w.Dispatch]
	switch {
	case ok && (old.Until == 0 || w.Until == 0):
		w.Seq, w.Until = min(w.Seq, old.Seq), 0
	case ok:
		w.Seq, w.Until = min(w.Seq, old.Seq), max(w.Until, old.Until)
	case len(o.resends) >= maxResend:
		return protocolf("more than %d queues wanted again", maxResend)
	default:
		o.order = append(o.order, w.Dispatch)
	}
	o.resends[w.Dispatch] = w
	return nil
}

// takeResend removes the oldest resend; what is left of it is added again, behind
// the others.
func (o *outbox) takeResend() (hub.Want, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.order) == 0 {
		return hub.Want{}, false
	}
	w := o.resends[o.order[0]]
	o.order = o.order[1:]
	delete(o.resends, w.Dispatch)
	return w, true
}

func (o *outbox) creditLeft() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.credit
}

func (o *outbox) spend(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.credit -= n
}

// control empties the box into frames: acks before everything else.
func (o *outbox) control(intervalMS int64) []wire.Frame {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := ackFrames(o.acks)
	for len(o.wants) > 0 {
		n := min(len(o.wants), wire.MaxWants)
		frames = append(frames, wire.Wants{Wants: o.wants[:n]})
		o.wants = o.wants[n:]
	}
	if o.grant > 0 {
		frames = append(frames, wire.Credit{Bytes: o.grant})
	}
	if o.pong {
		frames = append(frames, wire.Pong{IntervalMS: intervalMS})
	}
	o.acks, o.wants, o.grant, o.pong = nil, nil, 0, false
	return frames
}

// Sizes for splitting acks: each ack or verdict stays below its figure unless
// its text is long, and texts are clipped.
const (
	ackText     = 512
	acksPerSend = 512
)

// ackFrames splits acks so that every frame is within the limits. Verdicts that
// one ack cannot hold go before it, with an ack that ends where they end: an
// ack never runs ahead of a verdict, whatever arrives of it.
func ackFrames(acks []hub.Ack) []wire.Frame {
	var frames []wire.Frame
	var cur []hub.Ack
	weight := 0
	flush := func() {
		if len(cur) > 0 {
			frames = append(frames, wire.Acks{Acks: cur})
			cur, weight = nil, 0
		}
	}
	for _, a := range mergeAcks(acks) {
		for _, part := range splitAck(a) {
			if weight += 1 + len(part.Verdicts); weight > acksPerSend {
				flush()
				weight = 1 + len(part.Verdicts)
			}
			cur = append(cur, part)
		}
	}
	flush()
	return frames
}

func splitAck(a hub.Ack) []hub.Ack {
	a.Parked = clipText(a.Parked)
	verdicts := make([]hub.ItemVerdict, len(a.Verdicts))
	for i, v := range a.Verdicts {
		v.Reason = clipText(v.Reason)
		verdicts[i] = v
	}
	slices.SortStableFunc(verdicts, func(x, y hub.ItemVerdict) int { return cmp.Compare(x.Seq, y.Seq) })
	var parts []hub.Ack
	for len(verdicts) >= acksPerSend {
		const n = acksPerSend - 1
		parts = append(parts, hub.Ack{Dispatch: a.Dispatch, Seq: verdicts[n-1].Seq, Verdicts: verdicts[:n]})
		verdicts = verdicts[n:]
	}
	a.Verdicts = verdicts
	return append(parts, a)
}
