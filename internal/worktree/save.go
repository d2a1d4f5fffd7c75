package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// savedRefs is where what a forced removal would lose is kept: below it, the
// worktree's id and a number.
const savedRefs = "refs/wavehub/removed/"

// Save keeps what a removal would lose under refs of the repository: HEAD, the
// branch where it is elsewhere, a commit of the files that are not ignored, and
// one of the index where something is staged. It changes neither the worktree nor
// its index and runs no hook and no filter. What cannot be kept is listed:
// repositories inside, files that cannot be read, what could not be examined. A
// repetition keeps no commit twice that was saved before.
func (g *Git) Save(ctx context.Context, t Tree) (saved []hub.SavedRef, left []hub.Loss, err error) {
	x, err := g.find(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	st, err := x.examine(ctx)
	if err != nil || x.common == "" {
		return nil, st.Losses, err
	}
	k := keeper{x: x, state: st}
	for _, step := range []func(context.Context) error{k.refs, k.files, k.staged} {
		if err := step(ctx); err != nil {
			return nil, nil, err
		}
	}
	return k.saved, k.left, nil
}

// keeper saves what an examination found.
type keeper struct {
	x     *examination
	state hub.TreeState
	saved []hub.SavedRef
	left  []hub.Loss
}

func (k *keeper) refs(ctx context.Context) error {
	if k.state.Head != "" {
		if err := k.keep(ctx, "head", k.state.Head); err != nil {
			return err
		}
	}
	if k.state.Tip == "" || k.state.Tip == k.state.Head {
		return nil
	}
	return k.keep(ctx, "branch", k.state.Tip)
}

// keep gives a commit the next free ref of the worktree, unless it has one.
func (k *keeper) keep(ctx context.Context, of, oid string) error {
	prefix := savedRefs + string(k.x.tree.Worktree) + "/"
	out, err := k.x.git.run(ctx, call{at: k.x.repo, args: []string{"for-each-ref", "--format=%(objectname) %(refname)", prefix}})
	if err != nil {
		return err
	}
	last := 0
	for line := range strings.Lines(out) {
		have, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if have == oid {
			k.saved = append(k.saved, hub.SavedRef{Ref: ref, Commit: oid, Of: of})
			return nil
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(ref, prefix)); err == nil {
			last = max(last, n)
		}
	}
	ref := prefix + strconv.Itoa(last+1)
	err = k.x.git.retry(ctx, call{at: k.x.repo, stdin: "create " + ref + " " + oid + "\n",
		args: []string{"update-ref", "-m", "wavehub: saved before removing " + string(k.x.tree.Worktree), "--stdin"}})
	k.saved = append(k.saved, hub.SavedRef{Ref: ref, Commit: oid, Of: of})
	return err
}

// files saves the folder's contents as a commit on top of HEAD.
func (k *keeper) files(ctx context.Context) error {
	changed := false
	for _, l := range k.state.Losses {
		switch l.Kind {
		case hub.LossModified, hub.LossDeleted, hub.LossUntracked:
			changed = true
		case hub.LossRepository, hub.LossUnknown:
			k.left = append(k.left, l)
		case hub.LossStaged, hub.LossCommit:
		}
	}
	if k.x.index == "" || !changed && k.x.why == "" {
		return nil
	}
	add := k.x.call("add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
	add.stdin = "."
	for _, dir := range k.x.nested {
		add.stdin += "\x00:(exclude,literal)" + dir
	}
	_, err := k.x.git.run(ctx, add)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == 1 {
		k.left = append(k.left, hub.Loss{Kind: hub.LossUnknown, Name: e.Stderr})
	} else if err != nil {
		return err
	}
	return k.commit(ctx, "files", k.x.call("write-tree"))
}

// staged saves the worktree's own index, of which git may note something in its
// file: a copy is used.
func (k *keeper) staged(ctx context.Context) error {
	if !slices.ContainsFunc(k.state.Losses, func(l hub.Loss) bool { return l.Kind == hub.LossStaged }) {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(k.x.at.gitDir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // without an index everything counts as staged for removal
	}
	copied := filepath.Join(k.x.scratch, "staged")
	if err := errors.Join(err, os.WriteFile(copied, raw, 0o600)); err != nil {
		return err
	}
	err = k.commit(ctx, "index", call{at: k.x.at, env: []string{"GIT_INDEX_FILE=" + copied}, args: []string{"write-tree"}})
	if exitedWith(err, 128) {
		k.left = append(k.left, hub.Loss{Kind: hub.LossStaged, Name: "an index with conflicts"})
		return nil
	}
	return err
}

// commit keeps the tree that a command writes as a commit on top of HEAD.
func (k *keeper) commit(ctx context.Context, of string, write call) error {
	tree, err := k.x.git.run(ctx, write)
	if err != nil {
		return err
	}
	args := []string{"commit-tree", strings.TrimSpace(tree), "-m", "wavehub: " + of + " of the worktree " + k.x.tree.Name + " before its removal"}
	if k.state.Head != "" {
		args = append(args, "-p", k.state.Head)
	}
	oid, err := k.x.git.run(ctx, call{at: k.x.repo, args: args, env: []string{"GIT_AUTHOR_NAME=wavehub", "GIT_AUTHOR_EMAIL=wavehub@localhost"}})
	if err != nil {
		return err
	}
	return k.keep(ctx, of, strings.TrimSpace(oid))
}
