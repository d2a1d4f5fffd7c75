package peer

import (
	"cmp"
	"context"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/store"
)

// Get returns one peer; peer_not_found if there is none.
func (s *Service) Get(ctx context.Context, id hub.PeerID) (p hub.Peer, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { p, err = rx.Peer(id); return err })
	return p, err
}

// Find returns the peer of an id or, among those not removed, of a name.
func (s *Service) Find(ctx context.Context, idOrName string) (p hub.Peer, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { p, err = find(rx, idOrName); return err })
	return p, err
}

// List returns all peers, the newest first.
func (s *Service) List(ctx context.Context) (ps []hub.Peer, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { ps, err = rx.PeerList(); return err })
	return ps, err
}

// ByFingerprint returns the peer whose present key it is, in whatever state. A
// pending one whose window has passed counts as revoked.
func (s *Service) ByFingerprint(ctx context.Context, fp string) (p hub.Peer, ok bool, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { p, ok, err = rx.PeerByFingerprint(fp); return err })
	return lapse(p, s.cfg.Now()), ok, err
}

func lapse(p hub.Peer, now hub.Micros) hub.Peer {
	if p.State == hub.PeerPending && p.ConfirmUntil < now {
		p.State = hub.PeerRevoked
	}
	return p
}

// Admit returns the peer that a connection with this key stands for, on any
// route but pairing. It completes a pairing whose fifth message was lost: that
// the peer comes with a pinned connection proves that it has accepted.
func (s *Service) Admit(ctx context.Context, fp string) (hub.Peer, error) {
	p, ok, err := s.ByFingerprint(ctx, fp)
	switch {
	case err != nil:
		return p, err
	case !ok:
		return p, cmp.Or(refuseReplaced(ctx, s, fp), error(hub.Errorf(hub.CodeInvalidToken, "the key is not paired")))
	case p.State == hub.PeerActive:
		return p, nil
	case p.State == hub.PeerPending:
		return s.confirm(ctx, p.ID)
	}
	err = hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
	s.Refused(p, StagePin, err)
	return p, err
}

// confirm makes a pending peer active; an active one stays so.
func (s *Service) confirm(ctx context.Context, id hub.PeerID) (p hub.Peer, err error) {
	err = s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		if p, err = tx.Peer(id); err != nil || p.State == hub.PeerActive {
			return err
		}
		if lapse(p, tx.Now()).State != hub.PeerPending {
			return hub.Errorf(hub.CodePeerRevoked, "%s is no longer pending", p.Name)
		}
		p.State, p.ConfirmUntil = hub.PeerActive, 0
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(id)})
		return tx.SavePeer(p)
	})
	return p, err
}

// InviteOpen reports whether an unknown key may try to pair now.
func (s *Service) InviteOpen(ctx context.Context) bool {
	open, err := s.openInvites(ctx)
	return err == nil && len(open) > 0
}

func (s *Service) openInvites(ctx context.Context) (open []hub.Invite, err error) {
	now := s.cfg.Now()
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { open, err = rx.OpenInvites(now); return err })
	return usable(open, s.cfg.Identity.Now()), err
}

// bound reports whether the invite's code is bound to the present key. A code
// from before a rotation opens nothing: it names a key that is not shown any more.
func bound(inv hub.Invite, own keystore.Identity) bool {
	return cmp.Or(inv.BoundTo, own.HubID) == own.Fingerprint
}

func usable(open []hub.Invite, own keystore.Identity) []hub.Invite {
	return slices.DeleteFunc(open, func(inv hub.Invite) bool { return !bound(inv, own) })
}

// Hello is what this hub says of itself on a link.
func (s *Service) Hello(ctx context.Context) (hub.Hello, error) {
	id, epoch, err := s.self(ctx)
	own, offer := s.cfg.Identity.Now(), s.offer()
	return hub.Hello{
		HubID: own.HubID, StoreID: id, StoreEpoch: epoch, Nonce: s.cfg.Nonce, Version: s.cfg.Version,
		Contracts: offer.Contracts, Features: offer.Features, Proofs: own.Lineage.Bytes(),
	}, err
}

func (s *Service) self(ctx context.Context) (id string, epoch int64, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { id, epoch, err = rx.StoreIdentity(); return err })
	return id, epoch, err
}

// SawHello judges a peer's hello against its record, before any effect: other
// lineage, or one that is not proved to be of the pinned key → peer_changed,
// other store → peer_store_changed, no federation/1 → capability_unsupported.
// What it offers, and a new epoch of the same store, is noted.
func (s *Service) SawHello(ctx context.Context, id hub.PeerID, h hub.Hello) error {
	p, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	if h.HubID != p.Lineage {
		return changed(p.Lineage, h.HubID)
	}
	if !leadsTo(h.Proofs, p) {
		return changed(p.Fingerprint, h.HubID)
	}
	offer := hub.Offer{Contracts: h.Contracts, Features: h.Features}
	if err := s.sawOffer(ctx, p, offer); err != nil {
		return err
	}
	if !h.Offers(hub.ContractFederation) {
		return hub.Errorf(hub.CodeCapabilityUnsupported, "%s does not offer %s", p.Name, hub.ContractFederation)
	}
	return s.SawStore(ctx, id, h.StoreID, h.StoreEpoch)
}

// SawStore is SawHello for the store alone, as a relay's hello says it.
func (s *Service) SawStore(ctx context.Context, id hub.PeerID, storeID string, epoch int64) error {
	p, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case !lapse(p, s.cfg.Now()).State.Trusted():
		return hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
	case p.StoreID != storeID:
		e := hub.Errorf(hub.CodePeerStoreChanged, "%s answers with the store %s, paired was %s", p.Name, storeID, p.StoreID)
		e.Hint = "its data directory was replaced; nothing was sent. Put the paired store back; or remove the peer and pair again, which gives up what is on that store"
		return e
	case p.StoreEpoch == epoch:
		return nil
	}
	return s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		p, err := tx.Peer(id)
		if err != nil || p.StoreID != storeID {
			return err
		}
		p.StoreEpoch = epoch
		return tx.SavePeer(p)
	})
}
