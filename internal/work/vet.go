package work

import (
	"context"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Vet finds out whether a worker could be placed so, before there is a Task for it
// and without any effect; on is as in StartInput. Of this hub it looks at what does
// not change by itself: the identity, the agent and its program, the repository. A
// peer is asked for all that it would refuse now, as long as ctx lasts.
func (s *Service) Vet(ctx context.Context, on string, spec hub.StartSpec) error {
	if err := spec.Check(on != ""); err != nil {
		return err
	}
	if on != "" {
		return s.vetThere(ctx, on, spec)
	}
	if spec.Worker != "" {
		return s.Store.View(ctx, func(rx store.Rx) error {
			_, err := dispatch.TakesWork(rx, spec.Worker)
			return err
		})
	}
	if err := s.vetAgent(spec); err != nil {
		return err
	}
	return s.vetRepo(ctx, spec)
}

func (s *Service) vetAgent(spec hub.StartSpec) error {
	if spec.Agent == "" {
		return nil // the terminal has its program
	}
	if _, err := s.Agents.Completion(spec.Agent, spec.Mode); err != nil {
		return err
	}
	if f := s.facts(spec.Agent); f.Program == "" {
		return hub.Errorf(hub.CodeAgentUnconfigured, "the agent %s cannot be used here: %s; wavehub agent list shows which can", spec.Agent, f.Missing)
	}
	return nil
}

func (s *Service) vetRepo(ctx context.Context, spec hub.StartSpec) error {
	switch {
	case spec.Worktree == hub.WorktreeCurrent && spec.CurrentDir == "":
		return hub.Invalid("worktree", "current means the caller's directory, and there is none; use path:…")
	case spec.Repo == "" && spec.New() && spec.CurrentDir == "":
		return needsRepo(spec)
	case spec.Repo == "":
		return nil
	}
	return s.Store.View(ctx, func(rx store.Rx) error {
		r, err := FindRepo(rx, spec.Repo)
		if err == nil && spec.New() && r.Kind != hub.RepoGit {
			err = plainFolder(r)
		}
		return err
	})
}

func plainFolder(r hub.Repo) error {
	return hub.Invalid("worktree", "%s is a plain folder: it has no worktrees; use path:%s", r.Name, r.Path)
}

// vetThere asks the owner about a start that has ids which name nothing.
func (s *Service) vetThere(ctx context.Context, on string, spec hub.StartSpec) error {
	var peer hub.Peer
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		peer, err = peerNamed(rx, on)
		return err
	})
	if err != nil {
		return err
	}
	body := hub.PeerStart{
		Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Spec: spec,
		StoreID: peer.StoreID, Epoch: peer.StoreEpoch, Contract: hub.ContractFederation,
	}
	body.Features = body.Needs()
	return s.validateThere(ctx, peer, body)
}
