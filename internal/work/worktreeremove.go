package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// RemoveInput is the argument of RemoveWorktree.
type RemoveInput struct {
	Worktree string // a selector of FindWorktree
	Force    bool   // save what would be lost, then remove
}

// RemoveWorktree deletes a worktree that nothing uses. It refuses with
// worktree_not_empty and a list what would be lost; with Force that is saved under
// refs first. A deletion that was cut off goes on when it is asked for again.
func (s *Service) RemoveWorktree(ctx context.Context, r receipt.Request, in RemoveInput) (hub.WorktreeRemoval, error) {
	perform := func(ctx context.Context, begun hub.WorktreeRemoval) (hub.WorktreeRemoval, error) {
		return s.performRemoval(ctx, begun, in.Force)
	}
	return receipt.Long(ctx, s.Gate, r, receipt.Operation[hub.WorktreeRemoval]{
		Class:   store.Settle,
		Begin:   func(tx store.Tx) (hub.WorktreeRemoval, error) { return s.beginRemoval(tx, in) },
		Perform: perform, Observe: perform, Definite: true,
		Unknown: func(hub.WorktreeRemoval) bool { return false },
	})
}

// beginRemoval takes the worktree out of use, so that no start comes between the
// look at it and its end. One whose removal was cut off is taken up again.
func (s *Service) beginRemoval(tx store.Tx, in RemoveInput) (hub.WorktreeRemoval, error) {
	w, err := FindWorktree(tx, in.Worktree)
	if err != nil {
		return hub.WorktreeRemoval{}, err
	}
	if err := s.unused(tx, w); err != nil {
		return hub.WorktreeRemoval{}, err
	}
	if w.State != hub.WorktreeDeleting {
		w.State = hub.WorktreeRemoving
		err = tx.SaveWorktree(w)
	}
	return hub.WorktreeRemoval{Worktree: w.ID, Name: w.Name, Path: w.Path, Branch: w.Branch, Saved: []hub.SavedRef{}, NotSaved: []hub.Loss{}}, err
}

// unused refuses a worktree that somebody is at: a worker, its setup, or the
// request that makes it.
func (s *Service) unused(tx useTx, w hub.Worktree) error {
	switch {
	case w.State == hub.WorktreeCreating && tx.Now().Sub(w.CreatedAt) < longestCreation:
		return inUse(w, "it is being made", "wait until that is done: see worktree list")
	case w.Setup.Open():
		return inUse(w, "its setup has not ended", "wait for the end of the setup: see worktree show")
	}
	users, err := usersOf(tx, Sight{}, w)
	if err == nil && len(users) > 0 {
		return inUse(w, string(users[0])+" works in it", "stop that worker first, or wait for its end")
	}
	return err
}

// longestCreation is beyond the time of any creation: one that is undecided by
// then can be removed.
const longestCreation = 20 * time.Minute

type useTx interface {
	store.AttachmentReader
	Now() hub.Micros
}

// usersOf are the live workers in a worktree, as far as they are in sight.
func usersOf(rx store.AttachmentReader, sight Sight, w hub.Worktree) (users []hub.DispatchID, err error) {
	open, err := rx.OpenAttachments()
	for _, a := range open {
		if sight.mine(a.Home) && !a.ExitDone && (a.Worktree == w.ID || within(w.Path, a.Dir)) {
			users = append(users, a.Dispatch)
		}
	}
	return users, err
}

func inUse(w hub.Worktree, why, hint string) error {
	e := hub.Errorf(hub.CodeTerminalBusy, "%s (%s) cannot be removed: %s", w.Name, w.ID, why)
	e.Hint = hint
	return e
}

func (s *Service) performRemoval(ctx context.Context, begun hub.WorktreeRemoval, force bool) (hub.WorktreeRemoval, error) {
	release, err := s.trees.take(ctx, begun.Worktree)
	if err != nil {
		return begun, err
	}
	defer release()
	w, err := s.worktree(ctx, begun.Worktree)
	if hub.IsCode(err, hub.CodeWorktreeNotFoundOnServer) {
		return begun, nil // it was deleted, and the answer was lost
	}
	if err != nil {
		return begun, err
	}
	if w.State == hub.WorktreeReady { // a restart took it back
		if err := s.takeAgain(ctx, w.ID); err != nil {
			return begun, err
		}
	}
	out, err := s.removeNow(ctx, w, begun, force)
	if err == nil || w.State == hub.WorktreeDeleting {
		return out, err
	}
	return begun, s.giveBack(ctx, w.ID, err)
}

// takeAgain takes a worktree out of use as beginRemoval did.
func (s *Service) takeAgain(ctx context.Context, id hub.WorktreeID) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		w, err := tx.Worktree(id)
		if err != nil {
			return err
		}
		if err := s.unused(tx, w); err != nil {
			return err
		}
		w.State = hub.WorktreeRemoving
		return tx.SaveWorktree(w)
	})
}

