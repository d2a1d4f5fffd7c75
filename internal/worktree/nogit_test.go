package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestFoldersNeedNoGit(t *testing.T) {
	repo, dir, bare := newRepo(t, map[string]string{"sub/file": "x"}), tempDir(t), tempDir(t)
	gitIn(t, bare, "init", "-q", "--bare")
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath("git"); err == nil {
		t.Fatal("git is still found")
	}
	g := newGit(t, Config{})
	if got := inspect(t, g, dir); got != (Facts{Path: dir, Kind: KindFolder}) {
		t.Errorf("a folder: %+v", got)
	}
	for _, path := range []string{repo, filepath.Join(repo, "sub"), filepath.Join(repo, ".git", "refs"), bare} {
		_, err := g.Inspect(t.Context(), path)
		wantCode(t, err, hub.CodeCapabilityUnsupported)
	}
	t.Setenv("PATH", path)
	if got := inspect(t, g, repo); got.Kind != KindGit {
		t.Errorf("once git is there: %+v", got)
	}
}
