package work

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// WorktreeInput is the argument of CreateWorktree. Parent, a selector, makes it a
// child; RepoHooks lets the repository's own hooks run at the checkout.
type WorktreeInput struct {
	Repo        string `json:"repo"`
	Name        string `json:"name"`
	Base        string `json:"base"`
	Parent      string `json:"parent"`
	CurrentDir  string `json:"current_dir"`
	Setup       string `json:"setup"`
	DisplayName string `json:"display_name"`
	Comment     string `json:"comment"`
	RepoHooks   bool   `json:"repo_hooks"`
	TimeoutMS   int64  `json:"timeout_ms"`
}

// spec is the input as the placement of a start.
func (in WorktreeInput) spec() hub.StartSpec {
	out := hub.StartSpec{
		Worktree: hub.WorktreeNewTopLevel, CurrentDir: in.CurrentDir, Repo: in.Repo, Name: in.Name, Base: in.Base, Parent: in.Parent,
		Setup: in.Setup, DisplayName: in.DisplayName, Comment: in.Comment, TimeoutMS: in.TimeoutMS,
	}
	if in.Parent != "" {
		out.Worktree = hub.WorktreeNewChild
	}
	return out
}

// CreateWorktree makes a worktree and starts its setup. Each stage is committed
// before the effect that follows it; a repeated request makes nothing: it finds
// out whether the worktree is there. A setup that is to be waited for holds the
// answer, within the call's time.
func (s *Service) CreateWorktree(ctx context.Context, r receipt.Request, in WorktreeInput) (hub.WorktreeReceipt, error) {
	if in.Name == "" {
		return hub.WorktreeReceipt{}, hub.Invalid("name", "name the worktree")
	}
	p := place{spec: in.spec(), hooks: in.RepoHooks}
	return receipt.Long(ctx, s.Gate, r, receipt.Operation[hub.WorktreeReceipt]{
		Class:   store.New,
		Prepare: func(ctx context.Context) error { return s.siteFor(ctx, r.Principal, in, &p) },
		Begin:   func(tx store.Tx) (hub.WorktreeReceipt, error) { return s.beginWorktree(tx, r, p) },
		Perform: func(ctx context.Context, begun hub.WorktreeReceipt) (hub.WorktreeReceipt, error) {
			return s.performWorktree(ctx, begun, p)
		},
		Observe: s.observeWorktree,
		Unknown: func(r hub.WorktreeReceipt) bool { return r.State == hub.StartOutcomeUnknown },
		Open: func(begun hub.WorktreeReceipt) hub.WorktreeReceipt {
			begun.State, begun.LastError = hub.StartOutcomeUnknown, "the creation goes on and its end was not waited for"
			return begun
		},
	})
}

func (s *Service) beginWorktree(tx store.Tx, r receipt.Request, p place) (hub.WorktreeReceipt, error) {
	if err := admitsTree(tx, r.Principal, p); err != nil {
		return hub.WorktreeReceipt{}, err
	}
	p.worktree.Request, p.worktree.CreatedBy = r.Key, r.Principal.Name()
	if err := p.reserve(tx, "", ""); err != nil {
		return hub.WorktreeReceipt{}, err
	}
	w, err := tx.Worktree(p.worktree.ID)
	return hub.WorktreeReceipt{
		Worktree: w, State: hub.StartStarting, Stage: hub.StageWorktreeCreating, TimeoutMS: startTimeout(p.spec).Milliseconds(),
		Effects: []hub.Resource{}, Residuals: s.attempted(p.newWorktree()), Defaults: append([]hub.Default{}, p.defaults...),
	}, err
}

func (s *Service) performWorktree(ctx context.Context, begun hub.WorktreeReceipt, p place) (hub.WorktreeReceipt, error) {
	release, err := s.trees.take(ctx, begun.Worktree.ID)
	if err != nil {
		return begun, err
	}
	defer release()
	budget, cancel := context.WithTimeout(ctx, time.Duration(begun.TimeoutMS)*time.Millisecond)
	defer cancel()
	made, err := s.Git.Create(budget, p.newWorktree())
	if err != nil {
		return s.worktreeFailed(ctx, begun, p.newWorktree(), err)
	}
	err = s.commitMade(context.WithoutCancel(ctx), made, func(tx store.Tx, w hub.Worktree) error { return s.noteStage(tx, w, begun) })
	if err != nil {
		return begun, err
	}
	if err := s.setUpAlone(budget, begun, p); err != nil {
		return begun, err
	}
	return s.worktreeNow(context.WithoutCancel(ctx), begun, nil)
}

