package client

import (
	"context"
	"net/http"

	"github.com/wavehub/wavehub/openapi/api"
)

// UpdatePeer gives a peer, by id or name, another name or other addresses.
func (c *Client) UpdatePeer(ctx context.Context, peer string, in api.PeerUpdate, opts ...Option) (*api.PeerResult, error) {
	return mutate[api.PeerResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.UpdatePeer(ctx, peer, &api.UpdatePeerParams{IdempotencyKey: key}, in)
	})
}

// GrantPeer changes what a peer may do on this hub; nil fields stay.
func (c *Client) GrantPeer(ctx context.Context, peer string, in api.PeerGrant, opts ...Option) (*api.PeerResult, error) {
	return mutate[api.PeerResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.GrantPeer(ctx, peer, &api.GrantPeerParams{IdempotencyKey: key}, in)
	})
}

// RemovePeer ends a pairing at once.
func (c *Client) RemovePeer(ctx context.Context, peer string, opts ...Option) (*api.PeerResult, error) {
	return mutate[api.PeerResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.RemovePeer(ctx, peer, &api.RemovePeerParams{IdempotencyKey: key}, api.Empty{})
	})
}

// Invites lists invites, the newest first, without their codes.
func (c *Client) Invites(ctx context.Context, page Page, opts ...Option) (*api.InvitePage, error) {
	return read[api.InvitePage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListInvites(ctx, &api.ListInvitesParams{Cursor: page.Cursor, Limit: page.Limit})
	})
}

// RevokeInvite takes an open invite back.
func (c *Client) RevokeInvite(ctx context.Context, invite string, opts ...Option) (*api.InviteRevoked, error) {
	return mutate[api.InviteRevoked](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.RevokeInvite(ctx, invite, &api.RevokeInviteParams{IdempotencyKey: key}, api.Empty{})
	})
}
