package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	worktreeCols   = "id, repo, name, path, branch, base_commit, parent, state, display_name, comment, setup, request, created_at, created_by"
	worktreeQuery  = `SELECT ` + worktreeCols + ` FROM worktrees WHERE id = ?`
	worktreeByFold = `SELECT ` + worktreeCols + ` FROM worktrees WHERE name_fold = ? AND repo = ?`
	worktreesNamed = `SELECT ` + worktreeCols + ` FROM worktrees WHERE name_fold = ? AND name = ? ORDER BY rid DESC`
	worktreeByPath = `SELECT ` + worktreeCols + ` FROM worktrees WHERE path = ? ORDER BY rid DESC LIMIT 1`
	worktreePage   = `SELECT ` + worktreeCols + `, rid FROM worktrees WHERE rid < ? ORDER BY rid DESC LIMIT ?`
	worktreesOf    = `SELECT ` + worktreeCols + `, rid FROM worktrees WHERE repo = ? AND rid < ? ORDER BY rid DESC LIMIT ?`
	worktreesUnder = `SELECT ` + worktreeCols + ` FROM worktrees WHERE parent = ? ORDER BY rid`
	openWorktrees  = `SELECT ` + worktreeCols + ` FROM worktrees WHERE open = 1 ORDER BY rid`
	deleteWorktree = `DELETE FROM worktrees WHERE id = ?`
)

var (
	insertWorktree = insertInto("worktrees", worktreeCols+", name_fold, open")
	updateWorktree = updateSet("worktrees", worktreeCols+", name_fold, open", 1)
)

func scanWorktree(s scanner, w *hub.Worktree) error {
	return s.Scan(&w.ID, &w.Repo, &w.Name, &w.Path, &w.Branch, &w.Base, &w.Parent, &w.State, &w.DisplayName, &w.Comment,
		fromJSON{&w.Setup}, &w.Request, &w.CreatedAt, &w.CreatedBy)
}

func worktreeArgs(w hub.Worktree) []any {
	return []any{w.ID, w.Repo, w.Name, w.Path, w.Branch, w.Base, w.Parent, w.State, w.DisplayName, w.Comment,
		asJSON{w.Setup}, w.Request, w.CreatedAt, w.CreatedBy, fold(w.Name), w.Open()}
}

func noWorktree(id hub.WorktreeID) error {
	return hub.Errorf(hub.CodeWorktreeNotFoundOnServer, "there is no worktree %s", id)
}

// Worktree implements store.RepoReader.
func (q querier) Worktree(id hub.WorktreeID) (hub.Worktree, error) {
	w, err := must(q, scanWorktree, noWorktree(id), worktreeQuery, id)
	return w, wrap(err, "reading %s", id)
}

// WorktreesNamed implements store.RepoReader; the name is exact.
func (q querier) WorktreesNamed(name string) ([]hub.Worktree, error) {
	ws, err := all(q, scanWorktree, worktreesNamed, fold(name), name)
	return ws, wrap(err, "reading the worktrees named %s", name)
}

// WorktreeByPath implements store.RepoReader: the newest there.
func (q querier) WorktreeByPath(path string) (hub.Worktree, bool, error) {
	w, ok, err := one(q, scanWorktree, worktreeByPath, path)
	return w, ok, wrap(err, "reading the worktree at %s", path)
}

// WorktreeList implements store.RepoReader; repo "" lists all.
func (q querier) WorktreeList(repo hub.RepoID, p store.Page) (ws []hub.Worktree, next int64, err error) {
	if repo == "" {
		ws, next, err = paged(q, scanWorktree, p.Limit, worktreePage, before(p.Before))
	} else {
		ws, next, err = paged(q, scanWorktree, p.Limit, worktreesOf, repo, before(p.Before))
	}
	return ws, next, wrap(err, "listing worktrees")
}

// WorktreesUnder implements store.RepoReader, the oldest first.
func (q querier) WorktreesUnder(parent hub.WorktreeID) ([]hub.Worktree, error) {
	if parent == "" {
		return nil, nil
	}
	ws, err := all(q, scanWorktree, worktreesUnder, parent)
	return ws, wrap(err, "reading the children of %s", parent)
}

// OpenWorktrees implements store.RepoReader, the oldest first.
func (q querier) OpenWorktrees() ([]hub.Worktree, error) {
	ws, err := all(q, scanWorktree, openWorktrees)
	return ws, wrap(err, "reading the open worktrees")
}

// PutWorktree implements store.Repos.
func (tx *Tx) PutWorktree(w hub.Worktree) error {
	_, err := tx.exec(insertWorktree, worktreeArgs(w)...)
	if tx.unique(err) {
		other, ok, lookErr := one(tx.querier, scanWorktree, worktreeByFold, fold(w.Name), w.Repo)
		if lookErr != nil {
			return wrap(lookErr, "putting %s", w.ID)
		}
		if ok && other.ID != w.ID {
			return nameTaken("worktree", other.Name, string(other.ID))
		}
	}
	return wrap(err, "putting %s", w.ID)
}

// SaveWorktree implements store.Repos.
func (tx *Tx) SaveWorktree(w hub.Worktree) error {
	return wrap(tx.save(noWorktree(w.ID), updateWorktree, keysLast(worktreeArgs(w), 1)...), "saving %s", w.ID)
}

// DeleteWorktree implements store.Repos.
func (tx *Tx) DeleteWorktree(id hub.WorktreeID) error {
	return wrap(tx.save(noWorktree(id), deleteWorktree, id), "deleting %s", id)
}
