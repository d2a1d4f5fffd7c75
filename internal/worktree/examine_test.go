package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func treeOf(repo string, spec CreateSpec) Tree {
	return Tree{Repo: repo, Root: spec.Root, RepoID: spec.RepoID, Worktree: spec.Worktree, Name: spec.Name, Branch: BranchPrefix + spec.Name}
}

// made is a repository with one worktree.
func made(t *testing.T, g *Git, files map[string]string) (repo, path string, tree Tree) {
	t.Helper()
	repo = newRepo(t, files)
	spec := specFor(t, inspect(t, g, repo), "vet")
	w, err := g.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return repo, w.Path, treeOf(repo, spec)
}

func wantLosses(t *testing.T, got []hub.Loss, want ...string) {
	t.Helper()
	var have []string
	for _, l := range got {
		have = append(have, string(l.Kind)+" "+l.Name)
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("would be lost: %q, want %q", have, want)
	}
}

func examine(t *testing.T, g *Git, tree Tree) hub.TreeState {
	t.Helper()
	st, err := g.Examine(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestExamine(t *testing.T) {
	g := newGit(t, Config{})
	for name, c := range map[string]struct {
		do   func(t *testing.T, repo, path string)
		want []string
	}{
		"nothing": {func(*testing.T, string, string) {}, nil},
		"ignored": {func(t *testing.T, _, path string) { write(t, filepath.Join(path, "out", "x.o"), "x", 0o600) }, nil},
		"untracked": {func(t *testing.T, _, path string) {
			write(t, filepath.Join(path, "new dir", "ü\"x"), "x", 0o600)
		}, []string{"untracked new dir/ü\"x"}},
		"modified": {func(t *testing.T, _, path string) { write(t, filepath.Join(path, "README"), "hellO\n", 0o600) }, []string{"modified README"}},
		"deleted":  {func(t *testing.T, _, path string) { remove(t, filepath.Join(path, "README")) }, []string{"deleted README"}},
		"hidden from git": {func(t *testing.T, _, path string) {
			gitIn(t, path, "update-index", "--assume-unchanged", "README")
			gitIn(t, path, "update-index", "--skip-worktree", "b.txt")
			write(t, filepath.Join(path, "README"), "changed\n", 0o600)
			write(t, filepath.Join(path, "b.txt"), "changed\n", 0o600)
		}, []string{"modified README", "modified b.txt"}},
		"staged only": {func(t *testing.T, _, path string) {
			write(t, filepath.Join(path, "README"), "staged\n", 0o600)
			gitIn(t, path, "add", "README")
			write(t, filepath.Join(path, "README"), "hello\n", 0o600)
		}, []string{"staged README"}},
		"nested": {func(t *testing.T, _, path string) {
			gitIn(t, path, "init", "-q", "inner")
			gitIn(t, path, "init", "-q", "out/ignored")
		}, []string{"repository inner"}},
		"pushed": {func(t *testing.T, repo, path string) {
			gitIn(t, path, "commit", "-q", "--allow-empty", "-m", "pushed")
			gitIn(t, repo, "update-ref", "refs/remotes/origin/x", "wavehub/vet")
		}, nil},
		"tagged": {func(t *testing.T, _, path string) {
			gitIn(t, path, "commit", "-q", "--allow-empty", "-m", "tagged")
			gitIn(t, path, "tag", "keep")
		}, nil},
		"on another branch": {func(t *testing.T, _, path string) {
			gitIn(t, path, "switch", "-q", "-c", "other")
			gitIn(t, path, "commit", "-q", "--allow-empty", "-m", "other")
		}, nil},
	} {
		repo, path, tree := made(t, g, map[string]string{".gitignore": "out/\n", "b.txt": "b\n"})
		c.do(t, repo, path)
		t.Run(name, func(t *testing.T) {
			if st := examine(t, g, tree); !st.Present {
				t.Error("it is not there")
			} else {
				wantLosses(t, st.Losses, c.want...)
			}
		})
	}
}

func TestExamineCommits(t *testing.T) {
	g := newGit(t, Config{})
	_, path, tree := made(t, g, nil)
	gitIn(t, path, "commit", "-q", "--allow-empty", "-m", "one")
	one := gitIn(t, path, "rev-parse", "HEAD")
	gitIn(t, path, "checkout", "-q", "--detach")
	gitIn(t, path, "commit", "-q", "--allow-empty", "-m", "two")
	two := gitIn(t, path, "rev-parse", "HEAD")
	st := examine(t, g, tree)
	wantLosses(t, st.Losses, "commit "+one, "commit "+two)
	if st.Head != two || st.Tip != one || st.Branch != "" {
		t.Errorf("it stands at %+v", st)
	}
}

// What cannot be looked at counts as something to lose.
func TestExamineWhatIsGone(t *testing.T) {
	g := newGit(t, Config{})
	_, path, tree := made(t, g, nil)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if st := examine(t, g, tree); st.Present || len(st.Losses) != 0 {
		t.Errorf("without a folder: %+v", st)
	}
	repo, _, tree := made(t, g, nil)
	if err := os.RemoveAll(filepath.Join(repo, ".git", "worktrees")); err != nil {
		t.Fatal(err)
	}
	wantLosses(t, examine(t, g, tree).Losses, "unknown git has no record of it")
	repo, path, tree = made(t, g, nil)
	if err := os.RemoveAll(repo); err != nil {
		t.Fatal(err)
	}
	wantLosses(t, examine(t, g, tree).Losses, "unknown its repository is gone")
	if kept, err := g.Remove(t.Context(), tree, ""); err != nil || kept {
		t.Errorf("kept %v, %v", kept, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestSaveAndRemove(t *testing.T) {
	g := newGit(t, Config{})
	repo, path, tree := made(t, g, map[string]string{"b.txt": "b\n", "c.txt": "c\n"})
	gitIn(t, path, "commit", "-q", "--allow-empty", "-m", "one")
	write(t, filepath.Join(path, "README"), "staged\n", 0o600)
	gitIn(t, path, "add", "README")
	write(t, filepath.Join(path, "README"), "then changed\n", 0o600)
	write(t, filepath.Join(path, "new"), "new\n", 0o600)
	remove(t, filepath.Join(path, "c.txt"))
	before := gitIn(t, path, "status", "--porcelain")
	saved, left, err := g.Save(t.Context(), tree)
	if err != nil || len(left) != 0 || len(saved) != 3 {
		t.Fatalf("%+v %+v %v", saved, left, err)
	}
	for i, of := range []string{"head", "files", "index"} {
		if saved[i].Of != of || saved[i].Ref != savedRefs+string(tree.Worktree)+"/"+itoa(i+1) {
			t.Errorf("saved %+v", saved[i])
		}
	}
	files, index := saved[1].Ref, saved[2].Ref
	if text := gitIn(t, repo, "show", files+":README") + gitIn(t, repo, "show", files+":new") + gitIn(t, repo, "show", index+":README"); text != "then changednewstaged" {
		t.Errorf("saved: %q", text)
	}
	if gone := gitIn(t, repo, "ls-tree", "--name-only", files); strings.Contains(gone, "c.txt") {
		t.Errorf("the deleted file is saved: %s", gone)
	}
	if after := gitIn(t, path, "status", "--porcelain"); after != before {
		t.Errorf("saving changed the worktree from %q to %q", before, after)
	}
	again, _, err := g.Save(t.Context(), tree)
	if err != nil || again[0] != saved[0] {
		t.Errorf("saved again: %+v %v", again, err)
	}
	st := examine(t, g, tree)
	if kept, err := g.Remove(t.Context(), tree, st.Tip); err != nil || kept {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if left := gitIn(t, repo, "branch", "--list", "wavehub/*") + gitIn(t, repo, "worktree", "list", "--porcelain"); strings.Contains(left, "vet") {
		t.Errorf("left behind: %s", left)
	}
	if _, err := g.Remove(t.Context(), tree, st.Tip); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
	if head := gitIn(t, repo, "rev-parse", saved[0].Ref); head != st.Head {
		t.Errorf("HEAD was saved as %s", head)
	}
}

func TestRemoveKeepsABranchThatIsNotOurs(t *testing.T) {
	g := newGit(t, Config{})
	_, path, tree := made(t, g, nil)
	tip := gitIn(t, path, "rev-parse", "HEAD")
	gitIn(t, path, "commit", "-q", "--allow-empty", "-m", "later")
	if kept, err := g.Remove(t.Context(), tree, tip); err != nil || !kept {
		t.Errorf("a branch that moved: kept %v, %v", kept, err)
	}
	repo, path, tree := made(t, g, nil)
	tip = gitIn(t, path, "rev-parse", "HEAD")
	gitIn(t, path, "checkout", "-q", "--detach")
	gitIn(t, repo, "worktree", "add", "-q", filepath.Join(tempDir(t), "elsewhere"), "wavehub/vet")
	if kept, err := g.Remove(t.Context(), tree, tip); err != nil || !kept {
		t.Errorf("a branch that is checked out elsewhere: kept %v, %v", kept, err)
	}
}

// A folder that was replaced by a link, or lies in one, loses nothing behind it.
func TestRemoveFollowsNoLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	g := newGit(t, Config{})
	precious := filepath.Join(tempDir(t), "precious")
	write(t, filepath.Join(precious, "file"), "x", 0o600)
	_, path, tree := made(t, g, nil)
	if err := errors.Join(os.Symlink(precious, filepath.Join(path, "inside")), os.RemoveAll(filepath.Join(path, ".git"))); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Remove(t.Context(), tree, ""); err != nil {
		t.Error(err)
	}
	_, path, tree = made(t, g, nil)
	if err := errors.Join(os.RemoveAll(path), os.Symlink(precious, path)); err != nil {
		t.Fatal(err)
	}
	wantLosses(t, examine(t, g, tree).Losses, "unknown it is no folder any more")
	if _, err := g.Remove(t.Context(), tree, ""); err != nil {
		t.Error(err)
	}
	_, path, tree = made(t, g, nil)
	folder := filepath.Dir(path)
	write(t, filepath.Join(precious, "vet", "file"), "x", 0o600)
	if err := errors.Join(os.RemoveAll(folder), os.Symlink(precious, folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Remove(t.Context(), tree, ""); err == nil {
		t.Error("it was removed through a link")
	}
	for _, name := range []string{"file", "vet/file"} {
		if _, err := os.Stat(filepath.Join(precious, filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
}

func TestRemoveReadOnlyFolders(t *testing.T) {
	g := newGit(t, Config{})
	_, path, tree := made(t, g, map[string]string{".gitignore": "cache/\n"})
	dir := filepath.Join(path, "cache", "mod")
	write(t, filepath.Join(dir, "file"), "x", 0o400)
	if err := errors.Join(os.Chmod(dir, 0o500), os.Chmod(filepath.Dir(dir), 0o500)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Remove(t.Context(), tree, ""); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
