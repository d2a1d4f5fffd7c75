package daemon

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/internal/worktree"
)

// git fits package worktree to work.Git.
type git struct {
	*worktree.Git
	root string
}

func (g git) Inspect(ctx context.Context, path string) (work.Folder, error) {
	f, err := g.Git.Inspect(ctx, path)
	return work.Folder{Path: f.Path, Kind: string(f.Kind), Head: f.Head}, err
}

func (git) Canonical(path string) (string, error) { return worktree.Canonical(path) }

func (g git) spec(n work.NewWorktree) worktree.CreateSpec {
	return worktree.CreateSpec{Root: g.root, RepoID: n.Repo.ID, Worktree: n.ID, Name: n.Name, Base: n.Base, Hooks: n.Hooks}
}

func (g git) Where(n work.NewWorktree) (path, branch string) {
	return g.spec(n).Path(), worktree.BranchPrefix + n.Name
}

func (g git) Free(ctx context.Context, n work.NewWorktree) error {
	spec := g.spec(n)
	spec.Repo.Path = n.Repo.Path
	return g.Git.Free(ctx, spec)
}

func (git) Check(name, base string) error {
	if err := hub.CheckWorktreeName(name); err != nil {
		return err
	}
	if base == "" {
		return nil
	}
	return worktree.CheckRef(base)
}

func (g git) Create(ctx context.Context, n work.NewWorktree) (hub.Worktree, error) {
	facts, err := g.Git.Inspect(ctx, n.Repo.Path)
	if err != nil {
		return hub.Worktree{}, err
	}
	spec := g.spec(n)
	spec.Repo = facts
	made, err := g.Git.Create(ctx, spec)
	return madeOf(n, made), err
}

func madeOf(n work.NewWorktree, made worktree.Created) hub.Worktree {
	return hub.Worktree{
		ID: n.ID, Repo: n.Repo.ID, Name: n.Name, Path: made.Path, Branch: made.Branch, Base: made.BaseCommit,
	}
}

func (g git) Salvage(ctx context.Context, n work.NewWorktree) (hub.Worktree, bool, error) {
	spec := g.spec(n)
	spec.Repo = worktree.Facts{Path: n.Repo.Path, Kind: worktree.KindGit}
	made, ok, err := g.Git.Salvage(ctx, spec)
	return madeOf(n, made), ok, err
}

func (g git) SetupHook(ctx context.Context, repo hub.Repo, base string) (hub.SetupHook, string, error) {
	facts, commit, err := g.Resolve(ctx, repo.Path, base)
	if err != nil {
		return hub.SetupHook{}, "", err
	}
	hook, err := g.Git.SetupHook(ctx, facts, commit)
	return hook, commit, err
}

func (g git) tree(repo hub.Repo, w hub.Worktree) worktree.Tree {
	return worktree.Tree{Repo: repo.Path, Root: g.root, RepoID: w.Repo, Worktree: w.ID, Name: w.Name, Branch: w.Branch}
}

func (g git) Examine(ctx context.Context, repo hub.Repo, w hub.Worktree) (hub.TreeState, error) {
	return g.Git.Examine(ctx, g.tree(repo, w))
}

func (g git) Save(ctx context.Context, repo hub.Repo, w hub.Worktree) ([]hub.SavedRef, []hub.Loss, error) {
	return g.Git.Save(ctx, g.tree(repo, w))
}

func (g git) Remove(ctx context.Context, repo hub.Repo, w hub.Worktree, tip string) (bool, error) {
	return g.Git.Remove(ctx, g.tree(repo, w), tip)
}

func (git) Handoff(dir, path string) (hub.Handoff, error) { return worktree.Handoff(dir, path) }
