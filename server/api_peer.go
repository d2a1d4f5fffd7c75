package server

import (
	"context"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/openapi/api"
)

// CreateInvite offers to pair.
func (s apiHandlers) CreateInvite(w http.ResponseWriter, r *http.Request, params api.CreateInviteParams) {
	mutate(s.Server, w, r, verb[api.InviteCreate, Invited]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.InviteCreate) (Invited, error) {
			return s.cfg.Peers.Invite(ctx, q, InviteInput{
				As: hub.Role(b.As), Mutual: b.Mutual, Grants: hub.Grants{Repos: b.AllowRepos, MaxWorkers: b.MaxWorkers},
				TTL: time.Duration(b.TtlMs) * time.Millisecond,
			})
		},
		show: answered(http.StatusCreated, inviteResult),
	})
}

// AddPeer pairs with the hub that gave the code.
func (s apiHandlers) AddPeer(w http.ResponseWriter, r *http.Request, params api.AddPeerParams) {
	mutate(s.Server, w, r, verb[api.PeerAdd, Joined]{
		key: params.IdempotencyKey, secret: "code",
		do: func(ctx context.Context, q receipt.Request, b api.PeerAdd) (Joined, error) {
			return s.cfg.Peers.Join(ctx, q, JoinInput{
				Name: b.Name, URL: b.Url, Code: b.Code, Serve: b.Serve, Mutual: b.Mutual,
				Grants: hub.Grants{Repos: b.AllowRepos, MaxWorkers: b.MaxWorkers},
			})
		},
		show:  func(o Joined) (int, any) { return joinStatus(o), peerResult(o) },
		waits: func(api.PeerAdd) bool { return true },
	})
}

func joinStatus(o Joined) int {
	if o.Peer.State == hub.PeerPending {
		return http.StatusAccepted
	}
	return http.StatusCreated
}

// ListPeers shows all peers.
func (s apiHandlers) ListPeers(w http.ResponseWriter, r *http.Request) {
	peers, err := s.cfg.Peers.List(r.Context())
	s.reply(w, r, http.StatusOK, api.PeerPage{Peers: each(peers, peerOf)}, err)
}

// GetPeer shows one peer and its link.
func (s apiHandlers) GetPeer(w http.ResponseWriter, r *http.Request, idOrName string) {
	p, link, err := s.cfg.Peers.Get(r.Context(), idOrName)
	var holds hub.PeerHolds
	if err == nil {
		holds, err = s.cfg.Peers.Holds(r.Context(), p.ID)
	}
	s.reply(w, r, http.StatusOK, peerDetail(p, link, holds), err)
}
