package dispatch

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Fence commits a stop at home: later reports change nothing, and the owner
// has its order. already is true for a final Dispatch, which stays as it is; a
// Dispatch that is being stopped is asked for again. One whose owner can have no
// order any more is refused.
func Fence(tx store.Tx, id hub.DispatchID, order hub.FenceItem) (d hub.Dispatch, already bool, err error) {
	d, err = tx.Dispatch(id)
	if err != nil || d.State.Final() {
		return d, true, err
	}
	if err := Reachable(tx, d); err != nil {
		return d, false, err
	}
	d, changed, _, err := apply(tx, d, hub.Event{Kind: hub.EvStop, Reason: "stop requested"}, saying{})
	if err != nil || !changed {
		return d, false, err
	}
	if !d.Local() {
		return d, false, enqueue(tx, toWorker(d), hub.ItemFence, hub.NewMessageID(), order)
	}
	a, ok, err := tx.Attachment("", id)
	if err != nil || !ok {
		return d, false, err
	}
	a.Fence = &order
	if err := tx.SaveAttachment(a); err != nil || !a.Attached() {
		return d, false, err
	}
	return d, false, cancelWorker(tx, a)
}

// EndStop applies what could be proved about a stop. A proof that no call
// answered any more, since the stop had been unknown, is mailed.
func EndStop(tx store.Tx, id hub.DispatchID, ev hub.StopEvidence) (hub.Dispatch, error) {
	d, err := tx.Dispatch(id)
	if err != nil {
		return d, err
	}
	e := hub.Event{Kind: hub.EvStopLost, Reason: ev.LastError, ExitCode: ev.ExitCode, Usage: hub.CleanUsage(ev.Usage)}
	if ev.Proved {
		e.Kind, e.Reason = hub.EvStopProved, ""
	}
	if ev.NeverAttached {
		e.Reason = hub.ReasonNeverAttached
	}
	nd, changed, _, err := apply(tx, d, e, saying{})
	if err == nil && !changed && ev.Proved {
		nd, err = Reckon(tx, nd, ev.Usage)
	}
	if err != nil || !changed || nd.State != hub.Stopped || d.State != hub.StopUnknown {
		return nd, err
	}
	return nd, postEnd(tx, nd, "The worker has been stopped.")
}

// Abandon gives a Dispatch up. It signals no process and calls no peer; a
// final Dispatch, or one that has been replaced, stays as it is.
func Abandon(tx store.Tx, id hub.DispatchID) (d hub.Dispatch, already bool, err error) {
	d, err = tx.Dispatch(id)
	if err != nil || d.State.Final() {
		return d, true, err
	}
	d, _, _, err = apply(tx, d, hub.Event{Kind: hub.EvAbandon, Reason: "abandoned"}, saying{})
	return d, false, err
}
