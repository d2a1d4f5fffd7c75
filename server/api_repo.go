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
		repos, next, err := rx.RepoList(p)
		return func(c *string) any { return api.RepoPage{Repos: each(repos, repoOf), NextCursor: c} }, next, err
	})
}

// ListWorktrees shows the worktrees that this hub made.
func (s apiHandlers) ListWorktrees(w http.ResponseWriter, r *http.Request, params api.ListWorktreesParams) {
	l := list{"worktrees", params.Repo}
	page(s.Server, w, r, l, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		var repo hub.Repo
		if params.Repo != "" {
			var err error
			if repo, err = work.FindRepo(rx, params.Repo); err != nil {
				return nil, 0, err
			}
		}
		wts, next, err := rx.WorktreeList(repo.ID, p)
		return func(c *string) any { return api.WorktreePage{Worktrees: each(wts, worktreeOf), NextCursor: c} }, next, err
	})
}
