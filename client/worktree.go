package client

import (
	"context"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// removalWait is how long the deletion of a worktree may take beyond the usual
// patience: it is compared with what its branch holds first.
const removalWait = 2 * time.Minute

// Worktrees lists the worktrees that the hub made, of one repository or ("")
// of all.
func (c *Client) Worktrees(ctx context.Context, repo string, page Page, opts ...Option) (*api.WorktreePage, error) {
	return read[api.WorktreePage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListWorktrees(ctx, &api.ListWorktreesParams{Repo: repo, Cursor: page.Cursor, Limit: page.Limit})
	})
}

// WorktreeAt lists the one worktree that a folder of the hub's host is, or lies
// in; worktree_not_found_on_server if there is none.
func (c *Client) WorktreeAt(ctx context.Context, path string, opts ...Option) (*api.WorktreePage, error) {
	return read[api.WorktreePage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListWorktrees(ctx, &api.ListWorktreesParams{Path: path})
	})
}

// CreateWorktree makes a worktree. A receipt whose State is failed or
// outcome_unknown is a result, not an error.
func (c *Client) CreateWorktree(ctx context.Context, in api.WorktreeCreate, opts ...Option) (*api.WorktreeReceipt, error) {
	return mutate[api.WorktreeReceipt](ctx, c, waitOf(in.TimeoutMs, defaultStartWait), opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CreateWorktree(ctx, &api.CreateWorktreeParams{IdempotencyKey: key}, in)
	})
}

// Worktree returns one worktree, by id or exact name, and what it holds.
func (c *Client) Worktree(ctx context.Context, worktree string, opts ...Option) (*api.WorktreeDetail, error) {
	return read[api.WorktreeDetail](ctx, c, removalWait, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetWorktree(ctx, worktree)
	})
}

// RemoveWorktree deletes a worktree. worktree_not_empty lists what would be lost;
// with Force that is saved under refs first, which the result names.
func (c *Client) RemoveWorktree(ctx context.Context, worktree string, in api.WorktreeRemove, opts ...Option) (*api.WorktreeRemoval, error) {
	return mutate[api.WorktreeRemoval](ctx, c, removalWait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.RemoveWorktree(ctx, worktree, &api.RemoveWorktreeParams{IdempotencyKey: key}, in)
	})
}
