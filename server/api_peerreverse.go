package server

import (
	"context"
	"net/http"

	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/openapi/api"
)

// SetPeerReverse says whether this hub keeps streams parked at a home.
func (s apiHandlers) SetPeerReverse(w http.ResponseWriter, r *http.Request, idOrName string, params api.SetPeerReverseParams) {
	mutate(s.Server, w, r, verb[api.PeerReverse, Joined]{
		key: params.IdempotencyKey, path: idOrName,
		do: func(ctx context.Context, q receipt.Request, b api.PeerReverse) (Joined, error) {
			return s.cfg.Peers.SetReverse(ctx, q, idOrName, b.Reverse)
		},
		show: answered(http.StatusOK, peerResult),
	})
}
