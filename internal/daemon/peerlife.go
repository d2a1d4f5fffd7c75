package daemon

import (
	"context"
	"slices"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/server"
)

func joined(r peer.PeerResult) server.Joined {
	return server.Joined{Peer: r.Peer, Warnings: r.Warnings, Mutation: r.Mutation}
}

// List leaves out removed peers that nothing is left of.
func (p pairing) List(ctx context.Context) ([]hub.Peer, error) {
	all, err := p.peers.List(ctx)
	if err != nil {
		return nil, err
	}
	err = p.store.View(ctx, func(rx store.Rx) (err error) {
		all = slices.DeleteFunc(all, func(x hub.Peer) bool {
			if err != nil || x.State != hub.PeerRemoved {
				return false
			}
			var holds hub.PeerHolds
			holds, err = dispatch.Holds(rx, x.ID)
			return holds.Empty()
		})
		return err
	})
	return all, err
}

// find finds a peer by id or name; a removed one by its name too, as long as
// something is left of it and no other has the name.
func (p pairing) find(ctx context.Context, idOrName string) (hub.Peer, error) {
	found, err := p.peers.Find(ctx, idOrName)
	if !hub.IsCode(err, hub.CodePeerNotFound) {
		return found, err
	}
	shown, lerr := p.List(ctx)
	if lerr != nil {
		return found, lerr
	}
	if at := slices.IndexFunc(shown, func(x hub.Peer) bool { return x.Name == idOrName }); at >= 0 {
		return shown[at], nil
	}
	return found, err
}

// Holds is what is left between this hub and a peer.
func (p pairing) Holds(ctx context.Context, id hub.PeerID) (out hub.PeerHolds, err error) {
	err = p.store.View(ctx, func(rx store.Rx) error { out, err = dispatch.Holds(rx, id); return err })
	return out, err
}

// Update changes a peer's name or addresses.
func (p pairing) Update(ctx context.Context, r receipt.Request, idOrName, name string, addresses []string) (server.Joined, error) {
	out, err := p.peers.Update(ctx, r, idOrName, peer.UpdateInput{Name: name, Addresses: addresses})
	return joined(out), err
}

// Grant makes the roots canonical, registers the repositories among them, and
// changes the grants.
func (p pairing) Grant(ctx context.Context, r receipt.Request, idOrName string, in server.GrantInput) (server.Joined, error) {
	change := peer.GrantInput{Verbs: in.Verbs, MaxWorkers: in.MaxWorkers}
	if in.Repos != nil {
		g, err := p.granted(hub.Grants{Repos: *in.Repos}, false)
		if err != nil {
			return server.Joined{}, err
		}
		change.Repos = &g.Repos
		if err := p.register(ctx, r, g.Repos, func(ctx context.Context) error { return p.peers.CheckGrant(ctx, idOrName, change) }); err != nil {
			return server.Joined{}, err
		}
	}
	out, err := p.peers.Grant(ctx, r, idOrName, change)
	return joined(out), err
}

// Remove ends a pairing, and says what is left of it.
func (p pairing) Remove(ctx context.Context, r receipt.Request, idOrName string) (server.Joined, error) {
	out, err := p.peers.Remove(ctx, r, idOrName)
	if err != nil {
		return server.Joined{}, err
	}
	holds, err := p.Holds(ctx, out.Peer.ID)
	if holds.Dispatches > 0 {
		out.Warnings = append(out.Warnings, "Dispatches of this hub are left there: they can be shown and abandoned, nothing else; see peer show and worker list")
	}
	if holds.Workers > 0 {
		out.Warnings = append(out.Warnings, "workers of that hub go on here, and nothing that they report is taken; see peer show, and end them with terminal close")
	}
	return joined(out), err
}

// RevokeInvite takes an open invite back.
func (p pairing) RevokeInvite(ctx context.Context, r receipt.Request, id hub.InviteID) (server.InviteRevoked, error) {
	out, err := p.peers.RevokeInvite(ctx, r, id)
	return server.InviteRevoked{Invite: out.Invite, Mutation: out.Mutation}, err
}
