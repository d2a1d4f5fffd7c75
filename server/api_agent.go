package server

import (
	"context"
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

// ListAgents shows the configured launchers. There are few: the list is whole.
func (s apiHandlers) ListAgents(w http.ResponseWriter, r *http.Request) {
	as, err := s.cfg.Work.ListAgents(r.Context())
	show := agentOf
	if callOf(r).principal.Kind == hub.PeerKey {
		show = agentForPeer
	}
	s.reply(w, r, http.StatusOK, api.AgentPage{Agents: each(as, show)}, err)
}

// TestAgent runs an agent's version command and allows its starts again.
func (s apiHandlers) TestAgent(w http.ResponseWriter, r *http.Request, name string, params api.TestAgentParams) {
	mutate(s.Server, w, r, verb[api.Empty, work.AgentTested]{
		key: params.IdempotencyKey, path: name,
		do: func(ctx context.Context, q receipt.Request, _ api.Empty) (work.AgentTested, error) {
			return s.cfg.Work.TestAgent(ctx, q, name)
		},
		show: answered(http.StatusOK, agentTested),
	})
}
