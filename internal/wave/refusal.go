package wave

import (
	"context"
	"errors"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// landed is what a start call of the engine came to.
type landed struct {
	index int
	err   error
}

// paused is a stop that is to be asked for again.
type paused struct {
	index int
	until time.Duration
}

// passing tells of a refusal that may pass what the task waits for meanwhile.
func passing(code hub.Code) (reason string, ok bool) {
	switch code {
	case hub.CodeRemoteRuntimeUnavailable, hub.CodeHubDraining:
		return waitPeer, true
	case hub.CodeRateLimited:
		return waitAgent, true
	case hub.CodeWorkerLimit, hub.CodeStorageFull, hub.CodeReceiptsFull:
		return waitLimit, true
	case hub.CodeTerminalBusy:
		return hub.WaitsForWorker, true
	case hub.CodeInternal:
		return waitUnknown, true
	default:
		return "", false
	}
}

// land takes what a start call came to. What it made is read of the store.
func (l *loop) land(c landed) {
	t := &l.tasks[c.index]
	t.flying = false
	e, coded := errors.AsType[*hub.Error](c.err)
	switch to := target(t.Entry); {
	case c.err == nil:
		l.open(to)
	case errors.Is(c.err, context.Canceled): // the hub stops
	case !coded:
		l.s.Log.Warn("starting a wave's task", "wave", l.id, "task", t.Entry.Token, "error", c.err)
		t.hold = hold{waitUnknown, l.later(t.Entry.Token, 0)}
	case e.Code == hub.CodeTaskNotStartable || e.Code == hub.CodeOutcomeUnknown || e.Code == hub.CodeRequestMismatch || e.Code == hub.CodeTaskStateInvalid:
		// somebody was faster, or it is on record: the store says how it stands
		t.hold = hold{waitUnknown, l.later(t.Entry.Token, 0)}
	default:
		l.refused(t, to, e)
	}
}

// refused takes a refusal: one that may pass holds back everything that goes the
// same way, any other ends the task.
func (l *loop) refused(t *task, to string, e *hub.Error) {
	reason, ok := passing(e.Code)
	switch {
	case !ok:
		t.refused, t.told = e.Code, hub.Cut(e.Message, hub.MaxWaveResult)
	case e.Code == hub.CodeTerminalBusy:
		t.hold = hold{reason, l.later(t.Entry.Token, 0)}
	case l.gates[to].until <= l.clock.now:
		l.gates[to] = hold{reason, l.later(to, time.Duration(e.AfterMS)*time.Millisecond)}
	}
}

// later is when to try again: after a pause that doubles, and not before what the
// refusal said.
func (l *loop) later(what string, atLeast time.Duration) time.Duration {
	p := min(max(2*l.pause[what], minPause), maxPause)
	l.pause[what] = p
	return l.clock.now + max(p, min(atLeast, maxPause))
}

// shut holds back what goes the way of an attempt that nobody took on.
func (l *loop) shut(to string, d hub.Dispatch) {
	reason, ok := passing(hub.Code(d.Reason))
	if !ok {
		reason = waitAgent
	}
	if l.gates[to].until <= l.clock.now {
		l.gates[to] = hold{reason, l.later(to, 0)}
	}
}

// open lets starts go to a target again.
func (l *loop) open(to string) { delete(l.gates, to) }

// release tries at once what waited for peers that are reached again.
func (l *loop) release(up map[hub.PeerID]struct{}) {
	for to, h := range l.gates {
		if h.reason == waitPeer {
			delete(l.gates, to)
			delete(l.pause, to)
		}
	}
	for i := range l.tasks {
		t := &l.tasks[i]
		if t.Dispatch == nil {
			continue
		}
		if _, ok := up[t.Dispatch.Server.PeerID]; ok && !t.Dispatch.State.Final() {
			delete(l.ended, i) // an owner that was away is asked again
			t.hold = hold{}
		}
	}
}
