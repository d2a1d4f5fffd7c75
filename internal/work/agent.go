package work

import (
	"context"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// AgentEvent takes what a hook of an agent's own CLI said about a Dispatch. It is
// state like a heartbeat: the latest word counts, and it settles nothing. Only
// the Dispatch's own capability may say it, and only while it has not ended.
func (s *Service) AgentEvent(ctx context.Context, p hub.Principal, id hub.DispatchID, name string, raw []byte) (hub.AgentEventKind, error) {
	var a hub.Attachment
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		a, err = dispatch.Own(rx, p, id)
		return err
	})
	if err != nil {
		return "", err
	}
	e, provider, err := s.Agents.Event(a.Spec.Agent, name, raw)
	if err != nil {
		return "", err
	}
	waits := hub.WaitingFor(a.Agent.Waiting, e.Kind)
	s.noteBeat(a, beat{Heartbeat{WaitingFor: waits}, hub.MicrosOf(time.Now())})
	err = s.Store.Update(ctx, store.Settle, func(tx store.Tx) error { return dispatch.Heard(tx, p, id, provider, e) })
	if err == nil {
		s.meter(a, e.Kind)
	}
	return e.Kind, err
}

// AgentShown is a configured agent and how its provider treats it.
type AgentShown struct {
	hub.AgentFacts
	Pool    hub.AgentPool // zero while its starts are allowed
	Version string        // "" where it is not known
}

// versionsAtOnce bounds how many agents are asked at once.
const versionsAtOnce = 4

// ListAgents are the configured agents, by name, each with its version if its
// program tells one.
func (s *Service) ListAgents(ctx context.Context) ([]AgentShown, error) {
	pools := map[string]hub.AgentPool{}
	err := s.Store.View(ctx, func(rx store.Rx) error {
		ps, err := rx.AgentPools()
		for _, p := range ps {
			if p.Until > rx.Now() {
				pools[p.Agent] = p
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	facts := s.Agents.List()
	out := make([]AgentShown, len(facts))
	var asking sync.WaitGroup
	turns := make(chan struct{}, versionsAtOnce)
	for i, f := range facts {
		out[i] = AgentShown{AgentFacts: f, Pool: pools[f.Name]}
		if f.Program != "" {
			asking.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				out[i].Version = s.versionOf(ctx, f.Name)
			})
		}
	}
	asking.Wait()
	return out, nil
}

// versionOf is for people to look at: not to know it is no failure of a list.
func (s *Service) versionOf(ctx context.Context, agent string) string {
	v, err := s.Agents.KnownVersion(ctx, agent)
	if err != nil {
		s.Log.Debug("an agent's version is not known", "agent", agent, "error", err)
	}
	return v
}

// AgentTested is the answer to a test.
type AgentTested struct {
	Agent    AgentShown
	Mutation hub.Mutation
}

// Mut returns the mutation, for the receipt gate.
func (t *AgentTested) Mut() *hub.Mutation { return &t.Mutation }

// Subject is the agent, which belongs to no Run.
func (t *AgentTested) Subject() (hub.RunID, string) { return "", t.Agent.Name }

// TestAgent runs an agent's version command and allows its starts again.
func (s *Service) TestAgent(ctx context.Context, r receipt.Request, name string) (AgentTested, error) {
	var version string
	err := receipt.Prepare(ctx, s.Store, r, func(ctx context.Context) (err error) {
		if !s.knowsAgent(name) {
			return hub.Errorf(hub.CodeAgentNotFound, "there is no agent %q here", name).WithNext("wavehub", "agent", "list")
		}
		version, err = s.Agents.Version(ctx, name)
		return err
	})
	if err != nil {
		return AgentTested{}, err
	}
	return receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (AgentTested, error) {
		return AgentTested{Agent: AgentShown{AgentFacts: s.facts(name), Version: version}}, tx.DropAgentPool(name)
	})
}

func (s *Service) knowsAgent(name string) bool { return s.facts(name).Name != "" }

func (s *Service) facts(name string) hub.AgentFacts {
	for _, f := range s.Agents.List() {
		if f.Name == name {
			return f
		}
	}
	return hub.AgentFacts{}
}
