package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
)

// Remove deletes a worktree: its folder, git's record of it, and its branch if
// that is at tip and no other worktree has it checked out. It asks nothing: who
// calls it has examined the worktree or saved what is in it. It goes on where one
// that was cut off stopped. Only what lies below Root is deleted, and nothing
// through links. The branch stays, and is said to, when it has moved.
func (g *Git) Remove(ctx context.Context, t Tree, tip string) (kept bool, err error) {
	x, err := g.find(ctx, t)
	if err != nil {
		return false, err
	}
	if x.common == "" {
		return false, removeFolder(t.Root, t.RepoID, t.Name)
	}
	unlock, err := g.lock(ctx, x.common)
	if err != nil {
		return false, err
	}
	defer unlock()
	keep, err := t.spec().acquire(ctx)
	if err != nil {
		return false, err
	}
	defer keep.Close()
	path, err := t.spec().finalPath()
	if ignoreMissing(err) != nil {
		return false, err
	}
	if err := errors.Join(removeFolder(t.Root, t.RepoID, t.Name), removeEntries(x.common, t.Worktree, path)); err != nil {
		return false, err
	}
	return g.dropBranch(ctx, x.repo, t.Branch, tip, keep)
}

// dropBranch deletes the branch if it is at tip and nowhere checked out.
func (g *Git) dropBranch(ctx context.Context, at record, branch, tip string, keep *os.File) (kept bool, err error) {
	ref := "refs/heads/" + branch
	now, err := g.lookUp(ctx, at, "rev-parse", "--verify", "--quiet", "--end-of-options", ref)
	if err != nil || now == "" {
		return false, err
	}
	used, err := g.run(ctx, call{at: at, args: []string{"for-each-ref", "--format=%(worktreepath)", ref}})
	if err != nil || now != tip || used != "\n" && used != "" {
		return true, err
	}
	return false, g.retry(ctx, call{at: at, keep: keep, args: []string{"update-ref", "-d", ref, tip}})
}

// removeFolder deletes the folder of a worktree below root. What is no folder is
// deleted itself, never what it leads to.
func removeFolder(root string, repo hub.RepoID, name string) error {
	if err := hub.CheckWorktreeName(name); err != nil {
		return err
	}
	if !hub.ValidID(hub.PrefixRepo, string(repo)) {
		return fmt.Errorf("removing a worktree: the repository %q is not valid", repo)
	}
	top, err := os.OpenRoot(root)
	if err != nil {
		return ignoreMissing(err)
	}
	defer top.Close()
	info, err := top.Lstat(string(repo))
	if err != nil {
		return ignoreMissing(err)
	}
	if !info.IsDir() {
		return fmt.Errorf("removing a worktree: %s is no folder", filepath.Join(root, string(repo)))
	}
	folder, err := top.OpenRoot(string(repo))
	if err != nil {
		return err
	}
	defer folder.Close()
	err = folder.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return errors.Join(openUp(folder, name), folder.RemoveAll(name))
}

// openUp lets the owner write to every folder: that of a Go module cache, for
// example, cannot be emptied else.
func openUp(folder *os.Root, name string) error {
	return fs.WalkDir(folder.FS(), name, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		if !d.IsDir() {
			return nil
		}
		return folder.Chmod(filepath.FromSlash(path), 0o700)
	})
}

func itoa(n int) string { return strconv.Itoa(n) }
