package work

import (
	"context"
	"encoding/json"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Shown is a Dispatch with what its owner observes and its start receipt.
type Shown struct {
	Dispatch    hub.Dispatch
	Observation hub.Observation
	Receipt     hub.Receipt
	Parked      string // why nothing comes over the relay, or goes; "" if it flows
}

// inspectTimeout bounds the question to a peer.
const inspectTimeout = 5 * time.Second

// Show reads one Dispatch and asks its owner. What the owner proves about an
// unknown start is recorded; nothing else changes.
func (s *Service) Show(ctx context.Context, id hub.DispatchID) (Shown, error) {
	out, err := s.recorded(ctx, id)
	if err != nil {
		return out, err
	}
	if out.Dispatch.Local() {
		out.Observation, err = s.observeLocal(ctx, out.Dispatch)
	} else {
		out.Observation, err = s.inspect(ctx, out.Dispatch)
	}
	if err != nil {
		return out, err
	}
	obs := out.Observation
	out, err = s.recorded(ctx, id) // what the owner proved may have moved it
	out.Observation = obs
	return out, err
}

func (s *Service) recorded(ctx context.Context, id hub.DispatchID) (out Shown, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if out.Dispatch, err = rx.Dispatch(id); err != nil {
			return err
		}
		if out.Parked, err = dispatch.Parked(rx, out.Dispatch); err != nil {
			return err
		}
		out.Receipt, err = s.Started(rx, id)
		return err
	})
	return out, err
}

func (s *Service) observeLocal(ctx context.Context, d hub.Dispatch) (hub.Observation, error) {
	a, err := s.attachment(ctx, "", d.ID)
	if hub.IsCode(err, hub.CodeDispatchNotFound) {
		return hub.Observation{Link: "local", Process: hub.Unverifiable, Attachment: "absent"}, nil
	}
	if err != nil {
		return hub.Observation{}, err
	}
	if a, err = s.settled(ctx, a); err != nil {
		return hub.Observation{}, err
	}
	return s.observe(ctx, a)
}

// settled tries to decide an attachment's start whose outcome is open. Not being
// able to is no error: it stays open.
func (s *Service) settled(ctx context.Context, a hub.Attachment) (hub.Attachment, error) {
	if a.Process != nil || a.ExitDone || !openStart(a.Receipt) {
		return a, nil
	}
	if err := s.recover(ctx, a); err != nil {
		s.Log.Warn("finding out about a start", "dispatch_id", a.Dispatch, "error", err)
	}
	return s.attachment(ctx, a.Home, a.Dispatch)
}

// observe is the owner's present word on a worker, and the worker's own.
func (s *Service) observe(ctx context.Context, a hub.Attachment) (hub.Observation, error) {
	if a.Attached() {
		return s.observeAttached(a)
	}
	obs, err := s.look(ctx, a)
	if err != nil {
		return obs, err
	}
	obs = s.present(a, obs)
	h, _, open, err := s.held(ctx, attempt{a.Home, a.Dispatch})
	if open && !h.Fenced() {
		obs.WaitingFor = "verification"
	}
	return obs, err
}

func (s *Service) look(ctx context.Context, a hub.Attachment) (hub.Observation, error) {
	obs, err := known(a)
	if err != nil {
		return obs, err
	}
	if a.Process == nil {
		if a.ExitDone {
			obs.Process = hub.Exited
		}
		return obs, nil
	}
	st, err := s.Terminals.Observe(ctx, *a.Process)
	if err != nil {
		obs.LastError = err.Error()
		return obs, nil // not being able to look proves nothing
	}
	obs.Process, obs.ExitCode, obs.LastOutputAt = st.Liveness, st.ExitCode, st.LastOutputAt
	switch {
	case st.Liveness == hub.Exited:
		obs.WaitingFor = hub.WaitsForNone
	case st.Liveness == hub.Live:
		obs.WaitingFor = s.agentWaits(ctx, a)
	}
	return obs, nil
}

