package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxCommits bounds the commits that are listed of a worktree.
const maxCommits = 100

// maxNested bounds the repositories inside a worktree that are looked at one by
// one; further ones count as something to lose.
const maxNested = 500

// Examine looks at a worktree and lists what its removal would lose: changed,
// deleted, staged and untracked files that are not ignored, repositories inside
// of it, and commits on its branch or HEAD that no other branch, tag or remote
// branch has. It compares contents and not what git has noted about files, and
// changes nothing. Of what cannot be examined it says so; that counts as
// something to lose. Git is given the worktree's own git directory, found by the
// id: what the worktree's link says does not matter.
func (g *Git) Examine(ctx context.Context, t Tree) (st hub.TreeState, err error) {
	x, err := g.find(ctx, t)
	if err != nil {
		return hub.TreeState{}, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	return x.examine(ctx)
}

// examination is a worktree that is being looked at.
type examination struct {
	git     *Git
	tree    Tree
	path    string // "" when there is no folder
	common  string // "" when the repository is gone
	repo    record
	at      record // gitDir is "" when git has no record of it
	scratch string // a private folder for index files
	off     []setting
	index   string   // of what HEAD holds, without notes about files
	nested  []string // repositories inside, relative and with slashes
	linked  []string // those of them that HEAD has as submodules
	why     string   // what cannot be examined, "" for nothing
}

// find looks for the worktree. A repository that is gone is no error.
func (g *Git) find(ctx context.Context, t Tree) (*examination, error) {
	x := &examination{git: g, tree: t}
	path, err := t.spec().finalPath()
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Lstat(path); err == nil && !info.IsDir() {
			x.why = "it is no folder any more"
		} else if err == nil {
			x.path = path
		}
	}
	if err := ignoreMissing(err); err != nil {
		return nil, err
	}
	facts, at, err := g.inspect(ctx, t.Repo)
	if hub.IsCode(err, hub.CodeInvalidArgument) || err == nil && facts.Kind != KindGit {
		x.why = "its repository is gone"
		return x, nil
	}
	if err != nil {
		return nil, err
	}
	x.common, x.repo = facts.GitDir, at
	found, err := findEntries(x.common, t.Worktree, path)
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		x.at = record{gitDir: found[0].dir, workTree: path}
	} else if x.path != "" {
		x.why = "git has no record of it"
	}
	return x, nil
}

func (x *examination) close() error {
	if x.scratch == "" {
		return nil
	}
	return os.RemoveAll(x.scratch)
}

func (x *examination) examine(ctx context.Context) (hub.TreeState, error) {
	st := hub.TreeState{Present: x.path != ""}
	if x.at.gitDir != "" {
		if err := x.refs(ctx, &st); err != nil {
			return st, err
		}
	}
	if x.path != "" && x.why == "" {
		if err := x.files(ctx, &st); err != nil {
			return st, err
		}
	}
	if x.why != "" && (x.path != "" || x.common != "") {
		st.Losses = append(st.Losses, hub.Loss{Kind: hub.LossUnknown, Name: x.why})
	}
	return st, nil
}

// refs finds out where the worktree stands and which commits only it has.
func (x *examination) refs(ctx context.Context, st *hub.TreeState) (err error) {
	if st.Head, err = x.git.head(ctx, x.at); err != nil {
		return err
	}
	if st.Branch, err = x.git.branch(ctx, x.at); err != nil {
		return err
	}
	if st.Tip, err = x.git.lookUp(ctx, x.repo, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+x.tree.Branch+"^{commit}"); err != nil {
		return err
	}
	commits, err := x.commits(ctx, st.Head, st.Tip)
	st.Losses = append(st.Losses, commits...)
	return err
}

func (x *examination) commits(ctx context.Context, starts ...string) ([]hub.Loss, error) {
	starts = slices.DeleteFunc(starts, func(oid string) bool { return oid == "" })
	if len(starts) == 0 {
		return nil, nil
	}
	args := append([]string{"rev-list", "--max-count=" + itoa(maxCommits)}, starts...)
	args = append(args, "--not", "--exclude="+x.tree.Branch, "--branches", "--tags", "--remotes")
	out, err := x.git.run(ctx, call{at: x.repo, args: args})
	var losses []hub.Loss
	for oid := range strings.FieldsSeq(out) {
		losses = append(losses, hub.Loss{Kind: hub.LossCommit, Name: oid})
	}
	return losses, err
}

