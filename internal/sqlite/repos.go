package sqlite

import (
	"strings"
	"unicode"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	repoCols   = "id, name, path, kind, setup, created_at"
	repoQuery  = `SELECT ` + repoCols + ` FROM repos WHERE id = ?`
	repoByFold = `SELECT ` + repoCols + ` FROM repos WHERE name_fold = ?`
	repoByPath = `SELECT ` + repoCols + ` FROM repos WHERE path = ? ORDER BY rid LIMIT 1`
	repoPage   = `SELECT ` + repoCols + `, rid FROM repos WHERE rid < ? ORDER BY rid DESC LIMIT ?`
)

var (
	insertRepo = insertInto("repos", repoCols+", name_fold")
	updateRepo = updateSet("repos", repoCols+", name_fold", 1)
)

// fold maps names that differ in case only to the same text, as
// strings.EqualFold compares them.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

func scanRepo(s scanner, r *hub.Repo) error {
	return s.Scan(&r.ID, &r.Name, &r.Path, &r.Kind, &r.Setup, &r.CreatedAt)
}

func noRepo(id hub.RepoID) error {
	return hub.Errorf(hub.CodeRepoNotFound, "there is no repository %s", id)
}

// Repo implements store.RepoReader.
func (q querier) Repo(id hub.RepoID) (hub.Repo, error) {
	r, err := must(q, scanRepo, noRepo(id), repoQuery, id)
	return r, wrap(err, "reading %s", id)
}

// RepoByName implements store.RepoReader; the name is exact.
func (q querier) RepoByName(name string) (hub.Repo, bool, error) {
	r, ok, err := one(q, scanRepo, repoByFold+` AND name = ?`, fold(name), name)
	return r, ok, wrap(err, "reading repository %s", name)
}

// RepoByPath implements store.RepoReader: the first that was added.
func (q querier) RepoByPath(path string) (hub.Repo, bool, error) {
	r, ok, err := one(q, scanRepo, repoByPath, path)
	return r, ok, wrap(err, "reading the repository at %s", path)
}

// RepoList implements store.RepoReader.
func (q querier) RepoList(p store.Page) ([]hub.Repo, int64, error) {
	rs, next, err := paged(q, scanRepo, p.Limit, repoPage, before(p.Before))
	return rs, next, wrap(err, "listing repositories")
}

func repoArgs(r hub.Repo) []any {
	return []any{r.ID, r.Name, r.Path, r.Kind, r.Setup, r.CreatedAt, fold(r.Name)}
}

// PutRepo implements store.Repos.
func (tx *Tx) PutRepo(r hub.Repo) error {
	_, err := tx.exec(insertRepo, repoArgs(r)...)
	return wrap(tx.repoName(r, err), "putting %s", r.ID)
}

// SaveRepo implements store.Repos.
func (tx *Tx) SaveRepo(r hub.Repo) error {
	err := tx.save(noRepo(r.ID), updateRepo, keysLast(repoArgs(r), 1)...)
	return wrap(tx.repoName(r, err), "saving %s", r.ID)
}

// repoName turns a refused write into name_taken if the name is why.
func (tx *Tx) repoName(r hub.Repo, err error) error {
	if !tx.unique(err) {
		return err
	}
	other, ok, lookErr := one(tx.querier, scanRepo, repoByFold, fold(r.Name))
	switch {
	case lookErr != nil:
		return lookErr
	case !ok || other.ID == r.ID:
		return err
	default:
		return nameTaken("repository", other.Name, string(other.ID))
	}
}
