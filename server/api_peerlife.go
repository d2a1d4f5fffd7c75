package server

import (
	"context"
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// UpdatePeer gives a peer another name or other addresses.
func (s apiHandlers) UpdatePeer(w http.ResponseWriter, r *http.Request, peer string, params api.UpdatePeerParams) {
	mutate(s.Server, w, r, verb[api.PeerUpdate, Joined]{
		key: params.IdempotencyKey, path: peer,
		do: func(ctx context.Context, q receipt.Request, b api.PeerUpdate) (Joined, error) {
			return s.cfg.Peers.Update(ctx, q, peer, b.Name, b.Addresses)
		},
		show: answered(http.StatusOK, peerResult),
	})
}

// GrantPeer changes what a peer may do here.
func (s apiHandlers) GrantPeer(w http.ResponseWriter, r *http.Request, peer string, params api.GrantPeerParams) {
	mutate(s.Server, w, r, verb[api.PeerGrant, Joined]{
		key: params.IdempotencyKey, path: peer,
		do: func(ctx context.Context, q receipt.Request, b api.PeerGrant) (Joined, error) {
			return s.cfg.Peers.Grant(ctx, q, peer, grantInput(b))
		},
		show: answered(http.StatusOK, peerResult),
	})
}

func grantInput(b api.PeerGrant) GrantInput {
	in := GrantInput{Repos: b.AllowRepos, MaxWorkers: b.MaxWorkers}
	if b.Verbs != nil {
		verbs := each(*b.Verbs, func(v api.PeerGrantVerbs) string { return string(v) })
		in.Verbs = &verbs
	}
	return in
}

// RemovePeer ends a pairing.
func (s apiHandlers) RemovePeer(w http.ResponseWriter, r *http.Request, peer string, params api.RemovePeerParams) {
	mutate(s.Server, w, r, verb[api.Empty, Joined]{
		key: params.IdempotencyKey, path: peer,
		do: func(ctx context.Context, q receipt.Request, _ api.Empty) (Joined, error) {
			return s.cfg.Peers.Remove(ctx, q, peer)
		},
		show: answered(http.StatusOK, peerResult),
	})
}

// ListInvites shows the invites, the newest first, without their codes.
func (s apiHandlers) ListInvites(w http.ResponseWriter, r *http.Request, params api.ListInvitesParams) {
	page(s.Server, w, r, list{"invites"}, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		is, next, err := rx.InviteList(p)
		shown := each(is, func(i hub.Invite) api.Invite { return inviteOf(i, rx.Now()) })
		return func(c *string) any { return api.InvitePage{Invites: shown, NextCursor: c} }, next, err
	})
}

// RevokeInvite takes an open invite back.
func (s apiHandlers) RevokeInvite(w http.ResponseWriter, r *http.Request, invite string, params api.RevokeInviteParams) {
	mutate(s.Server, w, r, verb[api.Empty, InviteRevoked]{
		key: params.IdempotencyKey, path: invite,
		do: func(ctx context.Context, q receipt.Request, _ api.Empty) (InviteRevoked, error) {
			return s.cfg.Peers.RevokeInvite(ctx, q, hub.InviteID(invite))
		},
		show: answered(http.StatusOK, inviteRevoked),
	})
}

func inviteRevoked(o InviteRevoked) api.InviteRevoked {
	return api.InviteRevoked{Invite: inviteOf(o.Invite, o.Invite.ExpiresAt), Mutation: mutationOf(o.Mutation)}
}

func inviteOf(i hub.Invite, now hub.Micros) api.Invite {
	return api.Invite{
		InviteId: string(i.ID), State: api.InviteState(i.State(now)), Role: api.InviteRole(i.Role), Slot: i.Slot,
		ExpiresAt: at(i.ExpiresAt), WrongProofs: i.Wrong, Grants: grantsOf(i.Grants), PeerId: null(string(i.Joined)),
	}
}

func holdsOf(h hub.PeerHolds) api.PeerHolds {
	return api.PeerHolds{
		Dispatches: h.Dispatches, Workers: h.Workers,
		Stranded: each(h.Stranded, func(x hub.Stranded) api.StrandedWorker {
			return api.StrandedWorker{DispatchId: string(x.Dispatch), TaskId: string(x.Task), Dir: x.Dir, TerminalId: null(string(x.Terminal))}
		}),
	}
}
