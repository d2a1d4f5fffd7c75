package work

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// RepoInput is the argument of AddRepo.
type RepoInput struct {
	Path  string `json:"path"`
	Name  string `json:"name"` // "": the folder's name
	Setup string `json:"setup"`
}

// RepoAdded is a registered repository.
type RepoAdded struct {
	Repo     hub.Repo     `json:"repo"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *RepoAdded) Mut() *hub.Mutation { return &r.Mutation }

// Subject is the repository, which belongs to no Run.
func (r *RepoAdded) Subject() (hub.RunID, string) { return "", string(r.Repo.ID) }

// AddRepo registers a repository or plain folder. A registered path succeeds
// and keeps its id; a name given for it renames it.
func (s *Service) AddRepo(ctx context.Context, r receipt.Request, in RepoInput) (RepoAdded, error) {
	if !filepath.IsAbs(in.Path) {
		return RepoAdded{}, hub.Invalid("path", "%q must be an absolute path", in.Path)
	}
	var f Folder
	name := in.Name
	err := receipt.Prepare(ctx, s.Store, r, func(ctx context.Context) (err error) {
		if f, err = s.Git.Inspect(ctx, in.Path); err != nil {
			return err
		}
		if name == "" {
			name = slug(filepath.Base(f.Path))
		}
		return s.Git.Check(name, "")
	})
	if err != nil {
		return RepoAdded{}, err
	}
	return receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (RepoAdded, error) {
		repo, err := putRepo(tx, f, name, in)
		return RepoAdded{Repo: repo}, err
	})
}

func putRepo(tx store.Tx, f Folder, name string, in RepoInput) (hub.Repo, error) {
	repo, known, err := tx.RepoByPath(f.Path)
	if err != nil {
		return repo, err
	}
	if !known {
		repo = hub.Repo{ID: hub.NewRepoID(), Name: name, Path: f.Path, Kind: f.Kind, Setup: in.Setup, CreatedAt: tx.Now()}
		return repo, tx.PutRepo(repo)
	}
	if in.Name == "" && in.Setup == "" {
		return repo, nil
	}
	if in.Name != "" {
		repo.Name = in.Name
	}
	if in.Setup != "" {
		repo.Setup = in.Setup
	}
	return repo, tx.SaveRepo(repo)
}

// slug makes a folder's name a name of the grammar.
func slug(s string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, strings.ToLower(s))
	return strings.Trim(out, "-._")
}
