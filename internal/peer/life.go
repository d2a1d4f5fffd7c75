package peer

import (
	"context"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// UpdateInput changes how this hub calls and reaches a peer; what is empty
// stays. Addresses replace all that there were.
type UpdateInput struct {
	Name      string
	Addresses []string
}

// Update renames a peer, or gives it other addresses. Key and store stay
// pinned: who answers there has to be the same hub. A link that is up is left
// alone; one that is down is tried at once.
func (s *Service) Update(ctx context.Context, r receipt.Request, idOrName string, in UpdateInput) (PeerResult, error) {
	in, err := in.checked()
	if err != nil {
		return PeerResult{}, err
	}
	return s.change(ctx, r, idOrName, func(tx store.Tx, p *hub.Peer) error {
		if in.Name != "" && in.Name != p.Name {
			if err := unnamed(tx, in.Name); err != nil {
				return err
			}
			p.Name = in.Name
		}
		if len(in.Addresses) > 0 {
			p.Addresses = in.Addresses
		}
		return nil
	})
}

func (in UpdateInput) checked() (UpdateInput, error) {
	if in.Name == "" && len(in.Addresses) == 0 {
		return in, hub.Invalid("name", "give a name or addresses")
	}
	if in.Name != "" {
		if err := checkName(in.Name); err != nil {
			return in, err
		}
	}
	if len(in.Addresses) > hub.MaxAddresses {
		return in, hub.Invalid("addresses", "at most %d are taken", hub.MaxAddresses)
	}
	var clean []string
	for _, a := range in.Addresses {
		u, err := parseAddress(a)
		if err != nil {
			return in, hub.Invalid("addresses", "%.128q is not https://HOST:PORT", a)
		}
		if a = u.String(); !slices.Contains(clean, a) {
			clean = append(clean, a)
		}
	}
	in.Addresses = clean
	return in, nil
}

// unnamed refuses a name that a peer has.
func unnamed(tx store.PeerReader, name string) error {
	_, err := tx.PeerByName(name)
	switch {
	case err == nil:
		return taken(name)
	case hub.IsCode(err, hub.CodePeerNotFound):
		return nil
	}
	return err
}

// GrantInput changes what a home may do here; nil stays. Repos are canonical
// paths.
type GrantInput struct {
	Verbs      *[]string
	Repos      *[]string
	MaxWorkers *int
}

// Grant changes a home's grants. They are judged in the transaction of each
// effect: what was begun goes on, what comes next is under the new ones.
func (s *Service) Grant(ctx context.Context, r receipt.Request, idOrName string, in GrantInput) (PeerResult, error) {
	return s.change(ctx, r, idOrName, func(_ store.Tx, p *hub.Peer) (err error) {
		p.Grants, err = in.of(*p)
		return err
	})
}

// CheckGrant is what Grant refuses, for callers that have more to do before it.
func (s *Service) CheckGrant(ctx context.Context, idOrName string, in GrantInput) error {
	p, err := s.Find(ctx, idOrName)
	if err == nil {
		_, err = in.of(p)
	}
	return err
}

func (in GrantInput) of(p hub.Peer) (hub.Grants, error) {
	if !p.Role.CanBe(hub.RoleHome) {
		return p.Grants, hub.Invalid("peer", "grants live on the worker's side: %s runs workers for this hub, so grant on that hub", p.Name)
	}
	return checkGrants(in.over(p.Grants), true)
}

func (in GrantInput) over(g hub.Grants) hub.Grants {
	if in.Verbs != nil {
		g.Verbs = []string{}
		for _, v := range *in.Verbs {
			if !slices.Contains(g.Verbs, v) {
				g.Verbs = append(g.Verbs, v)
			}
		}
	}
	if in.Repos != nil {
		g.Repos = slices.Compact(slices.Sorted(slices.Values(*in.Repos)))
	}
	if in.MaxWorkers != nil {
		g.MaxWorkers = *in.MaxWorkers
	}
	return g
}

// Remove ends a pairing: from its commit on nothing of the peer has an effect
// here and nothing is sent to it. Its row stays as the place to which Dispatches
// and attachments are pinned; its name and its key can be paired again. Removing
// it again changes nothing.
func (s *Service) Remove(ctx context.Context, r receipt.Request, idOrName string) (PeerResult, error) {
	return receipt.Do(ctx, s.cfg.Store, store.Settle, r, func(tx store.Tx) (PeerResult, error) {
		p, err := find(tx, idOrName)
		if err != nil || p.State == hub.PeerRemoved {
			return PeerResult{Peer: p}, err
		}
		p, err = s.end(tx, p)
		return PeerResult{Peer: p}, err
	})
}

// end is the removal of a peer within a transaction.
func (s *Service) end(tx store.Tx, p hub.Peer) (hub.Peer, error) {
	p.State, p.ConfirmUntil, p.Condition = hub.PeerRemoved, 0, ""
	if err := tx.SavePeer(p); err != nil {
		return p, err
	}
	tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(p.ID)})
	return p, s.cfg.Ended(tx, p)
}

