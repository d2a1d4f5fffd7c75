package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func newGit(t *testing.T, cfg Config) *Git {
	t.Helper()
	g, err := NewGit(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git is installed here")
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// symlink makes a link, or skips the test where Windows, or wine, makes none.
func symlink(t *testing.T, to, link string) {
	t.Helper()
	err := os.Symlink(to, link)
	if _, lerr := os.Lstat(link); runtime.GOOS == "windows" && (err != nil || lerr != nil) {
		t.Skipf("no link can be made here: %v, %v", err, lerr)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func emptyRepo(t *testing.T) string {
	t.Helper()
	dir := tempDir(t)
	gitIn(t, dir, "init", "-q", "-b", "main")
	return dir
}

func newRepo(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := emptyRepo(t)
	write(t, filepath.Join(dir, "README"), "hello\n", 0o644)
	for name, text := range files {
		write(t, filepath.Join(dir, name), text, 0o644)
	}
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "-m", "first")
	return dir
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func inspect(t *testing.T, g *Git, path string) Facts {
	t.Helper()
	facts, err := g.Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func specFor(t *testing.T, facts Facts, name string) CreateSpec {
	t.Helper()
	return CreateSpec{Repo: facts, Root: filepath.Join(tempDir(t), "wt"), RepoID: hub.NewRepoID(), Worktree: hub.NewWorktreeID(), Name: name}
}

func wantCode(t *testing.T, err error, code hub.Code) {
	t.Helper()
	if !hub.IsCode(err, code) {
		t.Errorf("got %v (%s), want %s", err, hub.CodeOf(err), code)
	}
}

// traces lists what a creation could have left in a repository.
func traces(t *testing.T, repo string) string {
	t.Helper()
	return gitIn(t, repo, "for-each-ref", "--format=%(refname) %(objectname)") + "\n" + gitIn(t, repo, "worktree", "list", "--porcelain")
}

func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if len(entries) != 0 {
		t.Errorf("%s holds %v", dir, entries)
	}
}
