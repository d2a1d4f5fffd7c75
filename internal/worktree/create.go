package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
)

// BranchPrefix is what the branches that wavehub makes begin with.
const BranchPrefix = "wavehub/"

// CreateSpec says which worktree to make.
type CreateSpec struct {
	Repo     Facts          // as Inspect gave them
	Root     string         // hub-owned parent of all worktrees; made if missing
	RepoID   hub.RepoID     // names the folder under Root
	Worktree hub.WorktreeID // becomes the reason of git's lock on the worktree
	Name     string
	Base     string // branch, tag or commit id; empty for the present HEAD
	Branch   string // the new branch; empty for BranchPrefix + Name
	// Hooks lets the repository's own post-checkout hook run at the checkout,
	// in git's closed environment and time limit.
	Hooks bool
}

// Path is where the worktree will be, as long as Root holds no symbolic link;
// Created has the final form.
func (s CreateSpec) Path() string { return filepath.Join(s.Root, string(s.RepoID), s.Name) }

// Created is a worktree that is complete: branch, folder, lock and files.
type Created struct {
	Path       string
	Branch     string
	BaseCommit string // full object id
	GitDir     string // the worktree's own git directory, within the common one
}

// Create makes a branch from the base, a folder, and a locked worktree in it.
// Creations of one repository run one after the other; contention with other
// git processes is waited out within bounds. An error leaves nothing: the
// branch and the folder are removed if this call made them, and only those. A
// crash can leave a branch, a folder and an entry of git's list of worktrees,
// the latter locked with the id: Salvage finds out. Bad names and refs, folders without git and
// repositories without a commit are invalid_argument and name_taken is a name,
// branch or folder in use, all before any effect; a repository that is not
// the registered one any more is repo_not_found.
func (g *Git) Create(ctx context.Context, spec CreateSpec) (Created, error) {
	spec = spec.complete()
	if err := spec.check(); err != nil {
		return Created{}, err
	}
	unlock, err := g.lock(ctx, spec.Repo.GitDir)
	if err != nil {
		return Created{}, fmt.Errorf("waiting for other changes of the repository: %w", err)
	}
	defer unlock()
	made, err := g.prepare(ctx, spec)
	if err != nil {
		return Created{}, err
	}
	if made.keep, err = spec.acquire(ctx); err != nil {
		return Created{}, err
	}
	defer made.keep.Close()
	if err := made.build(ctx); err != nil {
		if undone := made.undo(ctx); undone != nil {
			return Created{}, errors.Join(err, fmt.Errorf("removing what was made: %w", undone))
		}
		return Created{}, err
	}
	return Created{Path: made.path, Branch: spec.Branch, BaseCommit: made.base, GitDir: made.gitDir}, nil
}

// Free refuses with name_taken what Create would find in use, and changes
// nothing. Only Create can promise: another may come in between.
func (g *Git) Free(ctx context.Context, spec CreateSpec) error {
	spec = spec.complete()
	_, at, err := g.inspect(ctx, spec.Repo.Path)
	if err != nil {
		return gone(spec.Repo.Path, err)
	}
	if err := g.branchFree(ctx, at, spec.Branch); err != nil {
		return err
	}
	if _, err := os.Lstat(spec.Path()); err == nil {
		return taken(spec.Path(), fs.ErrExist)
	}
	return nil
}

func (s CreateSpec) complete() CreateSpec {
	if s.Branch == "" {
		s.Branch = BranchPrefix + s.Name
	}
	return s
}

func (s CreateSpec) check() error {
	if s.Repo.Kind != KindGit {
		return hub.Invalid("worktree", "%s is a plain folder; only a git repository can have a new worktree", s.Repo.Path)
	}
	if err := hub.CheckWorktreeName(s.Name); err != nil {
		return err
	}
	if err := checkRef("branch", s.Branch); err != nil {
		return err
	}
	if s.Branch == "HEAD" {
		return hub.Invalid("branch", "HEAD is not a branch")
	}
	if s.Base != "" {
		if err := CheckRef(s.Base); err != nil {
			return err
		}
	}
	if !filepath.IsAbs(s.Root) || !hub.ValidID(hub.PrefixRepo, string(s.RepoID)) || !hub.ValidID(hub.PrefixWorktree, string(s.Worktree)) {
		return fmt.Errorf("creating a worktree: root %q, repository %q or worktree %q is not valid", s.Root, s.RepoID, s.Worktree)
	}
	return nil
}

