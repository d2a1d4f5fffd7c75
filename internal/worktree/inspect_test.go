package worktree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestInspectGit(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, map[string]string{"sub/file": "x"})
	want := Facts{Path: repo, Kind: KindGit, GitDir: filepath.Join(repo, ".git"), Head: gitIn(t, repo, "rev-parse", "HEAD"), Branch: "main"}
	if got := inspect(t, g, repo); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := inspect(t, g, filepath.Join(repo, "sub")); got != want {
		t.Errorf("from below: got %+v, want %+v", got, want)
	}
	gitIn(t, repo, "checkout", "-q", "--detach")
	want.Branch = ""
	if got := inspect(t, g, repo); got != want {
		t.Errorf("detached: got %+v, want %+v", got, want)
	}
}

func TestInspectLinkedWorktree(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, nil)
	linked := filepath.Join(tempDir(t), "linked")
	gitIn(t, repo, "worktree", "add", "-q", "-b", "side", linked)
	got := inspect(t, g, linked)
	if got.Path != linked || got.GitDir != filepath.Join(repo, ".git") || got.Branch != "side" {
		t.Errorf("got %+v", got)
	}
}

func TestInspectFolderLinkAndUnborn(t *testing.T) {
	g, dir := newGit(t, Config{}), tempDir(t)
	if got := inspect(t, g, dir); got != (Facts{Path: dir, Kind: KindFolder}) {
		t.Errorf("folder: %+v", got)
	}
	link := filepath.Join(tempDir(t), "link")
	symlink(t, dir, link)
	if got := inspect(t, g, link); got.Path != dir {
		t.Errorf("link: %+v", got)
	}
	if got := inspect(t, g, emptyRepo(t)); got.Head != "" || got.Branch != "main" || got.Kind != KindGit {
		t.Errorf("unborn: %+v", got)
	}
}

func TestInspectRefuses(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, nil)
	bare := tempDir(t)
	gitIn(t, bare, "init", "-q", "--bare")
	broken := tempDir(t)
	write(t, filepath.Join(broken, ".git"), "gitdir: /nowhere/at/all\n", 0o600)
	paths := []string{"", "relative", `\\server\share`, "//server/share", filepath.Join(repo, "nope"), filepath.Join(repo, "README"),
		filepath.Join(repo, ".git"), bare, broken}
	for _, path := range paths {
		_, err := g.Inspect(t.Context(), path)
		wantCode(t, err, hub.CodeInvalidArgument)
	}
}

func TestInspectForeignOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a repository of another user")
	}
	g, repo := newGit(t, Config{}), newRepo(t, map[string]string{"sub/file": "x"})
	for _, path := range []string{repo, filepath.Join(repo, ".git")} {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	if got := inspect(t, g, repo); got.Kind != KindGit {
		t.Errorf("named by its top: %+v", got)
	}
	_, err := g.Inspect(t.Context(), filepath.Join(repo, "sub"))
	wantCode(t, err, hub.CodeInvalidArgument)
}
