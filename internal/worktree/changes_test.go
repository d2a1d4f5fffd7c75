package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// changed takes a snapshot, lets something happen and returns what was changed.
func changed(t *testing.T, g *Git, dir string, happen func()) []string {
	t.Helper()
	base, err := g.Snapshot(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	happen()
	paths, replaced, err := g.Changes(t.Context(), dir, base)
	if err != nil || replaced {
		t.Fatalf("replaced %v, %v", replaced, err)
	}
	return paths
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestAcceptance_V14_ChangesAreSeen(t *testing.T) {
	g := newGit(t, Config{})
	repo := newRepo(t, map[string]string{"src/a.go": "a\n", "old.txt": "same text, long enough to be found as a rename\n", "gone.txt": "x\n", "kept.txt": "k\n", ".gitignore": "*.log\n"})
	at := func(name string) string { return filepath.Join(repo, filepath.FromSlash(name)) }
	wants(t, "nothing", changed(t, g, repo, func() {}))
	wants(t, "in the files", changed(t, g, repo, func() {
		write(t, at("src/a.go"), "b\n", 0o644)
		write(t, at("src/deep/new.go"), "n\n", 0o644)
		write(t, at("noise.log"), "ignored\n", 0o644)
		write(t, at("odd \"näme\n.txt"), "odd\n", 0o644)
		remove(t, at("gone.txt"))
		gitIn(t, repo, "mv", "old.txt", "renamed.txt")
	}), "gone.txt", "odd \"näme\n.txt", "old.txt", "renamed.txt", "src/a.go", "src/deep/new.go")
	gitIn(t, repo, "add", "-A")
	gitIn(t, repo, "commit", "-q", "-m", "second")
	wants(t, "in commits", changed(t, g, repo, func() {
		gitIn(t, repo, "mv", "renamed.txt", "again.txt")
		gitIn(t, repo, "commit", "-q", "-m", "third")
		gitIn(t, repo, "checkout", "-q", "-b", "elsewhere")
		write(t, at("kept.txt"), "other\n", 0o644)
	}), "again.txt", "kept.txt", "renamed.txt")
	wants(t, "hidden by a file of the repository", changed(t, g, repo, func() {
		write(t, at(".git/ignore"), "*\n", 0o644)
		gitIn(t, repo, "config", "core.excludesFile", at(".git/ignore"))
		write(t, at("secret.txt"), "s\n", 0o644)
	}), "secret.txt")
}

// What was dirty before counts only if it was touched.
func TestChangesOfWhatWasDirty(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, map[string]string{"a": "1\n", "b": "1\n", "c": "1\n", "d": "1\n"})
	at := func(name string) string { return filepath.Join(repo, name) }
	for _, name := range []string{"a", "b", "c", "new", "left"} {
		write(t, at(name), "dirty\n", 0o644)
	}
	remove(t, at("d"))
	wants(t, "touched", changed(t, g, repo, func() {
		write(t, at("a"), "dirty\n", 0o644) // the same again
		write(t, at("new"), "other\n", 0o644)
		gitIn(t, repo, "checkout", "-q", "--", "b") // as it was committed
		gitIn(t, repo, "add", "c")
		gitIn(t, repo, "commit", "-q", "-m", "as it was")
		remove(t, at("left"))
	}), "b", "left", "new")
}

func TestChangesBelowAndUnborn(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, map[string]string{"sub/a": "1\n"})
	sub := filepath.Join(repo, "sub")
	wants(t, "from a folder below", changed(t, g, sub, func() { write(t, filepath.Join(repo, "top"), "x", 0o644) }), "top")
	unborn := emptyRepo(t)
	wants(t, "a first commit", changed(t, g, unborn, func() {
		write(t, filepath.Join(unborn, "first"), "x", 0o644)
		gitIn(t, unborn, "add", "-A")
		gitIn(t, unborn, "commit", "-q", "-m", "first")
	}), "first")
	wants(t, "a branch without commits", changed(t, g, unborn, func() {
		gitIn(t, unborn, "checkout", "-q", "--orphan", "empty")
		gitIn(t, unborn, "rm", "-q", "-r", "--cached", ".")
		remove(t, filepath.Join(unborn, "first"))
	}), "first")
}