// change is one transaction on a peer that is not removed.
func (s *Service) change(ctx context.Context, r receipt.Request, idOrName string, fn func(store.Tx, *hub.Peer) error) (PeerResult, error) {
	return receipt.Do(ctx, s.cfg.Store, store.Settle, r, func(tx store.Tx) (PeerResult, error) {
		p, err := find(tx, idOrName)
		switch {
		case err != nil:
			return PeerResult{}, err
		case p.State == hub.PeerRemoved:
			return PeerResult{}, hub.Errorf(hub.CodePeerRevoked, "%s is removed", p.Name)
		}
		if err := fn(tx, &p); err != nil {
			return PeerResult{}, err
		}
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(p.ID)})
		return PeerResult{Peer: p}, tx.SavePeer(p)
	})
}

// find finds a peer by its id or, among those not removed, by its name.
func find(rx store.PeerReader, idOrName string) (hub.Peer, error) {
	if hub.ValidID(hub.PrefixPeer, idOrName) {
		return rx.Peer(hub.PeerID(idOrName))
	}
	return rx.PeerByName(idOrName)
}

// RevokedInvite is the answer to RevokeInvite.
type RevokedInvite struct {
	Invite   hub.Invite   `json:"invite"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *RevokedInvite) Mut() *hub.Mutation { return &r.Mutation }

// Subject is the invite, which belongs to no Run.
func (r *RevokedInvite) Subject() (hub.RunID, string) { return "", string(r.Invite.ID) }

// RevokeInvite takes an open invite back, also from a pairing that has not come
// to message 4. Its key is forgotten: a receipt has none.
func (s *Service) RevokeInvite(ctx context.Context, r receipt.Request, id hub.InviteID) (RevokedInvite, error) {
	return receipt.Do(ctx, s.cfg.Store, store.Settle, r, func(tx store.Tx) (RevokedInvite, error) {
		inv, err := tx.Invite(id)
		if err != nil {
			return RevokedInvite{}, err
		}
		switch st := inv.State(tx.Now()); st {
		case hub.InviteOpen:
			inv.Used = true
			err = tx.SaveInvite(inv)
		case hub.InviteRevoked:
		case hub.InviteUsed:
			e := hub.Errorf(hub.CodeInviteExpired, "%s was used", id)
			e.Hint = "there is nothing to take back; remove the peer instead"
			return RevokedInvite{}, e.WithNext("wavehub", "peer", "show", string(inv.Joined))
		default:
			e := hub.Errorf(hub.CodeInviteExpired, "%s is %s already", id, st)
			e.Hint = "nothing can be done with it any more"
			return RevokedInvite{}, e
		}
		inv.Key = nil
		return RevokedInvite{Invite: inv}, err
	})
}
