package work

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// ProbeFor validates a peer's start without any effect.
func (s *Service) ProbeFor(ctx context.Context, home hub.Peer, in hub.PeerStart) (hub.Probe, error) {
	if in.Spec.Worker != "" {
		return s.probeAttached(ctx, home, in)
	}
	p, err := s.resolveFor(ctx, home, in)
	if err != nil {
		return hub.Probe{}, err
	}
	err = s.Store.View(ctx, func(rx store.Rx) error {
		now, err := homeNow(rx, home.ID)
		if err != nil {
			return err
		}
		return errors.Join(withinGrant(p, now.Grants), s.roomFor(rx, now, in.Spec.Agent))
	})
	return hub.Probe{Defaults: p.defaults, Warnings: []string{}}, err
}

// asHome refuses a peer that is not paired as a home.
func asHome(p hub.Peer) error {
	if p.Role.CanBe(hub.RoleHome) {
		return nil
	}
	return hub.Errorf(hub.CodeOutOfScope, "this peer is not paired as a home")
}

// homeNow is the home as it is paired now: what it may do is judged by that,
// where it is done.
func homeNow(rx store.PeerReader, id hub.PeerID) (hub.Peer, error) {
	p, err := rx.Peer(id)
	switch {
	case err != nil:
		return p, err
	case !p.State.Trusted():
		return p, hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
	}
	return p, asHome(p)
}

// addressed refuses a start that is not for this hub and its store, or that
// contradicts itself.
func (s *Service) addressed(home hub.Peer, in hub.PeerStart) error {
	if err := offered(home, in); err != nil {
		return err
	}
	switch {
	case in.StoreID != s.StoreID:
		return hub.Errorf(hub.CodePeerStoreChanged, "the start is addressed to another store")
	case in.Depth < 0 || in.Depth > hub.MaxRunDepth:
		return hub.Invalid("depth", "child Runs nest at most %d deep", hub.MaxRunDepth)
	case !hub.ValidID(hub.PrefixDispatch, string(in.Dispatch)), !hub.ValidID(hub.PrefixTask, string(in.Task)), !hub.ValidID(hub.PrefixRun, string(in.Run)):
		return hub.Invalid("dispatch_id", "the ids of the start are malformed")
	}
	_, err := in.Checks.Clean()
	return errors.Join(asHome(home), in.Spec.Check(true), in.Background.Check(), err)
}

// offered refuses a start that needs what either side does not offer now.
func offered(home hub.Peer, in hub.PeerStart) error {
	if err := hub.OwnOffer().Check("this hub", in.Contract, in.Features); err != nil {
		return err
	}
	return home.Offer().Check("the home", in.Contract, nil)
}

func (s *Service) resolveFor(ctx context.Context, home hub.Peer, in hub.PeerStart) (place, error) {
	if err := s.addressed(home, in); err != nil {
		return place{}, err
	}
	if path, ok := strings.CutPrefix(in.Spec.Worktree, "path:"); ok && !grantsPath(home.Grants, path) {
		return place{}, errNotGranted
	}
	p, err := s.resolve(ctx, in.Spec, &home.Grants)
	if err != nil {
		return p, err
	}
	p.resume, err = s.resumable(ctx, home.ID, in.RetryOf, in.Spec)
	return p, err
}

// StartFor starts a worker for a home's Dispatch: the same composition as for a
// local one. r is in the key space of the home's lineage.
func (s *Service) StartFor(ctx context.Context, r receipt.Request, home hub.Peer, in hub.PeerStart) (hub.Receipt, error) {
	if in.Spec.Worker != "" {
		return s.attachFor(ctx, r, home, in)
	}
	var p place
	return receipt.Long(ctx, s.Gate, r, receipt.Operation[hub.Receipt]{
		Class: store.New,
		Prepare: func(ctx context.Context) (err error) {
			p, err = s.resolveFor(ctx, home, in)
			return err
		},
		Begin: func(tx store.Tx) (hub.Receipt, error) { return s.beginFor(tx, r, home, in, p) },
		Perform: func(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
			return s.performOwn(ctx, home.ID, begun, p, brief{in.Prompt, in.Background}, true)
		},
		Observe: func(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
			shown, err := s.ShowFor(ctx, home, begun.Dispatch)
			shown.Receipt.Mutation = begun.Mutation
			return shown.Receipt, err
		},
		Unknown: openStart, Open: left,
	})
}

// attachable refuses a home's Dispatch that is or was attached here.
func attachable(tx store.Tx, home hub.Peer, id hub.DispatchID) error {
	a, known, err := tx.Attachment(home.ID, id)
	switch {
	case err != nil:
		return err
	case known && a.Tombstone:
		return hub.Errorf(hub.CodeDispatchInactive, "%s was stopped before it started", id)
	case known:
		return hub.Errorf(hub.CodeResourceServerMismatch, "%s is attached under another request", id)
	}
	if _, err := tx.Mailbox(id.Box()); err == nil {
		return hub.Errorf(hub.CodeResourceServerMismatch, "%s is another home's Dispatch here", id)
	}
	return nil
}

