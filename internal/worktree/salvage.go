package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// Salvage finds out what became of a Create that was cut off, by a crash or an
// error whose cleaning up failed: true and the worktree if it is complete and
// locked with its id, else it removes what is there of it. It removes only what
// is proven to be of this worktree: the entry that is locked with its id, the
// folder that the entry names or that is empty, and the branch whose reflog says
// so. It waits for a git that is still at work on it. An error says that nothing
// is known yet.
func (g *Git) Salvage(ctx context.Context, spec CreateSpec) (Created, bool, error) {
	spec = spec.complete()
	if err := spec.check(); err != nil {
		return Created{}, false, err
	}
	facts, at, err := g.inspect(ctx, spec.Repo.Path)
	if err != nil {
		return Created{}, false, err
	}
	unlock, err := g.lock(ctx, facts.GitDir)
	if err != nil {
		return Created{}, false, err
	}
	defer unlock()
	path, err := spec.finalPath()
	if missing(err) {
		return Created{}, false, nil // its folder was never made
	}
	if err != nil {
		return Created{}, false, err
	}
	keep, err := spec.acquire(ctx)
	if err != nil {
		return Created{}, false, err
	}
	defer keep.Close()
	w := wreck{git: g, at: at, common: facts.GitDir, spec: spec, path: path, keep: keep}
	made, ok, err := w.complete(ctx)
	if err != nil || ok {
		return made, ok, err
	}
	return Created{}, false, w.clear(ctx)
}

// finalPath is Path without symbolic links.
func (s CreateSpec) finalPath() (string, error) {
	folder, err := filepath.EvalSymlinks(filepath.Join(s.Root, string(s.RepoID)))
	return filepath.Join(folder, s.Name), err
}

// wreck is what a creation left.
type wreck struct {
	git    *Git
	at     record
	common string
	spec   CreateSpec
	path   string
	keep   *os.File
}

// complete reports whether the worktree is whole: git writes its index last.
func (w wreck) complete(ctx context.Context) (Created, bool, error) {
	e, ok, err := w.entry()
	if err != nil || !ok {
		return Created{}, false, err
	}
	if link, err := linkedGitDir(w.path); missing(err) || err == nil && !sameFile(link, e.dir) {
		return Created{}, false, nil
	} else if err != nil {
		return Created{}, false, err
	}
	if _, err := os.Stat(filepath.Join(e.dir, "index")); err != nil {
		return Created{}, false, ignoreMissing(err)
	}
	at := record{gitDir: e.dir, workTree: w.path}
	branch, err := w.git.branch(ctx, at)
	if err != nil || branch != w.spec.Branch {
		return Created{}, false, err
	}
	head, err := w.git.head(ctx, at)
	return Created{Path: w.path, Branch: branch, BaseCommit: head, GitDir: e.dir}, err == nil && head != "", err
}

func ignoreMissing(err error) error {
	if missing(err) {
		return nil
	}
	return err
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// entry is git's record that is locked with the id.
func (w wreck) entry() (entry, bool, error) {
	found, err := findEntries(w.common, w.spec.Worktree, w.path)
	for _, e := range found {
		if ours, err := e.says("locked", string(w.spec.Worktree)); err != nil || ours {
			return e, ours, err
		}
	}
	return entry{}, false, err
}

func (w wreck) clear(ctx context.Context) error {
	_, ours, err := w.entry()
	if err != nil {
		return err
	}
	if ours {
		err = errors.Join(removeFolder(w.spec.Root, w.spec.RepoID, w.spec.Name), removeEntries(w.common, w.spec.Worktree, w.path))
	} else {
		err = removeEmpty(w.path)
	}
	return errors.Join(err, w.clearBranch(ctx))
}

// removeEmpty removes the folder if there is nothing in it. Another folder of
// the name is not ours.
func removeEmpty(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return ignoreMissing(err)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) > 0 {
		return err
	}
	return ignoreMissing(os.Remove(path))
}

// clearBranch deletes the branch if it was made for this worktree and nothing
// has happened to it since.
func (w wreck) clearBranch(ctx context.Context) error {
	ref := "refs/heads/" + w.spec.Branch
	tip, err := w.git.lookUp(ctx, w.at, "rev-parse", "--verify", "--quiet", "--end-of-options", ref)
	if err != nil || tip == "" {
		return err
	}
	last, err := w.git.run(ctx, call{at: w.at, args: []string{"log", "-s", "--no-show-signature", "--walk-reflogs", "--max-count=1", "--format=%gs", ref, "--"}})
	if err != nil {
		return fmt.Errorf("reading who made the branch: %w", err)
	}
	if strings.TrimSpace(last) != createdFor(w.spec.Worktree) {
		return nil
	}
	return w.git.retry(ctx, call{at: w.at, keep: w.keep, args: []string{"update-ref", "-d", ref, tip}})
}

// Tree says which worktree to look at or to remove.
type Tree struct {
	Repo     string // the repository's path
	Root     string // as in CreateSpec
	RepoID   hub.RepoID
	Worktree hub.WorktreeID
	Name     string
	Branch   string
}

func (t Tree) spec() CreateSpec {
	return CreateSpec{Root: t.Root, RepoID: t.RepoID, Worktree: t.Worktree, Name: t.Name, Branch: t.Branch}
}
