package server

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
)

// PeerLife is what becomes of pairings and invites. Peers are named by id, or by
// name if they are not removed.
type PeerLife interface {
	// Update changes name and addresses; what is empty stays.
	Update(ctx context.Context, r receipt.Request, peer, name string, addresses []string) (Joined, error)
	Grant(ctx context.Context, r receipt.Request, peer string, in GrantInput) (Joined, error)
	Remove(ctx context.Context, r receipt.Request, peer string) (Joined, error)
	Holds(context.Context, hub.PeerID) (hub.PeerHolds, error)
	RevokeInvite(context.Context, receipt.Request, hub.InviteID) (InviteRevoked, error)
}

// GrantInput changes what a peer may do here; nil stays.
type GrantInput struct {
	Verbs, Repos *[]string
	MaxWorkers   *int
}

// InviteRevoked is an invite that was taken back.
type InviteRevoked struct {
	Invite   hub.Invite
	Mutation hub.Mutation
}
