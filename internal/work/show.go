package work

import (
	"context"
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
		obs, err := s.observeAttached(a)
		return s.vouched(a, obs), err
	}
	obs, err := s.look(ctx, a)
	if err != nil {
		return obs, err
	}
	obs = s.vouched(a, s.present(a, obs))
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
	usage, err := a.Used()
	obs.Usage = usage
	return obs, err
}

// inspect asks the peer that owns the Dispatch and records what it proves. One
// that cannot be asked leaves what is on record.
func (s *Service) inspect(ctx context.Context, d hub.Dispatch) (hub.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	err := dispatch.Routed(ctx, s.Store, d)
	var shown hub.PeerShow
	if err == nil {
		shown, err = s.Remote.Show(ctx, d.Server.PeerID, d.ID)
	}
	if err != nil {
		obs := s.remembered(d)
		obs.LastError = err.Error()
		return obs, nil
	}
	obs := shown.Observation
	obs.Link, obs.LinkAt = "up", 0
	if s.LinkUp(d.Server.PeerID) {
		obs.LinkAt, _, _ = s.hearsay.about(d.Server.PeerID, d.ID)
	}
	obs.ProcessAt, obs.LastProcess = hub.MicrosOf(time.Now()), obs.Process
	return obs, s.reconcile(ctx, d, shown)
}

// List reads Dispatches, newest first.
func (s *Service) List(ctx context.Context, f store.DispatchFilter, p store.Page) (ds []hub.Dispatch, next int64, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		ds, next, err = rx.DispatchList(f, p)
		return err
	})
	return ds, next, err
}