// files compares the folder with HEAD.
func (x *examination) files(ctx context.Context, st *hub.TreeState) error {
	if err := x.prepare(ctx, st.Head); err != nil {
		return err
	}
	out, err := x.git.run(ctx, x.call("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames"))
	if errors.Is(err, ErrOutputTooLarge) {
		x.why = "it has more changes than can be listed"
		return nil
	}
	if err != nil {
		return err
	}
	losses := statusLosses(out)
	staged, err := x.staged(ctx, st.Head)
	if err != nil {
		return err
	}
	losses = append(losses, staged...)
	for _, dir := range x.linked {
		losses = append(losses, hub.Loss{Kind: hub.LossRepository, Name: dir})
	}
	st.Losses = append(st.Losses, distinct(losses)...)
	return nil
}

// call is a command on the worktree whose index is what HEAD holds.
func (x *examination) call(args ...string) call {
	return call{at: x.at, config: x.off, env: []string{"GIT_INDEX_FILE=" + x.index}, args: args}
}

// indexOf makes an index of what a commit holds, "" for nothing, in a private
// folder, which is the caller's to remove. It is no worktree's own: nothing that
// git was told of single files there counts in it.
func (g *Git) indexOf(ctx context.Context, at record, commit string) (scratch, index string, err error) {
	if scratch, err = os.MkdirTemp("", "wavehub-index-"); err != nil {
		return "", "", err
	}
	index = filepath.Join(scratch, "head")
	if commit != "" {
		_, err = g.run(ctx, call{at: at, env: []string{"GIT_INDEX_FILE=" + index}, args: []string{"read-tree", commit}})
	}
	if err != nil {
		return "", "", errors.Join(err, os.RemoveAll(scratch))
	}
	return scratch, index, nil
}

// prepare makes the index and looks for filters and repositories inside.
func (x *examination) prepare(ctx context.Context, head string) (err error) {
	if x.off, err = x.git.filtersOff(ctx, x.at); err != nil {
		return err
	}
	if x.scratch, x.index, err = x.git.indexOf(ctx, x.at, head); err != nil {
		return err
	}
	if x.nested, err = nestedIn(ctx, x.path); err != nil {
		return err
	}
	x.linked, err = x.submodules(ctx)
	return err
}

// nestedIn finds the repositories inside a folder. It follows no links.
func nestedIn(ctx context.Context, path string) (found []string, err error) {
	err = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		dir := filepath.Dir(at)
		if strings.EqualFold(d.Name(), ".git") && dir != path && at != path {
			rel, err := filepath.Rel(path, dir)
			if err != nil {
				return err
			}
			found = append(found, filepath.ToSlash(rel))
		}
		return ctx.Err()
	})
	return found, err
}

// submodules are the repositories inside that HEAD knows, and those that there
// are too many of to look at. The others are untracked, or ignored.
func (x *examination) submodules(ctx context.Context) ([]string, error) {
	if len(x.nested) == 0 {
		return nil, nil
	}
	look := x.nested[:min(len(x.nested), maxNested)]
	c := x.call(append([]string{"ls-files", "--stage", "-z", "--"}, look...)...)
	c.env = append(c.env, "GIT_LITERAL_PATHSPECS=1")
	out, err := x.git.run(ctx, c)
	found := slices.Clone(x.nested[len(look):])
	for line := range strings.SplitSeq(out, "\x00") {
		if info, name, ok := strings.Cut(line, "\t"); ok && strings.HasPrefix(info, "160000 ") {
			found = append(found, name)
		}
	}
	return found, err
}

// statusLosses reads git status --porcelain=v1 -z without renames.
func statusLosses(out string) (losses []hub.Loss) {
	for line := range strings.SplitSeq(out, "\x00") {
		if len(line) < 4 {
			continue
		}
		kind, name := hub.LossModified, line[3:]
		switch {
		case line[:2] == "??" && strings.HasSuffix(name, "/"):
			kind, name = hub.LossRepository, strings.TrimSuffix(name, "/")
		case line[:2] == "??":
			kind = hub.LossUntracked
		case strings.Contains(line[:2], "D"):
			kind = hub.LossDeleted
		}
		losses = append(losses, hub.Loss{Kind: kind, Name: name})
	}
	return losses
}

// staged lists what the worktree's own index holds and HEAD does not.
func (x *examination) staged(ctx context.Context, head string) ([]hub.Loss, error) {
	if head == "" {
		return nil, nil // all that is staged is untracked to the index of HEAD
	}
	out, err := x.git.run(ctx, call{at: x.at, args: []string{"diff-index", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", head, "--"}})
	if errors.Is(err, ErrOutputTooLarge) {
		x.why = "it has more staged changes than can be listed"
		return nil, nil
	}
	var losses []hub.Loss
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" {
			losses = append(losses, hub.Loss{Kind: hub.LossStaged, Name: name})
		}
	}
	return losses, err
}

// distinct keeps each loss once, in the order of names.
func distinct(losses []hub.Loss) []hub.Loss {
	slices.SortStableFunc(losses, func(a, b hub.Loss) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(losses)
}
