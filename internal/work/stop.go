package work

import (
	"context"
	"encoding/json"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// StopInput is the argument of Stop. TimeoutMS 0 means 30 s, GraceMS 0 the
// launcher's grace.
type StopInput struct {
	Dispatch  hub.DispatchID `json:"dispatch_id"`
	TimeoutMS int64          `json:"timeout_ms"`
	GraceMS   int64          `json:"grace_ms"`
}

func stopTimeout(ms int64) time.Duration {
	if ms == 0 {
		return 30 * time.Second
	}
	return time.Duration(ms) * time.Millisecond
}

// Stop fences the Dispatch at home, then has its owner end exactly its process
// tree. What cannot be proved in time is stop_unknown.
func (s *Service) Stop(ctx context.Context, r receipt.Request, in StopInput) (hub.StopResult, error) {
	return receipt.Long(ctx, s.Gate, r, receipt.Operation[hub.StopResult]{
		Class: store.Settle,
		Begin: fencing(r, in),
		Perform: func(ctx context.Context, begun hub.StopResult) (hub.StopResult, error) {
			return s.performStop(ctx, r.Key, in, begun)
		},
		Observe: func(ctx context.Context, begun hub.StopResult) (hub.StopResult, error) {
			return s.performStop(ctx, r.Key, in, begun)
		},
		Unknown: func(r hub.StopResult) bool { return r.State == hub.StopUnknown || r.State == hub.Stopping },
		Open: func(begun hub.StopResult) hub.StopResult {
			begun.Action, begun.LastError = hub.ActionUnknown, "the stop goes on and its end was not waited for"
			begun.NextCommands = inspectCommands(begun.Dispatch)
			return begun
		},
	})
}

// BeginStop commits the fence of a stop, and that it has begun, with the caller's
// transaction: from then on the Dispatch's reports change nothing. Stop with the
// same request carries it out, as often as it is called and also after a crash; a
// BeginStop that comes again changes nothing.
func (s *Service) BeginStop(tx store.Tx, r receipt.Request, in StopInput) (hub.StopResult, error) {
	return receipt.BeginInTx(tx, r, fencing(r, in))
}

// fencing is how a stop begins.
func fencing(r receipt.Request, in StopInput) func(store.Tx) (hub.StopResult, error) {
	return func(tx store.Tx) (hub.StopResult, error) {
		if err := operates(tx, r.Principal, in.Dispatch); err != nil {
			return hub.StopResult{}, err
		}
		if err := stoppable(tx, in.Dispatch); err != nil {
			return hub.StopResult{}, err
		}
		d, already, err := dispatch.Fence(tx, in.Dispatch, hub.FenceItem{Request: r.Key, GraceMS: in.GraceMS})
		return stopResult(d, already), err
	}
}

// stoppable refuses, before the fence, a stop that the owner cannot understand.
// One whose end is on record needs nobody.
func stoppable(tx store.Tx, id hub.DispatchID) error {
	d, err := tx.Dispatch(id)
	if err != nil || d.Local() || d.State.Final() {
		return err
	}
	p, err := tx.Peer(d.Server.PeerID)
	if err != nil {
		return err
	}
	return offeredTo(p, d.Pin, false)
}

func stopResult(d hub.Dispatch, already bool) hub.StopResult {
	return hub.StopResult{
		Run: d.Run, Dispatch: d.ID, State: d.State, AlreadySettled: already, Action: hub.ActionNone,
		Residuals: []hub.Resource{}, NextCommands: [][]string{},
	}
}

// performStop asks the owner and records its evidence at home.
func (s *Service) performStop(ctx context.Context, key hub.RequestID, in StopInput, begun hub.StopResult) (hub.StopResult, error) {
	var d hub.Dispatch
	var started hub.Receipt
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if d, err = rx.Dispatch(in.Dispatch); err != nil {
			return err
		}
		started, err = s.startReceipt(rx, d)
		return err
	})
	if err != nil {
		return begun, err
	}
	if d.State.Final() {
		return s.endedBefore(ctx, key, in, begun, d, started), nil
	}
	ev := s.askOwner(ctx, key, d, in)
	if err := s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		if d, err = dispatch.EndStop(tx, in.Dispatch, ev); err != nil {
			return err
		}
		started, err = s.startReceipt(tx, d) // the stop may have ended a setup
		return err
	}); err != nil {
		return begun, err
	}
	out := stopResult(d, d.State.Final() && d.State != hub.Stopped)
	out.Action, out.LastError, out.Mutation = ev.Action, ev.LastError, begun.Mutation
	started.Residuals = append(started.Residuals[:len(started.Residuals):len(started.Residuals)], onServer(ev.Residuals, d.Server.Name)...)
	out.Residuals = leftOver(started, d)
	if !ev.Proved {
		out.NextCommands = inspectCommands(d.ID)
	}
	return out, nil
}

