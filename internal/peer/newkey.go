package peer

import (
	"context"
	"errors"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Rotator changes this hub's keys on disk; keystore.Ring implements it.
type Rotator interface {
	keystore.Source
	Rotate(old string) (keystore.Identity, error)
	Keep(former ...string) (keystore.Identity, error)
}

// RotateInput asks for a new key of this hub. Former keys are held until every
// trusted peer has pinned the present one. Forget names peers that are not
// waited for any more, Force means all of them: they will see peer_changed, and
// have to be paired again. Either makes a new key only if nobody is waited for.
type RotateInput struct {
	Forget []string
	Force  bool
}

// RotateResult is the answer to Rotate. Old is the key that was present before.
// Unaware are the peers that are waited for.
type RotateResult struct {
	HubID       string       `json:"hub_id"`
	Rotated     bool         `json:"rotated"`
	Old         string       `json:"old"`
	Fingerprint string       `json:"fingerprint"`
	Unaware     []hub.Peer   `json:"unaware"`
	Forgotten   []hub.PeerID `json:"forgotten"`
	All         bool         `json:"all"` // nobody is waited for
	Mutation    hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *RotateResult) Mut() *hub.Mutation { return &r.Mutation }

// Subject is this hub, which belongs to no Run.
func (r *RotateResult) Subject() (hub.RunID, string) { return "", r.HubID }

// Rotate makes a new key of this hub, or ends the wait for peers that do not
// know the present one. A request that was cut off is completed by repeating it:
// the lineage says whether its key was made.
func (s *Service) Rotate(ctx context.Context, r receipt.Request, in RotateInput) (RotateResult, error) {
	if s.cfg.Rotator == nil {
		return RotateResult{}, hub.Errorf(hub.CodeInternal, "this hub's key cannot be rotated")
	}
	perform := func(ctx context.Context, out RotateResult) (RotateResult, error) { return s.rotate(ctx, out) }
	return receipt.Long(ctx, s.cfg.Gate, r, receipt.Operation[RotateResult]{
		Class: store.Settle, Perform: perform, Observe: perform,
		Begin:   func(tx store.Tx) (RotateResult, error) { return s.planRotation(tx, in) },
		Unknown: func(RotateResult) bool { return false },
	})
}

// planRotation decides what to do and forgets who is not waited for.
func (s *Service) planRotation(tx store.Tx, in RotateInput) (RotateResult, error) {
	own := s.cfg.Rotator.Now()
	out := RotateResult{HubID: own.HubID, Old: own.Fingerprint, Fingerprint: own.Fingerprint, All: in.Force, Unaware: []hub.Peer{}, Forgotten: []hub.PeerID{}}
	unaware, err := s.unawareOf(tx, own)
	if err != nil {
		return out, err
	}
	out.Rotated = len(in.Forget) == 0 && !(in.Force && len(unaware) > 0)
	if out.Rotated && len(own.Lineage.Keys()) > keystore.MaxRotations {
		e := hub.Errorf(hub.CodePreconditionFailed, "this hub's key was rotated %d times, which is all that its lineage holds", keystore.MaxRotations)
		e.Hint = "make a new hub and pair it with the peers"
		return out, e
	}
	for _, who := range in.Forget {
		p, err := named(tx, who)
		if err != nil {
			return out, err
		}
		if !slices.ContainsFunc(unaware, func(u hub.Peer) bool { return u.ID == p.ID }) {
			return out, hub.Invalid("forget", "%s is not waited for: it knows the present key, or is not trusted", p.Name)
		}
	}
	for _, p := range unaware {
		if in.Force || slices.Contains(in.Forget, p.Name) || slices.Contains(in.Forget, string(p.ID)) {
			out.Forgotten = append(out.Forgotten, p.ID)
		}
	}
	return out, forget(tx, out.Forgotten, own.Fingerprint)
}

func named(rx store.PeerReader, idOrName string) (hub.Peer, error) {
	if hub.ValidID(hub.PrefixPeer, idOrName) {
		return rx.Peer(hub.PeerID(idOrName))
	}
	return rx.PeerByName(idOrName)
}

// forget records that the peers are shown the present key from now on, whatever
// they have pinned.
func forget(tx store.Tx, ids []hub.PeerID, present string) error {
	for _, id := range ids {
		p, err := tx.Peer(id)
		if err != nil {
			return err
		}
		p.Knows = present
		if err := tx.SavePeer(p); err != nil {
			return err
		}
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(id)})
	}
	return nil
}

// rotate makes the key that was planned, unless the lineage has it already.
func (s *Service) rotate(ctx context.Context, out RotateResult) (RotateResult, error) {
	if out.Rotated {
		id, err := s.cfg.Rotator.Rotate(out.Old)
		if err != nil && !errors.Is(err, keystore.ErrOtherKey) {
			return out, err
		}
		if out.Fingerprint = after(id.Lineage.Keys(), out.Old); out.Fingerprint == "" {
			return out, hub.Errorf(hub.CodePreconditionFailed, "this hub has another key than when it was asked to rotate it")
		}
	}
	if err := s.cfg.Rotated(ctx); err != nil {
		return out, err
	}
	forgotten := out.Forgotten
	err := s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		own := s.cfg.Rotator.Now()
		if out.Unaware, err = s.unawareOf(tx, own); err != nil || !out.All {
			tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: own.HubID})
			return err
		}
		ids := idsOf(out.Unaware)
		out.Unaware = []hub.Peer{}
		out.Forgotten = append(slices.Clone(forgotten), ids...)
		return forget(tx, ids, own.Fingerprint)
	})
	if err != nil || out.Rotated && !out.All {
		return out, err
	}
	return out, s.Settle(ctx)
}

// after is the key behind the given one, "" for none.
func after(keys []string, fp string) string {
	if i := slices.Index(keys, fp); i >= 0 && i+1 < len(keys) {
		return keys[i+1]
	}
	return ""
}

func idsOf(ps []hub.Peer) []hub.PeerID {
	ids := make([]hub.PeerID, len(ps))
	for i, p := range ps {
		ids[i] = p.ID
	}
	return ids
}

// Settle gives up the former keys that no trusted peer has pinned.
func (s *Service) Settle(ctx context.Context) error {
	needed, err := s.Needed(ctx)
	if err != nil || s.cfg.Rotator == nil {
		return err
	}
	_, err = s.cfg.Rotator.Keep(needed...)
	return err
}

// Unaware are the trusted peers that have not pinned the present key yet.
func (s *Service) Unaware(ctx context.Context) (ps []hub.Peer, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error {
		ps, err = s.unawareOf(rx, s.cfg.Identity.Now())
		return err
	})
	return ps, err
}

type unawareRx interface {
	PeerList() ([]hub.Peer, error)
	Now() hub.Micros
}

func (s *Service) unawareOf(rx unawareRx, own keystore.Identity) ([]hub.Peer, error) {
	all, err := rx.PeerList()
	out := []hub.Peer{}
	for _, p := range all {
		if lapse(p, rx.Now()).State.Trusted() && s.knows(p) != own.Fingerprint {
			out = append(out, p)
		}
	}
	return out, err
}

// Needed are the former keys that a trusted peer has pinned.
func (s *Service) Needed(ctx context.Context) (keys []string, err error) {
	unaware, err := s.Unaware(ctx)
	for _, p := range unaware {
		keys = append(keys, s.knows(p))
	}
	return keys, err
}
