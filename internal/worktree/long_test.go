package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Paths beyond the 260 characters that Windows has by default are made, looked
// at and removed.
func TestLongPaths(t *testing.T) {
	g := newGit(t, Config{})
	deep := strings.Repeat("folder-with-a-long-name/", 8) + "file"
	repo := newRepo(t, nil)
	spec := specFor(t, inspect(t, g, repo), strings.Repeat("n", 63))
	spec.Root = filepath.Join(tempDir(t), strings.Repeat("r", 100), "wt")
	if err := os.MkdirAll(filepath.Dir(spec.Root), 0o700); err != nil {
		t.Fatal(err)
	}
	made, err := g.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(made.Path, filepath.FromSlash(deep)), "x", 0o600)
	if len(made.Path)+len(deep) < 400 {
		t.Fatalf("only %d characters", len(made.Path)+len(deep))
	}
	tree := treeOf(repo, spec)
	st := examine(t, g, tree)
	wantLosses(t, st.Losses, "untracked "+deep)
	if saved, left, err := g.Save(t.Context(), tree); err != nil || len(saved) != 2 || len(left) != 0 {
		t.Errorf("saved %+v, left %+v, %v", saved, left, err)
	}
	if kept, err := g.Remove(t.Context(), tree, st.Tip); err != nil || kept {
		t.Errorf("kept %v, %v", kept, err)
	}
	if _, err := os.Lstat(made.Path); !os.IsNotExist(err) {
		t.Error(err)
	}
}