// endedBefore answers for a Dispatch whose end is on record: that of this stop, if
// the evidence came another way than by this call, is asked of the owner.
func (s *Service) endedBefore(ctx context.Context, key hub.RequestID, in StopInput, begun hub.StopResult, d hub.Dispatch, started hub.Receipt) hub.StopResult {
	out := stopResult(d, begun.AlreadySettled || d.State != hub.Stopped)
	out.Mutation, out.Residuals = begun.Mutation, leftOver(started, d)
	if out.AlreadySettled {
		return out
	}
	ev := s.askOwner(ctx, key, d, in)
	out.Action, out.LastError = ev.Action, ev.LastError
	return out
}

func (s *Service) askOwner(ctx context.Context, key hub.RequestID, d hub.Dispatch, in StopInput) hub.StopEvidence {
	timeout := stopTimeout(in.TimeoutMS)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var ev hub.StopEvidence
	var err error
	if d.Local() {
		var a hub.Attachment
		if a, err = s.attachment(ctx, "", d.ID); err == nil {
			ev, err = s.carryOut(ctx, a, key, timeout)
		}
	} else if err = dispatch.Routed(ctx, s.Store, d); err == nil {
		ev, err = s.Remote.Stop(ctx, d.Server.PeerID, key, d.ID, hub.PeerStop{
			StoreID: d.Pin.StoreID, Epoch: d.Pin.Epoch, GraceMS: in.GraceMS, TimeoutMS: timeout.Milliseconds(),
		})
	}
	if err != nil {
		return hub.StopEvidence{Action: hub.ActionUnknown, LastError: err.Error()}
	}
	return ev
}

// carryOut ends the exact incarnation of a fenced attachment and commits the
// evidence. It waits for a start that is still composing to see the fence. What
// was carried out for the same request is answered as it was then.
func (s *Service) carryOut(ctx context.Context, a hub.Attachment, key hub.RequestID, timeout time.Duration) (hub.StopEvidence, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	release, err := s.hands.take(ctx, attempt{a.Home, a.Dispatch})
	if err != nil {
		return hub.StopEvidence{Action: hub.ActionUnknown, LastError: "the start has not come to an end: " + err.Error()}, nil
	}
	defer release()
	if a, err = s.attachment(ctx, a.Home, a.Dispatch); err != nil {
		return hub.StopEvidence{}, err
	}
	if a.Fenced {
		return doneBefore(a, key)
	}
	w, held, err := s.heldSetup(ctx, a)
	if err == nil && held {
		err = s.endSetup(ctx, w)
	}
	if err != nil {
		s.Log.Error("ending a setup that holds a start", "dispatch_id", a.Dispatch, "error", err)
	}
	ev := s.stopVerification(ctx, a, s.end(ctx, a))
	if err := s.Unspool(context.WithoutCancel(ctx), a.Dispatch); err != nil { // it is stale, and taken later
		s.Log.Warn("draining the spool of a stopped worker", "dispatch_id", a.Dispatch, "error", err)
	}
	err = s.Store.Update(context.WithoutCancel(ctx), store.Settle, func(tx store.Tx) error {
		return dispatch.Stopped(tx, a.Home, a.Dispatch, ev)
	})
	if err != nil {
		return ev, err
	}
	ev.Residuals = a.Receipt.Effects
	ev.Usage, err = s.usedBy(ctx, a)
	return ev, err
}

// usedBy is what the worker of an attachment has used by now.
func (s *Service) usedBy(ctx context.Context, a hub.Attachment) (json.RawMessage, error) {
	a, err := s.attachment(context.WithoutCancel(ctx), a.Home, a.Dispatch)
	if err != nil {
		return nil, err
	}
	return a.Used()
}

// doneBefore is the evidence of a stop that was carried out. Another request than
// that has ended nothing.
func doneBefore(a hub.Attachment, key hub.RequestID) (hub.StopEvidence, error) {
	usage, err := a.Used()
	ev := hub.StopEvidence{Usage: usage, Proved: true, Action: hub.ActionNone, Residuals: a.Receipt.Effects}
	if f := a.Fence; f != nil && f.Request == key && f.Action != "" {
		ev.Action, ev.ExitCode = f.Action, f.ExitCode
	}
	return ev, err
}

