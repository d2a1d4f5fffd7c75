package work

import (
	"context"
	"errors"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// salvageTime bounds finding out what became of one creation; it may have to wait
// for a git that outlived its hub.
const salvageTime = 10 * time.Second

// salvage finds out what became of a creation that was cut off, and records it:
// the worktree, or that there is none. true: there is one.
func (s *Service) salvage(ctx context.Context, w hub.Worktree, n NewWorktree) (bool, error) {
	made, ok, err := s.Git.Salvage(ctx, n)
	if err != nil {
		return false, err
	}
	if ok {
		return true, s.commitMade(ctx, made, nothingElse)
	}
	return false, s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		now, err := tx.Worktree(w.ID)
		if hub.IsCode(err, hub.CodeWorktreeNotFoundOnServer) || err == nil && now.State != hub.WorktreeCreating {
			return nil
		}
		if err != nil {
			return err
		}
		return tx.DeleteWorktree(w.ID)
	})
}

// commitMade records a worktree that is there, and in the same transaction what
// else follows from that.
func (s *Service) commitMade(ctx context.Context, made hub.Worktree, also func(store.Tx, hub.Worktree) error) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		w, err := keepMade(tx, made)
		if err != nil {
			return err
		}
		return also(tx, w)
	})
}

func nothingElse(store.Tx, hub.Worktree) error { return nil }

// settleWorktree decides a creation that nobody is at any more. true: the
// worktree is there. Its setup was never launched.
func (s *Service) settleWorktree(ctx context.Context, w hub.Worktree) (bool, error) {
	release, err := s.trees.take(ctx, w.ID)
	if err != nil {
		return false, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, salvageTime)
	defer cancel()
	var repo hub.Repo
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if repo, err = rx.Repo(w.Repo); err != nil {
			return err
		}
		w, err = rx.Worktree(w.ID)
		return err
	})
	if err != nil || w.State != hub.WorktreeCreating {
		return err == nil, err
	}
	ok, err := s.salvage(ctx, w, NewWorktree{Repo: repo, ID: w.ID, Name: w.Name, Base: w.Base})
	if err != nil || !ok || !w.Setup.Open() {
		return ok, err
	}
	return ok, s.recoverSetup(ctx, w)
}

// recoverWorktrees decides, before the hub serves, what a former process had
// under way with worktrees: creations, removals and setups. One that cannot be
// decided is looked at again later.
func (s *Service) recoverWorktrees(ctx context.Context) error {
	var open []hub.Worktree
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		open, err = rx.OpenWorktrees()
		return err
	})
	if err != nil {
		return err
	}
	for _, w := range open {
		if err := s.recoverWorktree(ctx, w); err != nil {
			s.Log.Error("recovering a worktree", "worktree_id", w.ID, "error", err)
			s.pursueWorktree(w.ID)
		}
	}
	return ctx.Err()
}

func (s *Service) recoverWorktree(ctx context.Context, w hub.Worktree) error {
	switch w.State {
	case hub.WorktreeCreating:
		if _, err := s.settleWorktree(ctx, w); err != nil {
			return err
		}
		return s.closeCreation(ctx, w)
	case hub.WorktreeRemoving:
		return s.setTreeState(ctx, w.ID, hub.WorktreeReady)
	case hub.WorktreeReady, hub.WorktreeDeleting:
	}
	if !w.Setup.Open() {
		return nil
	}
	if w.Setup.Process == nil { // before the hub serves, whether it was launched
		if err := s.recoverSetup(ctx, w); err != nil {
			return err
		}
	}
	s.followSetup(w.ID)
	return nil
}

// pursueWorktree looks again, ever less often, at a creation that could not be
// decided.
func (s *Service) pursueWorktree(id hub.WorktreeID) {
	s.Spawn(func(ctx context.Context) {
		var pause patience
		for pause.wait(ctx) {
			w, err := s.worktree(ctx, id)
			if err == nil {
				err = s.recoverWorktree(ctx, w)
			}
			if err == nil || hub.IsCode(err, hub.CodeWorktreeNotFoundOnServer) {
				return
			}
			if ctx.Err() == nil {
				s.Log.Warn("finding out about a worktree", "worktree_id", id, "error", err)
			}
		}
	})
}

// closeCreation brings the record of the request that made a worktree up to date,
// also if nobody repeats it.
func (s *Service) closeCreation(ctx context.Context, w hub.Worktree) error {
	if w.Request == "" {
		return nil
	}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		begun := hub.WorktreeReceipt{Worktree: w, TimeoutMS: hub.DefaultStartTimeout.Milliseconds(), Defaults: []hub.Default{}}
		out, err := s.worktreeReceipt(tx, begun, nil)
		if err != nil {
			return err
		}
		out.Mutation = hub.Mutation{RequestID: w.Request}
		return receipt.Close(tx, hub.SpaceOf(w.CreatedBy), w.Request, &out, out.State != hub.StartOutcomeUnknown)
	})
}

// afterFailure finds out what a start's creation left, and has its receipt list
// that.
func (s *Service) afterFailure(ctx context.Context, a *hub.Attachment, p place) {
	if !p.spec.New() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), salvageTime)
	defer cancel()
	_, err := s.salvage(ctx, hub.Worktree{ID: p.worktree.ID}, p.newWorktree())
	if err == nil {
		err = errors.Join(s.withoutSetup(ctx, a), s.learnWorktree(ctx, a))
	}
	if err != nil {
		s.Log.Error("finding out what a creation left", "dispatch_id", a.Dispatch, "error", err)
		s.pursueWorktree(p.worktree.ID)
	}
}

// learnWorktree has the receipt of a start that was cut off in the making of its
// worktree list what there is of it now.
func (s *Service) learnWorktree(ctx context.Context, a *hub.Attachment) error {
	if a.Receipt.Stage != hub.StageWorktreeCreating {
		return nil
	}
	w, err := s.worktree(ctx, a.Worktree)
	switch {
	case hub.IsCode(err, hub.CodeWorktreeNotFoundOnServer):
		a.Receipt.Residuals = []hub.Resource{}
	case err != nil:
		return err
	case w.State == hub.WorktreeReady:
		a.Receipt.Effects = s.madeResources(w)
		a.Receipt.Residuals = a.Receipt.Effects
		a.Receipt.Setup = w.Setup.Report
	case w.State == hub.WorktreeCreating, w.State == hub.WorktreeRemoving, w.State == hub.WorktreeDeleting:
	}
	return nil
}

// setTreeState moves a worktree to another state.
func (s *Service) setTreeState(ctx context.Context, id hub.WorktreeID, state hub.WorktreeState) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		w, err := tx.Worktree(id)
		if err != nil {
			return err
		}
		w.State = state
		return tx.SaveWorktree(w)
	})
}