func (s *Service) beginFor(tx store.Tx, r receipt.Request, home hub.Peer, in hub.PeerStart, p place) (hub.Receipt, error) {
	if err := attachable(tx, home, in.Dispatch); err != nil {
		return hub.Receipt{}, err
	}
	now, err := homeNow(tx, home.ID)
	if err != nil {
		return hub.Receipt{}, err
	}
	if err := errors.Join(offered(now, in), withinGrant(p, now.Grants), s.roomFor(tx, now, in.Spec.Agent)); err != nil {
		return hub.Receipt{}, err
	}
	if in.Checks, err = in.Checks.Clean(); err != nil {
		return hub.Receipt{}, err
	}
	a := s.newAttachment(p, in, home.ID, r.Key)
	if err := errors.Join(claim(tx, p, a), p.reserve(tx, home.ID, in.Dispatch)); err != nil {
		return hub.Receipt{}, err
	}
	_, sum := s.Authority.Capability(home.ID, in.Dispatch)
	return a.Receipt, dispatch.Attach(tx, a, sum)
}

// ShowFor is this hub's read-only word on a home's Dispatch.
func (s *Service) ShowFor(ctx context.Context, home hub.Peer, id hub.DispatchID) (hub.PeerShow, error) {
	var a hub.Attachment
	var ok bool
	var queue store.Queue
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if _, err = homeNow(rx, home.ID); err != nil {
			return err
		}
		if a, ok, err = rx.Attachment(home.ID, id); err != nil {
			return err
		}
		queue, err = rx.Queue(store.QueueKey{Peer: home.ID, Dispatch: id, Direction: hub.ToHome})
		return err
	})
	if err != nil || !ok || a.Tombstone {
		return hub.PeerShow{Observation: hub.Observation{Process: hub.Unverifiable, Attachment: "absent", Link: "local"}}, err
	}
	if a, err = s.settled(ctx, a); err != nil {
		return hub.PeerShow{}, err
	}
	obs, err := s.observe(ctx, a)
	obs.LastSeq = queue.LastSeq
	return hub.PeerShow{Attached: true, Receipt: a.Receipt, Observation: obs}, err
}

// StopFor ends a home's Dispatch that the home has fenced. One that never got
// here gets a tombstone: a late start is refused.
func (s *Service) StopFor(ctx context.Context, r receipt.Request, home hub.Peer, id hub.DispatchID, in hub.PeerStop) (hub.StopEvidence, error) {
	if in.StoreID != s.StoreID {
		return hub.StopEvidence{}, hub.Errorf(hub.CodePeerStoreChanged, "the start was addressed to another store")
	}
	var a hub.Attachment
	err := s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		if err = receipt.Authorize(tx, r.Principal); err != nil {
			return err
		}
		if _, err = homeNow(tx, home.ID); err != nil {
			return err
		}
		var known bool
		if a, known, err = tx.Attachment(home.ID, id); err != nil {
			return err
		}
		if !known && in.Epoch != s.Epoch {
			return hub.Errorf(hub.CodePeerStoreChanged, "the store was restored since the start; whether it took place is not known here")
		}
		if !known {
			if err := attachable(tx, home, id); err != nil { // it may run for what was paired before
				return err
			}
			a = hub.Attachment{Home: home.ID, Dispatch: id, Tombstone: true}
			return dispatch.Entomb(tx, home.ID, id)
		}
		return dispatch.Order(tx, a, hub.FenceItem{Request: r.Key, GraceMS: in.GraceMS})
	})
	if err != nil {
		return hub.StopEvidence{}, err
	}
	if a.Tombstone {
		return hub.StopEvidence{Proved: true, NeverAttached: true, Action: hub.ActionNone, Residuals: []hub.Resource{}}, nil
	}
	return s.carryOut(ctx, a, r.Key, stopTimeout(in.TimeoutMS))
}

// OutputFor is one page of a home's Dispatch's output.
func (s *Service) OutputFor(ctx context.Context, home hub.Peer, id hub.DispatchID, q OutputQuery) (hub.OutputPage, error) {
	if err := s.mayRead(ctx, home.ID); err != nil {
		return hub.OutputPage{}, err
	}
	a, err := s.attachment(ctx, home.ID, id)
	if err != nil {
		return hub.OutputPage{}, err
	}
	page, err := s.page(ctx, a, q)
	if err == nil {
		err = s.mayRead(ctx, home.ID) // the grant may have ended while it waited
	}
	if err != nil {
		return hub.OutputPage{}, err
	}
	return page, nil
}

func (s *Service) mayRead(ctx context.Context, home hub.PeerID) error {
	return s.Store.View(ctx, func(rx store.Rx) error {
		now, err := homeNow(rx, home)
		if err == nil && !slices.Contains(now.Grants.Verbs, hub.GrantRead) {
			err = ungranted(hub.GrantRead, "read output")
		}
		return err
	})
}
