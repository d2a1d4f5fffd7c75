package server

import (
	"context"
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

// AddRepo registers a repository or folder.
func (s apiHandlers) AddRepo(w http.ResponseWriter, r *http.Request, params api.AddRepoParams) {
	mutate(s.Server, w, r, verb[api.RepoAdd, work.RepoAdded]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.RepoAdd) (work.RepoAdded, error) {
			return s.cfg.Work.AddRepo(ctx, q, work.RepoInput{Path: b.Path, Name: b.Name, Setup: string(b.Setup)})
		},
		show: answered(http.StatusCreated, repoResult),
	})
}

// ListRepos shows the registered repositories.
func (s apiHandlers) ListRepos(w http.ResponseWriter, r *http.Request, params api.ListReposParams) {
	page(s.Server, w, r, list{"repos"}, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		sight, err := work.SightOf(rx, callOf(r).principal)
		if err != nil {
			return nil, 0, err
		}
		repos, next, err := work.Visible(p, rx.RepoList, sight.Repo)
		return func(c *string) any { return api.RepoPage{Repos: each(repos, repoOf), NextCursor: c} }, next, err
	})
}

// ListWorktrees shows the worktrees that this hub made, or the one at a path.
func (s apiHandlers) ListWorktrees(w http.ResponseWriter, r *http.Request, params api.ListWorktreesParams) {
	if params.Path != "" {
		found, err := s.cfg.Work.WorktreeAt(r.Context(), callOf(r).principal, params.Path)
		s.reply(w, r, http.StatusOK, api.WorktreePage{Worktrees: []api.Worktree{worktreeOf(found)}}, err)
		return
	}
	l := list{"worktrees", params.Repo}
	page(s.Server, w, r, l, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		sight, err := work.SightOf(rx, callOf(r).principal)
		if err != nil {
			return nil, 0, err
		}
		var repo hub.Repo
		if params.Repo != "" {
			if repo, err = sight.FindRepo(rx, params.Repo); err != nil {
				return nil, 0, err
			}
		}
		read := func(p store.Page) ([]hub.Worktree, int64, error) { return rx.WorktreeList(repo.ID, p) }
		wts, next, err := work.Visible(p, read, sight.Worktree(rx))
		return func(c *string) any { return api.WorktreePage{Worktrees: each(wts, worktreeOf), NextCursor: c} }, next, err
	})
}

// CreateWorktree makes a worktree and starts its setup.
func (s apiHandlers) CreateWorktree(w http.ResponseWriter, r *http.Request, params api.CreateWorktreeParams) {
	mutate(s.Server, w, r, verb[api.WorktreeCreate, hub.WorktreeReceipt]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.WorktreeCreate) (hub.WorktreeReceipt, error) {
			return s.cfg.Work.CreateWorktree(ctx, q, worktreeInput(b))
		},
		show:  func(o hub.WorktreeReceipt) (int, any) { return worktreeStatus(o), worktreeReceipt(o) },
		waits: func(api.WorktreeCreate) bool { return true },
	})
}

func worktreeStatus(o hub.WorktreeReceipt) int {
	if o.State == hub.StartOutcomeUnknown {
		return http.StatusAccepted
	}
	return http.StatusCreated
}

// GetWorktree shows one worktree and what it holds.
func (s apiHandlers) GetWorktree(w http.ResponseWriter, r *http.Request, idOrName string) {
	shown, err := s.cfg.Work.ShowWorktree(r.Context(), callOf(r).principal, idOrName)
	s.reply(w, r, http.StatusOK, worktreeDetail(shown), err)
}

// RemoveWorktree deletes a worktree that nothing uses.
func (s apiHandlers) RemoveWorktree(w http.ResponseWriter, r *http.Request, idOrName string, params api.RemoveWorktreeParams) {
	mutate(s.Server, w, r, verb[api.WorktreeRemove, hub.WorktreeRemoval]{
		key: params.IdempotencyKey, path: idOrName,
		do: func(ctx context.Context, q receipt.Request, b api.WorktreeRemove) (hub.WorktreeRemoval, error) {
			return s.cfg.Work.RemoveWorktree(ctx, q, work.RemoveInput{Worktree: idOrName, Force: b.Force})
		},
		show:  answered(http.StatusOK, worktreeRemoval),
		waits: func(api.WorktreeRemove) bool { return true },
	})
}