func TestChangesWithoutTheRepository(t *testing.T) {
	g, repo, folder := newGit(t, Config{}), newRepo(t, nil), tempDir(t)
	if b, err := g.Snapshot(t.Context(), folder); err != nil || b.Root != "" {
		t.Errorf("a folder: %+v %v", b, err)
	}
	base, err := g.Snapshot(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, filepath.Join(repo, ".git"))
	if _, replaced, err := g.Changes(t.Context(), repo, base); err != nil || !replaced {
		t.Errorf("without its repository: %v %v", replaced, err)
	}
	remove(t, repo)
	if _, replaced, err := g.Changes(t.Context(), repo, base); err != nil || !replaced {
		t.Errorf("without itself: %v %v", replaced, err)
	}
	base.Head = "--output=/x"
	other := newRepo(t, nil)
	base.Root, base.GitDir = other, filepath.Join(other, ".git")
	if _, _, err := g.Changes(t.Context(), other, base); err == nil {
		t.Error("an option was taken for a commit")
	}
}

func TestSnapshotIsBounded(t *testing.T) {
	repo := newRepo(t, nil)
	for i := range 40 {
		write(t, filepath.Join(repo, strings.Repeat("x", 20)+string(rune('a'+i%26))+strings.Repeat("y", i)), "", 0o644)
	}
	if _, err := newGit(t, Config{OutputCap: 500}).Snapshot(t.Context(), repo); err == nil {
		t.Error("more was read than is allowed")
	}
}

func TestHandoff(t *testing.T) {
	dir, outside := tempDir(t), tempDir(t)
	write(t, filepath.Join(outside, "secret"), "s", 0o600)
	write(t, filepath.Join(dir, "notes", "a.md"), "hello\n", 0o644)
	for link, to := range map[string]string{"in": filepath.Join("notes", "a.md"), "out": filepath.Join(outside, "secret"), "up": filepath.Join("..", filepath.Base(outside), "secret")} {
		symlink(t, to, filepath.Join(dir, link))
	}
	sum := sumOf([]byte("hello\n"))
	for path, want := range map[string]bool{"notes/a.md": true, "in": true, "out": false, "up": false, "notes": false, "none": false, "notes/a.md/x": false} {
		h, err := Handoff(dir, path)
		if err != nil || h.Present != want || want && (h.Bytes != 6 || h.SHA256 != sum) {
			t.Errorf("%s: %+v %v", path, h, err)
		}
	}
	if h, err := Handoff(filepath.Join(dir, "gone"), "a"); err != nil || h.Present {
		t.Errorf("a folder that is gone: %+v %v", h, err)
	}
	big, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(maxHandoff+1), big.Close()); err != nil {
		t.Fatal(err)
	}
	if h, err := Handoff(dir, "big"); err != nil || !h.Present || h.Bytes != maxHandoff+1 || h.SHA256 != "" {
		t.Errorf("a large file: %+v %v", h, err)
	}
}

// TestChangesThatGitIsToldToHide: neither flags of the index nor lists of ignored
// files that were made meanwhile hide a change.
func TestChangesThatGitIsToldToHide(t *testing.T) {
	g := newGit(t, Config{})
	repo := newRepo(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n", ".gitignore": "*.log\n"})
	at := func(name string) string { return filepath.Join(repo, filepath.FromSlash(name)) }
	wants(t, "flags of the index", changed(t, g, repo, func() {
		gitIn(t, repo, "update-index", "--skip-worktree", "a.txt")
		gitIn(t, repo, "update-index", "--assume-unchanged", "b.txt")
		write(t, at("a.txt"), "other\n", 0o644)
		write(t, at("b.txt"), "other\n", 0o644)
	}), "a.txt", "b.txt")
	write(t, at("before"), "x", 0o644)
	wants(t, "a list that ignores itself", changed(t, g, repo, func() {
		write(t, at("sub/.gitignore"), "*\n", 0o644)
		write(t, at("sub/hidden"), "x", 0o644)
	}), "sub/.gitignore")
	wants(t, "the repository's own list", changed(t, g, repo, func() {
		write(t, at(".git/info/exclude"), "out\n", 0o644)
		write(t, at("out"), "x", 0o644)
		write(t, at("noise.log"), "x", 0o644)
	}), "out")
	wants(t, "nothing, with that list", changed(t, g, repo, func() {}))
}