// lock waits until no other change of the repository is being made.
func (g *Git) lock(ctx context.Context, gitDir string) (func(), error) {
	g.mu.Lock()
	turn, ok := g.locks[gitDir]
	if !ok {
		turn = make(chan struct{}, 1)
		g.locks[gitDir] = turn
	}
	g.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// prepare makes sure that everything is there and free; its only effect is the
// hub-owned folder that will hold the worktree.
func (g *Git) prepare(ctx context.Context, spec CreateSpec) (*creation, error) {
	facts, at, err := g.inspect(ctx, spec.Repo.Path)
	if err != nil {
		return nil, gone(spec.Repo.Path, err)
	}
	if facts.GitDir != spec.Repo.GitDir {
		return nil, gone(spec.Repo.Path, hub.Invalid("repo", "its git directory is %q, it was %q", facts.GitDir, spec.Repo.GitDir))
	}
	base, err := g.resolve(ctx, at, spec.Base, facts.Head)
	if err != nil {
		return nil, err
	}
	if err := g.branchFree(ctx, at, spec.Branch); err != nil {
		return nil, err
	}
	folder, err := spec.folder()
	if err != nil {
		return nil, err
	}
	return &creation{git: g, at: at, common: facts.GitDir, id: spec.Worktree, branch: spec.Branch, base: base,
		path: filepath.Join(folder, spec.Name), hooks: spec.Hooks}, nil
}

// acquire waits until no other process changes worktrees of the repository,
// which includes a git that outlived its hub. Root exists.
func (s CreateSpec) acquire(ctx context.Context) (*os.File, error) {
	return acquire(ctx, filepath.Join(s.Root, string(s.RepoID)+".lock"))
}

func gone(path string, cause error) error {
	if hub.CodeOf(cause) == hub.CodeInternal { // nothing was learnt of the repository
		return cause
	}
	e := hub.Errorf(hub.CodeRepoNotFound, "%s is not the registered repository any more", path)
	e.Err = cause
	return e
}

// resolve turns a base into a commit's full id; head serves the default.
func (g *Git) resolve(ctx context.Context, at record, base, head string) (string, error) {
	if base == "" || base == "HEAD" {
		if head == "" {
			return "", hub.Invalid("base", "%s has no commit yet; commit once, then create worktrees", at.workTree)
		}
		return head, nil
	}
	oid, err := g.lookUp(ctx, at, "rev-parse", "--verify", "--quiet", "--end-of-options", base+"^{commit}")
	if err != nil && !exitedWith(err, 128) {
		return "", err
	}
	if !oidGrammar.MatchString(oid) {
		return "", hub.Invalid("base", "%q names no commit of %s", base, at.workTree)
	}
	return oid, nil
}

// branchFree makes sure that neither the branch, nor one below it, nor one that
// is a part of its path exists: git could not store both.
func (g *Git) branchFree(ctx context.Context, at record, branch string) error {
	below, err := g.run(ctx, call{at: at, args: []string{"for-each-ref", "--count=1", "--format=%(refname:strip=2)", "refs/heads/" + branch}})
	if err != nil {
		return err
	}
	if below != "" {
		return hub.Errorf(hub.CodeNameTaken, "the branch %s exists", strings.TrimSpace(below))
	}
	for part := branch; strings.Contains(part, "/"); {
		part = part[:strings.LastIndexByte(part, '/')]
		oid, err := g.lookUp(ctx, at, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+part)
		if err != nil {
			return err
		}
		if oid != "" {
			return hub.Errorf(hub.CodeNameTaken, "the branch %s exists and leaves no room for %s", part, branch)
		}
	}
	return nil
}

// folder makes the parent of the worktree and makes sure that the name is free
// in it whatever the case of its letters.
func (s CreateSpec) folder() (string, error) {
	if err := safefile.PrivateDir(s.Root); err != nil {
		return "", fmt.Errorf("preparing the folder of worktrees: %w", err)
	}
	root, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		return "", fmt.Errorf("resolving the folder of worktrees: %w", err)
	}
	folder := filepath.Join(root, string(s.RepoID))
	if err := safefile.PrivateDir(folder); err != nil {
		return "", fmt.Errorf("preparing the repository's folder of worktrees: %w", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("listing worktrees: %w", err)
	}
	for _, entry := range entries {
		if strings.EqualFold(entry.Name(), s.Name) {
			return "", taken(filepath.Join(folder, entry.Name()), fs.ErrExist)
		}
	}
	return folder, nil
}

func taken(path string, cause error) error {
	e := hub.Errorf(hub.CodeNameTaken, "the folder of a worktree named %q exists", filepath.Base(path))
	e.Err = cause
	return e
}