// setUpAlone runs the setup of a worktree without a worker.
func (s *Service) setUpAlone(ctx context.Context, begun hub.WorktreeReceipt, p place) error {
	if p.setup.Effective != hub.SetupRun {
		return nil
	}
	id, terminal := begun.Worktree.ID, hub.NewTerminalID()
	var w hub.Worktree
	err := s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		if w, err = beginSetup(tx, id, terminal); err != nil {
			return err
		}
		return s.noteStage(tx, w, begun)
	})
	if err != nil {
		return err
	}
	if err := s.launchSetup(ctx, id, w.Path, p.hook.Run); err != nil || !p.setup.Gates() {
		return err
	}
	ended, cancel := s.Bus.Subscribe(string(hub.TopicWorktree), string(id))
	defer cancel()
	for {
		if w, err = s.worktree(context.WithoutCancel(ctx), id); err != nil || !w.Setup.Open() {
			return err
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return nil // the answer says that it runs
		}
	}
}

// worktreeFailed ends a creation that did not succeed: what it left is removed,
// or what is complete all the same is kept.
func (s *Service) worktreeFailed(ctx context.Context, begun hub.WorktreeReceipt, n NewWorktree, cause error) (hub.WorktreeReceipt, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), salvageTime)
	defer cancel()
	if _, err := s.salvage(ctx, begun.Worktree, n); err != nil {
		cause = errors.Join(cause, err)
	}
	return s.worktreeNow(ctx, begun, cause)
}

// observeWorktree answers a repeated creation with what there is.
func (s *Service) observeWorktree(ctx context.Context, begun hub.WorktreeReceipt) (hub.WorktreeReceipt, error) {
	var cause error
	w, err := s.worktree(ctx, begun.Worktree.ID)
	if err == nil && w.State == hub.WorktreeCreating {
		_, cause = s.settleWorktree(ctx, w)
	}
	return s.worktreeNow(ctx, begun, cause)
}

// worktreeNow completes the answer to a creation with what is on record.
func (s *Service) worktreeNow(ctx context.Context, begun hub.WorktreeReceipt, cause error) (out hub.WorktreeReceipt, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) (err error) {
		out, err = s.worktreeReceipt(rx, begun, cause)
		return err
	})
	return out, err
}

// worktreeReceipt is the answer to a creation as the worktree's row says now.
// cause is why it did not go on, if that is known.
func (s *Service) worktreeReceipt(rx store.RepoReader, r hub.WorktreeReceipt, cause error) (hub.WorktreeReceipt, error) {
	w, err := rx.Worktree(r.Worktree.ID)
	if hub.IsCode(err, hub.CodeWorktreeNotFoundOnServer) {
		r.Absent(cause)
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if w.State == hub.WorktreeCreating {
		r.Worktree = w
		r.Open(cause)
		return r, nil
	}
	r.Present(w, append(s.madeResources(w), w.Setup.Report.Resources(s.Name)...))
	return r, nil
}

// noteStage brings the record of the request that makes the worktree up to date.
func (s *Service) noteStage(tx store.Tx, w hub.Worktree, begun hub.WorktreeReceipt) error {
	if w.Request == "" {
		return nil
	}
	out, err := s.worktreeReceipt(tx, begun, nil)
	if err != nil {
		return err
	}
	out.State, out.Mutation = hub.StartStarting, hub.Mutation{RequestID: w.Request}
	return receipt.Close(tx, hub.SpaceOf(w.CreatedBy), w.Request, &out, false)
}

// madeResources are what the creation of a worktree makes.
func (s *Service) madeResources(w hub.Worktree) []hub.Resource {
	return []hub.Resource{s.resource("worktree", "created", "", string(w.ID)), s.resource("branch", "created", "", w.Branch)}
}

// keepMade turns the row of a worktree in the making into that of the one that
// was made.
func keepMade(tx store.Tx, made hub.Worktree) (hub.Worktree, error) {
	w, err := tx.Worktree(made.ID)
	if err != nil {
		return w, err
	}
	w.State, w.Path, w.Branch, w.Base = hub.WorktreeReady, made.Path, made.Branch, made.Base
	return w, tx.SaveWorktree(w)
}

// FindWorktree reads one worktree by its id, with or without id: before it, or by
// its exact name.
func FindWorktree(rx store.RepoReader, selector string) (hub.Worktree, error) {
	if hub.ValidID(hub.PrefixWorktree, selector) {
		return rx.Worktree(hub.WorktreeID(selector))
	}
	return lookupWorktree(rx, selector)
}

// WorktreeAt is the worktree that a folder is, or lies in. The folder has to
// exist, unless it is named exactly as it is on record.
func (s *Service) WorktreeAt(ctx context.Context, who hub.Principal, path string) (w hub.Worktree, err error) {
	if !filepath.IsAbs(path) {
		return w, hub.Invalid("path", "%q must be an absolute path", path)
	}
	real, canonErr := s.Git.Canonical(path)
	if canonErr != nil {
		real = filepath.Clean(path)
	}
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if w, err = worktreeAround(rx, real); err != nil {
			return err
		}
		return inSight(rx, who, w, noneAround(path))
	})
	return w, err
}
