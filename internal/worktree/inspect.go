package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// Kind says what a registered folder is.
type Kind string

// The kinds: only a git repository can have worktrees made of it.
const (
	KindGit    Kind = "git"
	KindFolder Kind = "folder"
)

// Facts describe a folder. For a git repository Path is the top folder of the
// working tree that holds the inspected path, which may be a parent of it: who
// grants access by path must check Facts.Path. All paths are absolute and free
// of symbolic links.
type Facts struct {
	Path   string
	Kind   Kind
	GitDir string // the common git directory, shared by all worktrees
	Head   string // full object id; empty when there is no commit yet
	Branch string // without refs/heads/; empty when HEAD is detached
}

// Inspect looks at an existing folder and changes nothing. Paths that are not
// absolute, do not exist, name no folder, or are UNC or device paths, bare
// repositories and repositories of other users (unless named by their own top
// folder) are invalid_argument.
func (g *Git) Inspect(ctx context.Context, path string) (Facts, error) {
	facts, _, err := g.inspect(ctx, path)
	return facts, err
}

func (g *Git) inspect(ctx context.Context, path string) (Facts, record, error) {
	path, err := canonical(path)
	if err != nil {
		return Facts{}, record{}, err
	}
	at, common, err := g.discover(ctx, path)
	if err != nil {
		return Facts{}, record{}, err
	}
	if at.gitDir == "" {
		return Facts{Path: path, Kind: KindFolder}, at, nil
	}
	facts := Facts{Path: at.workTree, Kind: KindGit, GitDir: common}
	if facts.Head, err = g.head(ctx, at); err != nil {
		return Facts{}, at, err
	}
	facts.Branch, err = g.branch(ctx, at)
	return facts, at, err
}

// Canonical is an existing folder's absolute path without symbolic links; who
// grants access by path compares canonical paths only.
func Canonical(path string) (string, error) { return canonical(path) }

func canonical(path string) (string, error) {
	if strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, "//") {
		return "", hub.Invalid("path", "%q is a network or device path", path)
	}
	if !filepath.IsAbs(path) {
		return "", hub.Invalid("path", "%q is not absolute", path)
	}
	if runtime.GOOS == "windows" && oddOnWindows(path) {
		return "", hub.Invalid("path", "%q names a device or a data stream", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", refused(path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", refused(path, err)
	}
	if !info.IsDir() {
		return "", hub.Invalid("path", "%q is not a folder", path)
	}
	if strings.HasPrefix(real, `\\`) {
		return "", hub.Invalid("path", "%q leads to a network path", path)
	}
	return real, nil
}

func refused(path string, cause error) error {
	e := hub.Invalid("path", "%q cannot be used", path)
	e.Err = cause
	return e
}

func oddOnWindows(path string) bool {
	rest := path[len(filepath.VolumeName(path)):]
	for _, part := range strings.FieldsFunc(rest, func(r rune) bool { return r == '/' || r == '\\' }) {
		if strings.Contains(part, ":") || hub.DeviceName(part) {
			return true
		}
	}
	return false
}

// discover finds the repository that path lies in; an empty record means none.
func (g *Git) discover(ctx context.Context, path string) (record, string, error) {
	out, err := g.run(ctx, call{dir: path, args: []string{
		"rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"}})
	switch {
	case hub.IsCode(err, hub.CodeCapabilityUnsupported) && !inRepository(path):
		return record{}, "", nil
	case said(err, "not a git repository (or any"):
		return record{}, "", nil
	case said(err, "must be run in a work tree"):
		return record{}, "", hub.Invalid("path", "%q is a bare repository or inside a git directory; name a working tree", path)
	case said(err, "dubious ownership"):
		return record{}, "", hub.Invalid("path", "%q lies in a repository of another user; name that repository's top folder itself", path)
	case exitedWith(err, 128):
		return record{}, "", refused(path, err)
	case err != nil:
		return record{}, "", err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 3 {
		return record{}, "", hub.Invalid("path", "%q holds a line break", path)
	}
	for i, line := range lines {
		if lines[i], err = filepath.EvalSymlinks(filepath.FromSlash(strings.TrimSuffix(line, "\r"))); err != nil {
			return record{}, "", fmt.Errorf("resolving what git said of %s: %w", path, err)
		}
	}
	return record{gitDir: lines[1], workTree: lines[0]}, lines[2], nil
}

// inRepository says, without git, whether path lies in a repository or a git
// directory, or in what looks like one.
func inRepository(path string) bool {
	for {
		if present(path, ".git") || present(path, "HEAD") && present(path, "objects") && present(path, "refs") {
			return true
		}
		above := filepath.Dir(path)
		if above == path {
			return false
		}
		path = above
	}
}

func present(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return !missing(err)
}

func (g *Git) head(ctx context.Context, at record) (string, error) {
	return g.lookUp(ctx, at, "rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}")
}

func (g *Git) branch(ctx context.Context, at record) (string, error) {
	ref, err := g.lookUp(ctx, at, "symbolic-ref", "--quiet", "HEAD")
	return strings.TrimPrefix(ref, "refs/heads/"), err
}

// lookUp runs a query that says "nothing" by exit code 1.
func (g *Git) lookUp(ctx context.Context, at record, args ...string) (string, error) {
	out, err := g.run(ctx, call{at: at, args: args})
	if exitedWith(err, 1) {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// Resolve returns the full id of the commit that a base names in a repository,
// of the present HEAD for "". A base that names none is invalid_argument.
func (g *Git) Resolve(ctx context.Context, path, base string) (Facts, string, error) {
	facts, at, err := g.inspect(ctx, path)
	if err != nil {
		return facts, "", err
	}
	if base != "" {
		if err := CheckRef(base); err != nil {
			return facts, "", err
		}
	}
	oid, err := g.resolve(ctx, at, base, facts.Head)
	return facts, oid, err
}
