package client

import (
	"context"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// pairingWait is how long pairing may take beyond the usual patience: it talks
// to another hub, and its proof is slow on purpose.
const pairingWait = time.Minute

// AddRepo registers a repository or folder of the hub's host.
func (c *Client) AddRepo(ctx context.Context, in api.RepoAdd, opts ...Option) (*api.RepoResult, error) {
	return mutate[api.RepoResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.AddRepo(ctx, &api.AddRepoParams{IdempotencyKey: key}, in)
	})
}

// Repos lists registered repositories.
func (c *Client) Repos(ctx context.Context, page Page, opts ...Option) (*api.RepoPage, error) {
	return read[api.RepoPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListRepos(ctx, &api.ListReposParams{Cursor: page.Cursor, Limit: page.Limit})
	})
}

// Invite offers to pair. The code is in the answer, and in a replay's as long
// as the invite is open.
func (c *Client) Invite(ctx context.Context, in api.InviteCreate, opts ...Option) (*api.InviteResult, error) {
	return mutate[api.InviteResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CreateInvite(ctx, &api.CreateInviteParams{IdempotencyKey: key}, in)
	})
}

// AddPeer pairs with the hub that gave the code.
func (c *Client) AddPeer(ctx context.Context, in api.PeerAdd, opts ...Option) (*api.PeerResult, error) {
	return mutate[api.PeerResult](ctx, c, pairingWait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.AddPeer(ctx, &api.AddPeerParams{IdempotencyKey: key}, in)
	})
}

// Peers lists all peers.
func (c *Client) Peers(ctx context.Context, opts ...Option) (*api.PeerPage, error) {
	return read[api.PeerPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListPeers(ctx)
	})
}

// Peer returns one peer, by id or name, and its link.
func (c *Client) Peer(ctx context.Context, peer string, opts ...Option) (*api.PeerDetail, error) {
	return read[api.PeerDetail](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetPeer(ctx, peer)
	})
}

// pingWait is how long a ping may take beyond the usual patience.
const pingWait = 30 * time.Second

// Ping connects the hub to a peer anew and returns how far that came; that the
// peer cannot be reached is no error.
func (c *Client) Ping(ctx context.Context, peer string, opts ...Option) (*api.PeerPing, error) {
	return read[api.PeerPing](ctx, c, pingWait, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.PingPeer(ctx, peer)
	})
}

// RotateKey makes a new key of the hub. A Client goes on with the key that it
// has pinned until the hub gives that one up; the endpoint file has the new one.
func (c *Client) RotateKey(ctx context.Context, in api.KeyRotate, opts ...Option) (*api.KeyRotation, error) {
	return mutate[api.KeyRotation](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.RotateKey(ctx, &api.RotateKeyParams{IdempotencyKey: key}, in)
	})
}

// SetPeerReverse says whether the hub keeps streams parked at a home, over
// which the home reaches it.
func (c *Client) SetPeerReverse(ctx context.Context, peer string, on bool, opts ...Option) (*api.PeerResult, error) {
	return mutate[api.PeerResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.SetPeerReverse(ctx, peer, &api.SetPeerReverseParams{IdempotencyKey: key}, api.PeerReverse{Reverse: on})
	})
}