// end stops the process of an attachment, if it has or may have one.
func (s *Service) end(ctx context.Context, a hub.Attachment) hub.StopEvidence {
	if a.Attached() {
		return s.endAttached(ctx, a)
	}
	in, ok, err := s.incarnation(ctx, a)
	if err != nil {
		return hub.StopEvidence{Action: hub.ActionUnknown, LastError: err.Error()}
	}
	if !ok {
		return hub.StopEvidence{Proved: true, Action: hub.ActionNone}
	}
	if ev, ok := s.leaveAlone(ctx, a, in); ok {
		return ev
	}
	proof, err := s.Terminals.Stop(ctx, in, s.grace(a))
	if err != nil {
		return hub.StopEvidence{Action: hub.ActionUnknown, LastError: err.Error()}
	}
	ev := hub.StopEvidence{Proved: proof.State.Liveness == hub.Exited, Action: proof.Action, ExitCode: proof.State.ExitCode}
	if !ev.Proved {
		ev.LastError = "the process can be neither verified nor signalled"
	}
	return ev
}

func (s *Service) grace(a hub.Attachment) time.Duration {
	if a.Fence != nil && a.Fence.GraceMS > 0 {
		return time.Duration(a.Fence.GraceMS) * time.Millisecond
	}
	return s.Agents.Grace(a.Spec.Agent)
}

// incarnation is the attachment's process: the recorded one, or the one that a
// cut-off launch left; false is proof that there is none and will be none.
func (s *Service) incarnation(ctx context.Context, a hub.Attachment) (hub.Incarnation, bool, error) {
	if a.Process != nil {
		return *a.Process, true, nil
	}
	if a.Receipt.Stage != hub.StageTerminalCreating {
		return hub.Incarnation{}, false, nil
	}
	return s.Terminals.Recover(ctx, a.Terminal)
}

// leftOver lists what a stop or abandon leaves behind: worktrees and branches
// always, terminals as far as they may be alive.
func leftOver(r hub.Receipt, d hub.Dispatch) []hub.Resource {
	out := []hub.Resource{}
	for _, e := range append(append([]hub.Resource{}, r.Effects...), r.Residuals...) {
		gone := e.Kind == "terminal" && provenGone(d)
		if e.OfSetup() {
			gone = r.Setup.Over()
		}
		if e.Kind == "dispatch_input" || gone || listed(out, e) {
			continue
		}
		if e.Kind == "terminal" {
			e.Liveness = hub.Unverifiable
		}
		out = append(out, e)
	}
	return out
}

// provenGone reports whether the end of the worker's process is on record.
func provenGone(d hub.Dispatch) bool {
	return d.State == hub.Stopped && d.Evidence == hub.EvidenceStop || d.Evidence == hub.EvidenceExit
}

func listed(rs []hub.Resource, r hub.Resource) bool {
	for _, x := range rs {
		if x.Kind == r.Kind && x.ID == r.ID {
			return true
		}
	}
	return false
}

// Abandon gives a Dispatch up. It signals no process and calls no peer.
func (s *Service) Abandon(ctx context.Context, r receipt.Request, id hub.DispatchID) (hub.StopResult, error) {
	return receipt.Do(ctx, s.Store, store.Settle, r, func(tx store.Tx) (hub.StopResult, error) {
		if err := operates(tx, r.Principal, id); err != nil {
			return hub.StopResult{}, err
		}
		d, already, err := s.GiveUp(tx, id)
		if err != nil {
			return hub.StopResult{}, err
		}
		out := stopResult(d, already)
		started, err := s.startReceipt(tx, d)
		if err != nil {
			return out, err
		}
		out.Residuals = leftOver(started, d)
		out.Warning = "no process was signalled: the worker may still run, and its reports change nothing any more"
		if already {
			out.Warning = "nothing has changed: the Dispatch had ended"
		}
		return out, nil
	})
}

// GiveUp abandons a Dispatch in the caller's transaction, and keeps what its owner said
// last that it used. already is true for one that had ended, which stays as it is.
func (s *Service) GiveUp(tx store.Tx, id hub.DispatchID) (d hub.Dispatch, already bool, err error) {
	if d, already, err = dispatch.Abandon(tx, id); err != nil {
		return d, already, err
	}
	d, err = dispatch.Reckon(tx, d, s.heardUsage(d))
	return d, already, err
}

type receiptRx interface {
	store.DispatchReader
	store.AttachmentReader
}

// Started is the freshest start receipt that this hub has of a Dispatch.
func (s *Service) Started(rx store.Rx, id hub.DispatchID) (hub.Receipt, error) {
	d, err := rx.Dispatch(id)
	if err != nil {
		return hub.Receipt{}, err
	}
	r, err := s.startReceipt(rx, d)
	r.DispatchState = d.State
	return r, err
}

// startReceipt is the freshest start receipt that this hub has of a Dispatch.
func (s *Service) startReceipt(rx receiptRx, d hub.Dispatch) (hub.Receipt, error) {
	if d.Local() {
		if a, ok, err := rx.Attachment("", d.ID); err != nil || ok {
			return a.Receipt, err
		}
	}
	return rx.StartReceipt(d.ID)
}