// agentWaits is what an agent waits for: what its hooks said last, unless its
// terminal's title knows better. A turn that is interrupted fires no hook.
func (s *Service) agentWaits(ctx context.Context, a hub.Attachment) string {
	said := a.Agent.Waiting
	if said == "" {
		said = hub.WaitsForUnknown
	}
	if a.Agent.Mode != hub.ModeTUI {
		return said
	}
	st, err := s.Terminals.State(ctx, *a.Process)
	if err != nil {
		return said // the title is a second opinion only
	}
	kind, ok := s.Agents.TitleState(a.Spec.Agent, st.Title, st.Agent)
	if !ok || said == hub.WaitsForPermission && kind == hub.AgentIdle {
		return said // some titles show a question as they show idleness
	}
	return hub.WaitingFor(said, kind)
}

// known is what the owner's record alone says of a worker.
func known(a hub.Attachment) (hub.Observation, error) {
	obs := hub.Observation{
		Link: "local", Process: hub.Unverifiable, Attachment: "present", LastReportAt: a.LastReportAt, WaitingFor: hub.WaitsForUnknown,
		StartState: a.Receipt.State, FailedStage: a.Receipt.FailedStage, LastError: a.Receipt.LastError, Stage: a.Receipt.Stage,
		ObservedAt: hub.MicrosOf(time.Now()), Session: a.Agent.Session.ID,
	}
	if a.Agent.Usage == nil {
		return obs, nil
	}
	raw, err := json.Marshal(a.Agent.Usage)
	obs.Usage = raw
	return obs, err
}

// inspect asks the peer that owns the Dispatch and records what it proves.
func (s *Service) inspect(ctx context.Context, d hub.Dispatch) (hub.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	shown, err := s.Remote.Show(ctx, d.Server.PeerID, d.ID)
	if err != nil {
		return hub.Observation{Link: s.link(d), Process: hub.Unverifiable, Attachment: "unknown", LastError: err.Error()}, nil
	}
	obs := shown.Observation
	obs.Link = "up"
	return obs, s.reconcile(ctx, d, shown)
}

func (s *Service) link(d hub.Dispatch) string {
	if s.LinkUp(d.Server.PeerID) {
		return "up"
	}
	return "down"
}

// reconcile applies an owner's proof of a start whose receipt is unknown, also
// when a report has settled the Dispatch meanwhile. An absent attachment proves
// nothing: the request may still arrive.
func (s *Service) reconcile(ctx context.Context, d hub.Dispatch, shown hub.PeerShow) error {
	if !shown.Attached || shown.Receipt.Dispatch != d.ID {
		return nil
	}
	if err := s.hearSetup(ctx, d, shown.Receipt.Setup); err != nil {
		return err
	}
	if eventOf(shown.Receipt) == hub.EvStartLost {
		return nil
	}
	var begun hub.Receipt
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		begun, err = rx.StartReceipt(d.ID)
		return err
	})
	if err != nil || begun.State != hub.StartOutcomeUnknown {
		return err
	}
	_, err = s.endRemote(ctx, d, begun, shown.Receipt, nil, sending{})
	return err
}

// hearSetup records the end of a setup that its owner shows.
func (s *Service) hearSetup(ctx context.Context, d hub.Dispatch, setup hub.SetupReport) error {
	if !setup.Over() {
		return nil
	}
	var known hub.Receipt
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		known, err = rx.StartReceipt(d.ID)
		return err
	})
	if err != nil || known.Setup.Over() {
		return err
	}
	return s.Store.Update(ctx, store.Import, func(tx store.Tx) error { return dispatch.HearSetup(tx, d.ID, setup) })
}

// Reconcile inspects every Dispatch of a peer whose state is unknown; it is
// called when the link comes up.
func (s *Service) Reconcile(ctx context.Context, peer hub.PeerID) error {
	var unknown []hub.Dispatch
	err := s.Store.View(ctx, func(rx store.Rx) error {
		ds, _, err := rx.DispatchList(store.DispatchFilter{Peer: peer, Live: true}, store.Page{Limit: maxReconcile})
		for _, d := range ds {
			if d.State == hub.StartUnknown {
				unknown = append(unknown, d)
			}
		}
		return err
	})
	for _, d := range unknown {
		if err == nil {
			_, err = s.inspect(ctx, d)
		}
	}
	return err
}

const maxReconcile = 10_000

// List reads Dispatches, newest first.
func (s *Service) List(ctx context.Context, f store.DispatchFilter, p store.Page) (ds []hub.Dispatch, next int64, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		ds, next, err = rx.DispatchList(f, p)
		return err
	})
	return ds, next, err
}
