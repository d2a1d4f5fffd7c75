package server

import (
	"context"
	"net/http"

	pairs "github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/openapi/api"
)

// RotateKey makes a new key of this hub.
func (s apiHandlers) RotateKey(w http.ResponseWriter, r *http.Request, params api.RotateKeyParams) {
	mutate(s.Server, w, r, verb[api.KeyRotate, pairs.RotateResult]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.KeyRotate) (pairs.RotateResult, error) {
			return s.cfg.Peers.Rotate(ctx, q, pairs.RotateInput{Forget: b.Forget, Force: b.Force})
		},
		show: answered(http.StatusOK, keyRotation),
	})
}

// PingPeer connects to a peer anew. That it cannot be reached is an answer.
func (s apiHandlers) PingPeer(w http.ResponseWriter, r *http.Request, idOrName string) {
	s.patiently(w, r, func(ctx context.Context) (int, any, error) {
		out, err := s.cfg.Peers.Ping(ctx, idOrName)
		return http.StatusOK, peerPing(out), err
	})
}
