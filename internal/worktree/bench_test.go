package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// BenchmarkCreateAgainstPlainGit makes worktrees of a repository with 10 000
// files and reports, as x-git, how much longer that takes than git worktree add
// does, alternating within the run. The target is under 1.3.
func BenchmarkCreateAgainstPlainGit(b *testing.B) {
	repo := manyFiles(b, 10_000)
	g, err := NewGit(Config{})
	if err != nil {
		b.Fatal(err)
	}
	facts, err := g.Inspect(b.Context(), repo)
	if err != nil {
		b.Fatal(err)
	}
	root, plainRoot := b.TempDir(), b.TempDir()
	spec := CreateSpec{Repo: facts, Root: filepath.Join(root, "wt"), RepoID: hub.NewRepoID()}
	var ours, plain time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		cmd := exec.Command("git", "worktree", "add", "-q", "-b", fmt.Sprintf("plain-%d", i), filepath.Join(plainRoot, fmt.Sprint(i)))
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		between := time.Now()
		spec.Name, spec.Worktree = fmt.Sprintf("w%d", i), hub.NewWorktreeID()
		if _, err := g.Create(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
		plain, ours = plain+between.Sub(began), ours+time.Since(between)
	}
	b.ReportMetric(float64(ours)/float64(plain), "x-git")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms-ours")
	b.ReportMetric(float64(plain.Milliseconds())/float64(b.N), "ms-git")
}

// manyFiles is a repository with one commit of n small files.
func manyFiles(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	for i := range n {
		folder := filepath.Join(dir, fmt.Sprintf("d%d", i/100))
		if i%100 == 0 {
			if err := os.Mkdir(folder, 0o700); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%d.txt", i)), fmt.Appendf(nil, "file %d\n", i), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	return dir
}
