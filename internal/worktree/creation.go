package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// undoTime bounds the removal of what a failed creation made.
const undoTime = 30 * time.Second

// contentionWaits are the pauses between tries while another process holds one
// of git's lock files.
var contentionWaits = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
	400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond}

// creation is one worktree in the making and what of it exists so far. It
// belongs to the goroutine that holds the repository's lock.
type creation struct {
	git    *Git
	at     record
	common string
	id     hub.WorktreeID
	branch string
	base   string
	path   string
	gitDir string // known once git has made the worktree
	hooks  bool
	keep   *os.File // the lock of the repository's worktrees

	madeFolder, madeBranch bool
}

func (c *creation) build(ctx context.Context) error {
	for _, step := range []func(context.Context) error{c.makeFolder, c.makeBranch, c.addWorktree, c.checkOut} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *creation) makeFolder(context.Context) error {
	err := os.Mkdir(c.path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return taken(c.path, err)
	}
	if err != nil {
		return fmt.Errorf("creating the worktree's folder: %w", err)
	}
	c.madeFolder = true
	return nil
}

// makeBranch creates the branch only if it does not exist. Being interrupted
// leaves in doubt whether it was made; undo then finds out by the base.
func (c *creation) makeBranch(ctx context.Context) error {
	ref := "refs/heads/" + c.branch
	err := c.git.retry(ctx, call{at: c.at, keep: c.keep, stdin: "create " + ref + " " + c.base + "\n",
		args: []string{"update-ref", "--create-reflog", "-m", createdFor(c.id), "--stdin"}})
	if said(err, "reference already exists") {
		return hub.Errorf(hub.CodeNameTaken, "the branch %s exists", c.branch)
	}
	c.madeBranch = err == nil || !exitedWith(err, 128)
	return err
}

// createdFor is what the reflog says of a branch that was made for a worktree.
func createdFor(id hub.WorktreeID) string { return "wavehub: created for " + string(id) }

func (c *creation) addWorktree(ctx context.Context) error {
	err := c.git.retry(ctx, call{at: c.at, keep: c.keep, args: []string{"worktree", "add", "--quiet", "--no-checkout", "--lock",
		"--reason", string(c.id), "--end-of-options", c.path, c.branch}})
	if err != nil {
		return err
	}
	c.gitDir, err = linkedGitDir(c.path)
	return err
}

// checkOut fills the worktree. The filters are looked up within it, because
// configuration can be included by folder and branch.
func (c *creation) checkOut(ctx context.Context) error {
	at := record{gitDir: c.gitDir, workTree: c.path}
	off, err := c.git.filtersOff(ctx, at)
	if err != nil {
		return fmt.Errorf("looking for content filters: %w", err)
	}
	fill := call{at: at, keep: c.keep, config: off, args: []string{"reset", "--quiet", "--hard"}}
	if c.hooks {
		fill.hooks, fill.args = true, []string{"checkout", "--quiet", "--force", c.branch, "--"}
	}
	return c.git.retry(ctx, fill)
}

// filtersOff returns settings that make every content filter of the
// repository's configuration do nothing.
func (g *Git) filtersOff(ctx context.Context, at record) ([]setting, error) {
	out, err := g.lookUp(ctx, at, "config", "--null", "--name-only", "--get-regexp", `^filter\.`)
	if err != nil {
		return nil, err
	}
	var off []setting
	seen := map[string]bool{}
	for key := range strings.SplitSeq(out, "\x00") {
		dot := strings.LastIndexByte(key, '.')
		if dot <= len("filter") || seen[key[:dot]] {
			continue
		}
		seen[key[:dot]] = true
		off = append(off, setting{key[:dot] + ".smudge", ""}, setting{key[:dot] + ".clean", ""},
			setting{key[:dot] + ".process", ""}, setting{key[:dot] + ".required", "false"})
	}
	return off, nil
}

// linkedGitDir reads the git directory of a worktree from its .git file.
func linkedGitDir(path string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(path, ".git"))
	if err != nil {
		return "", fmt.Errorf("reading the worktree's link: %w", err)
	}
	dir, ok := strings.CutPrefix(strings.TrimRight(string(raw), "\r\n"), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("the worktree's link at %s is not one of git's", path)
	}
	dir = filepath.FromSlash(dir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(path, dir)
	}
	return dir, nil
}

// undo removes what build made, even when ctx has ended.
func (c *creation) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var errs []error
	if c.madeFolder {
		errs = append(errs, removeEntries(c.common, c.id, c.path), os.RemoveAll(c.path))
	}
	if c.madeBranch {
		errs = append(errs, c.removeBranch(ctx))
	}
	return errors.Join(errs...)
}

// removeBranch deletes the branch if it still is where we put it.
func (c *creation) removeBranch(ctx context.Context) error {
	ref := "refs/heads/" + c.branch
	at, err := c.git.lookUp(ctx, c.at, "rev-parse", "--verify", "--quiet", "--end-of-options", ref)
	if err != nil || at != c.base {
		return err
	}
	return c.git.retry(ctx, call{at: c.at, keep: c.keep, args: []string{"update-ref", "-d", ref, c.base}})
}

// retry runs a command again, a few times, while another process holds a lock.
func (g *Git) retry(ctx context.Context, c call) error {
	for _, wait := range contentionWaits {
		_, err := g.run(ctx, c)
		if !contended(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
	_, err := g.run(ctx, c)
	return err
}

// contended reports whether git met another process at work: a lock, or a
// worktree that is being made and whose files are not all there yet. It has
// changed nothing then.
func contended(err error) bool {
	halfMade := said(err, "failed to read") && said(err, "/worktrees/")
	return halfMade || said(err, ".lock': File exists") || said(err, "could not lock config file")
}