// giveBack puts a worktree of which nothing was deleted into use again. Else the
// cause is no definite answer.
func (s *Service) giveBack(ctx context.Context, id hub.WorktreeID, cause error) error {
	now, err := s.worktree(ctx, id)
	if err == nil && now.State == hub.WorktreeRemoving {
		err = s.setTreeState(ctx, id, hub.WorktreeReady)
		if err == nil {
			return cause
		}
	}
	return fmt.Errorf("removing %s: %s", id, errors.Join(cause, err))
}

// removeNow looks, saves, commits that nothing is needed any more, and deletes.
func (s *Service) removeNow(ctx context.Context, w hub.Worktree, out hub.WorktreeRemoval, force bool) (hub.WorktreeRemoval, error) {
	var repo hub.Repo
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		repo, err = rx.Repo(w.Repo)
		return err
	})
	if err != nil {
		return out, err
	}
	st, err := s.Git.Examine(ctx, repo, w)
	if err != nil {
		return out, err
	}
	if w.State == hub.WorktreeDeleting { // it was looked at, and is gone in part
		if slices.ContainsFunc(st.Losses, func(l hub.Loss) bool { return l.Kind == hub.LossCommit }) {
			st.Tip = ""
		}
		return s.deleteNow(ctx, repo, w, st.Tip, out)
	}
	if len(st.Losses) > 0 && !force {
		return out, notEmpty(w, st.Losses)
	}
	if force {
		if out.Saved, out.NotSaved, err = s.Git.Save(ctx, repo, w); err != nil {
			return out, err
		}
		if err := unsavable(w, out.NotSaved); err != nil {
			return out, err
		}
	}
	if err := s.setTreeState(ctx, w.ID, hub.WorktreeDeleting); err != nil {
		return out, err
	}
	return s.deleteNow(ctx, repo, w, st.Tip, out)
}

func (s *Service) deleteNow(ctx context.Context, repo hub.Repo, w hub.Worktree, tip string, out hub.WorktreeRemoval) (hub.WorktreeRemoval, error) {
	kept, err := s.Git.Remove(ctx, repo, w, tip)
	if err != nil {
		return out, fmt.Errorf("deleting %s: %w", w.ID, err)
	}
	out.BranchKept = kept
	out.Saved, out.NotSaved = append([]hub.SavedRef{}, out.Saved...), append([]hub.Loss{}, out.NotSaved...)
	return out, s.Store.Update(ctx, store.Settle, func(tx store.Tx) error { return tx.DeleteWorktree(w.ID) })
}

// shownLosses is how many losses a refusal lists.
const shownLosses = 20

func notEmpty(w hub.Worktree, losses []hub.Loss) error {
	lines := make([]string, 0, shownLosses+1)
	for _, l := range losses[:min(len(losses), shownLosses)] {
		lines = append(lines, string(l.Kind)+" "+l.Name)
	}
	if more := len(losses) - shownLosses; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	e := hub.Errorf(hub.CodeWorktreeNotEmpty, "%s (%s) holds what would be lost: %s", w.Name, w.ID, hub.PlainText([]byte(strings.Join(lines, "; "))))
	e.Hint = "commit and push it or merge it elsewhere, or remove with --force, which saves files and commits under refs of the repository first"
	return e
}

// unsavable refuses to delete a repository inside the worktree: its commits are
// nowhere else, and no ref of this repository can keep them.
func unsavable(w hub.Worktree, left []hub.Loss) error {
	inside := slices.DeleteFunc(slices.Clone(left), func(l hub.Loss) bool { return l.Kind != hub.LossRepository })
	if len(inside) == 0 {
		return nil
	}
	err := notEmpty(w, inside)
	if e, ok := errors.AsType[*hub.Error](err); ok {
		e.Hint = "a repository inside cannot be saved under refs: move it out of the worktree, or delete it by hand, and repeat the removal"
	}
	return err
}

// WorktreeShown is a worktree with what is found of it now.
type WorktreeShown struct {
	Worktree hub.Worktree
	Repo     hub.Repo
	Children []hub.Worktree
	Users    []hub.DispatchID // live workers in it
	Found    hub.TreeState
	Unknown  string // why it could not be examined, "" if it was
}

// ShowWorktree reads one worktree, its lineage, who works in it, and examines it,
// all as far as the caller may see it.
func (s *Service) ShowWorktree(ctx context.Context, who hub.Principal, selector string) (WorktreeShown, error) {
	var out WorktreeShown
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		sight, err := SightOf(rx, who)
		if err != nil {
			return err
		}
		if out.Worktree, err = sight.FindWorktree(rx, selector); err != nil {
			return err
		}
		if out.Repo, err = rx.Repo(out.Worktree.Repo); err != nil {
			return err
		}
		if out.Children, err = rx.WorktreesUnder(out.Worktree.ID); err != nil {
			return err
		}
		if out.Children, err = kept(out.Children, sight.Worktree(rx)); err != nil {
			return err
		}
		out.Users, err = usersOf(rx, sight, out.Worktree)
		return err
	})
	if err != nil {
		return out, err
	}
	if out.Found, err = s.Git.Examine(ctx, out.Repo, out.Worktree); err != nil {
		out.Unknown = err.Error()
	}
	return out, ctx.Err()
}
