package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// Bounds of what differs from a commit when a Task begins.
const (
	maxDirty      = 10_000
	maxDirtyBytes = 1 << 20
)

// ErrTooManyChanges is returned for a working tree that differs from its commit
// in more paths than are kept.
var ErrTooManyChanges = errors.New("too many files differ from the commit")

// plainPaths makes every command name paths byte by byte, and keeps files of the
// repository's own configuration from hiding what is new. The check is no sandbox: it
// sees the files of the worktree that git is not told to ignore.
var plainPaths = []setting{
	{"core.quotePath", "false"},
	{"core.excludesFile", ""},
	{"status.renames", "false"},
	{"diff.renames", "false"},
	{"diff.external", ""},
	{"core.useReplaceRefs", "false"},
}

// Snapshot records what a working tree is now, for Changes to compare with: the
// commit, and what differs from it. The baseline of a folder without git has no
// root. Git is asked without filters, hooks and monitors of the repository.
func (g *Git) Snapshot(ctx context.Context, dir string) (hub.Baseline, error) {
	facts, at, err := g.inspect(ctx, dir)
	if err != nil || facts.Kind != KindGit {
		return hub.Baseline{}, err
	}
	b := hub.Baseline{Root: facts.Path, GitDir: facts.GitDir, Head: facts.Head, Exclude: excludeSum(facts.GitDir)}
	paths, err := g.dirty(ctx, at, false)
	if err != nil {
		return b, err
	}
	if size := len(strings.Join(paths, "")); len(paths) > maxDirty || size > maxDirtyBytes {
		return b, fmt.Errorf("%w: %d", ErrTooManyChanges, len(paths))
	}
	b.Dirty, err = printAll(ctx, facts.Path, paths)
	return b, err
}

// Changes are the paths that were changed since the baseline, sorted: what
// commits changed, what differs from them, both ends of renames, what is gone
// and what is new and not ignored. replaced says that the folder is not in that
// repository any more.
func (g *Git) Changes(ctx context.Context, dir string, base hub.Baseline) (paths []string, replaced bool, err error) {
	facts, at, err := g.inspect(ctx, dir)
	switch {
	case hub.IsCode(err, hub.CodeInvalidArgument): // the folder or its repository is gone
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case facts.Path != base.Root || facts.GitDir != base.GitDir:
		return nil, true, nil
	}
	committed, err := g.committed(ctx, at, base.Head, facts.Head)
	if err != nil {
		return nil, false, err
	}
	now, err := g.dirty(ctx, at, excludeSum(facts.GitDir) != base.Exclude)
	if err != nil {
		return nil, false, err
	}
	found := map[string]bool{}
	for _, path := range slices.Concat(committed, now) {
		found[path] = true
	}
	if err := forgetKept(ctx, base, found); err != nil {
		return nil, false, err
	}
	return slices.Sorted(maps.Keys(found)), false, nil
}

// forgetKept settles what was dirty at the beginning: it was changed if it is
// not now what it was then, also where git finds nothing about it any more.
func forgetKept(ctx context.Context, base hub.Baseline, found map[string]bool) error {
	paths := make([]string, len(base.Dirty))
	for i, was := range base.Dirty {
		paths[i] = was.Path
	}
	now, err := printAll(ctx, base.Root, paths)
	for i, was := range base.Dirty {
		if err == nil && was.Same(now[i]) {
			delete(found, was.Path)
		} else if err == nil {
			found[was.Path] = true
		}
	}
	return err
}

// dirty are the paths that differ from HEAD or are new. The worktree's own index
// is not asked, for its flags can hide files. Nor does a list of ignored files hide
// itself: a .gitignore that is ignored counts as new. bare leaves the repository's
// own list (info/exclude) out.
func (g *Git) dirty(ctx context.Context, at record, bare bool) (paths []string, err error) {
	off, err := g.filtersOff(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("looking for content filters: %w", err)
	}
	head, err := g.head(ctx, at)
	if err != nil {
		return nil, err
	}
	scratch, index, err := g.indexOf(ctx, at, head)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	return listDirty(func(args ...string) (string, error) {
		return g.run(ctx, call{at: at, dir: at.workTree, config: append(off, plainPaths...), env: []string{"GIT_INDEX_FILE=" + index}, args: args})
	}, bare)
}

// listDirty asks git what differs from the index, and what is new.
func listDirty(ask func(args ...string) (string, error), bare bool) ([]string, error) {
	// Of a submodule only its commit counts: looking into it would run git with
	// the configuration that it brings along.
	out, err := ask("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=no", "--no-renames", "--ignore-submodules=dirty", "--", ".")
	if err != nil {
		return nil, err
	}
	paths, err := statusPaths(out)
	if err != nil {
		return nil, err
	}
	more := [][]string{{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", ":(glob)**/.gitignore"}}
	if bare {
		more = append(more, []string{"ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"})
	}
	for _, args := range more {
		out, err := ask(args...)
		if err != nil {
			return nil, err
		}
		for path := range strings.SplitSeq(out, "\x00") {
			if path != "" {
				paths = append(paths, strings.TrimSuffix(path, "/"))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// maxExclude bounds how much of a list of ignored files is looked at.
const maxExclude = 1 << 20

// excludeSum is the sum of the repository's own list of ignored files, which no
// commit holds; "" where there is none that can be read.
func excludeSum(gitDir string) string {
	f, err := os.Open(filepath.Join(gitDir, "info", "exclude"))
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxExclude))
	if err != nil {
		return ""
	}
	return sumOf(raw)
}

// statusPaths reads "XY path" entries.
func statusPaths(out string) ([]string, error) {
	var paths []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if entry == "" {
			continue
		}
		if len(entry) < 4 || entry[2] != ' ' || strings.ContainsAny(entry[:2], "RC") {
			return nil, fmt.Errorf("git status answered %.80q", entry)
		}
		paths = append(paths, strings.TrimSuffix(entry[3:], "/"))
	}
	return paths, nil
}

// committed are the paths in which two commits differ; "" is a commit without
// any file.
func (g *Git) committed(ctx context.Context, at record, from, to string) ([]string, error) {
	args := []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--end-of-options", from, to, "--"}
	switch {
	case from == to:
		return nil, nil
	case from == "" || to == "":
		args = []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", "--end-of-options", from + to}
	}
	for _, commit := range []string{from, to} {
		if commit != "" && !oidGrammar.MatchString(commit) {
			return nil, fmt.Errorf("%q is no full object id", commit)
		}
	}
	out, err := g.run(ctx, call{at: at, config: plainPaths, args: args})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(s string) bool { return s == "" }), nil
}
