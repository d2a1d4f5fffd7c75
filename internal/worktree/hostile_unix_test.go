//go:build unix

package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// hostileRepo runs marker.sh, which leaves its arguments in the marker file,
// in every way that a repository can ask git for.
func hostileRepo(t *testing.T) (repo, marker string) {
	repo = newRepo(t, map[string]string{".gitattributes": "*.a filter=evil\n*.b filter=a=b\n*.c filter=late\n*.d filter=local\n",
		"x.a": "a\n", "x.b": "b\n", "x.c": "c\n", "x.d": "d\n"})
	marker = filepath.Join(tempDir(t), "marker")
	script := filepath.Join(repo, ".git", "marker.sh")
	write(t, script, "#!/bin/sh\necho \"$0 $*\" >> "+marker+"\ncat\n", 0o755)
	hooks := filepath.Join(repo, ".git", "evil-hooks")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
		for _, dir := range []string{hooks, filepath.Join(repo, ".git", "hooks")} {
			write(t, filepath.Join(dir, hook), "#!/bin/sh\necho "+hook+" >> "+marker+"\n", 0o755)
		}
	}
	late := filepath.Join(repo, ".git", "late")
	write(t, late, fmt.Sprintf("[filter \"late\"]\n\tsmudge = %s late\n\trequired = true\n", script), 0o600)
	config := fmt.Sprintf(`
[core]
	hooksPath = %[2]s
	fsmonitor = %[1]s fsmonitor
	editor = %[1]s editor
	pager = %[1]s pager
	sshCommand = %[1]s ssh
[diff]
	external = %[1]s diff
[filter "evil"]
	smudge = %[1]s smudge
	clean = %[1]s clean
	process = %[1]s process
	required = true
[filter "a=b"]
	smudge = %[1]s odd-name
	required = true
[includeIf "onbranch:wavehub/*"]
	path = %[3]s
[includeIf "gitdir:**/worktrees/**"]
	path = %[3]s
`, script, hooks, late)
	appendTo(t, filepath.Join(repo, ".git", "config"), config)
	return repo, marker
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(old)+text, 0o600)
}

func TestHostileRepositoryRunsNothing(t *testing.T) {
	g := newGit(t, Config{})
	repo, marker := hostileRepo(t)
	facts := inspect(t, g, repo)
	made, err := g.Create(t.Context(), specFor(t, facts, "vet"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.SetupHook(t.Context(), facts, made.BaseCommit); err != nil {
		t.Fatal(err)
	}
	if ran, err := os.ReadFile(marker); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the repository ran: %s (%v)", ran, err)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if text, err := os.ReadFile(filepath.Join(made.Path, "x."+name)); err != nil || string(text) != name+"\n" {
			t.Errorf("x.%s: %q, %v", name, text, err)
		}
	}
}

// A worker that rewrites its worktree's link to a repository of its own, puts
// repositories of its own inside, and configures what the hub will read, has
// nothing of it run when the worktree is looked at, saved or removed.
func TestHostileWorktreeRunsNothing(t *testing.T) {
	g := newGit(t, Config{})
	repo, marker := hostileRepo(t)
	spec := specFor(t, inspect(t, g, repo), "vet")
	made, err := g.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := hostileRepo(t)
	write(t, filepath.Join(made.Path, "x.a"), "changed\n", 0o600)
	write(t, filepath.Join(made.Path, "new.b"), "new\n", 0o600)
	gitIn(t, other, "worktree", "add", "-q", "--no-checkout", "--detach", filepath.Join(tempDir(t), "w"))
	for _, inner := range []string{"nested", "sub/deeper"} {
		dir := filepath.Join(made.Path, filepath.FromSlash(inner))
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		gitIn(t, tempDir(t), "-c", "core.fsmonitor=false", "clone", "-q", "--no-checkout", other, dir)
		raw, err := os.ReadFile(filepath.Join(other, ".git", "config"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, ".git", "config"), string(raw), 0o600)
	}
	write(t, filepath.Join(made.Path, ".git"), "gitdir: "+filepath.Join(other, ".git")+"\n", 0o600)
	appendTo(t, filepath.Join(repo, ".git", "config"), "[extensions]\n\tworktreeConfig = true\n[log]\n\tshowSignature = true\n[gpg]\n\tprogram = /nonexistent\n")
	script := filepath.Join(repo, ".git", "marker.sh")
	write(t, filepath.Join(made.GitDir, "config.worktree"), fmt.Sprintf("[core]\n\tfsmonitor = %[1]s own\n[filter \"evil\"]\n\tclean = %[1]s own\n", script), 0o600)
	if err := os.Remove(marker); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	tree := treeOf(repo, spec)
	st, err := g.Examine(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	wantLosses(t, st.Losses, "modified x.a", "untracked new.b", "repository nested", "repository sub/deeper")
	saved, left, err := g.Save(t.Context(), tree)
	if err != nil || len(saved) != 2 || len(left) != 2 {
		t.Fatalf("saved %+v, left %+v, %v", saved, left, err)
	}
	if text := gitIn(t, repo, "-c", "core.fsmonitor=false", "show", saved[1].Ref+":new.b"); text != "new" {
		t.Errorf("new.b was saved as %q", text)
	}
	if kept, err := g.Remove(t.Context(), tree, st.Tip); err != nil || kept {
		t.Errorf("removing: kept %v, %v", kept, err)
	}
	if _, err := os.Lstat(made.Path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if ran, err := os.ReadFile(marker); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %s (%v)", ran, err)
	}
}

// Without the hardening the same repository does run its programs.
func TestHostileRepositoryIsHostile(t *testing.T) {
	repo, marker := hostileRepo(t)
	cmd := exec.Command("git", "worktree", "add", "-b", "wavehub/control", filepath.Join(tempDir(t), "c"))
	cmd.Dir = repo
	out, err := cmd.CombinedOutput()
	ran, readErr := os.ReadFile(marker)
	if readErr != nil {
		t.Fatalf("nothing ran: %v, %v\n%s", readErr, err, out)
	}
	for _, want := range []string{"process", "reference-transaction"} {
		if !strings.Contains(string(ran), want) {
			t.Errorf("%s did not run: %s", want, ran)
		}
	}
}

// gitThat is a git whose commands pass through a shell fragment first.
func gitThat(t *testing.T, fragment string) string {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(tempDir(t), "git")
	write(t, path, "#!/bin/sh\ngit="+real+"\nstate="+filepath.Dir(path)+"\n"+fragment+"\nexec $git \"$@\"\n", 0o755)
	return path
}

func TestFailureLeavesNothing(t *testing.T) {
	fragments := map[string]string{
		"checkout fails":           `case " $* " in *" reset "*) echo "fatal: no" >&2; exit 128;; esac`,
		"add fails":                `case " $* " in *" worktree add "*) echo "fatal: no" >&2; exit 128;; esac`,
		"add fails afterwards":     `case " $* " in *" worktree add "*) $git "$@"; exit 128;; esac`,
		"branch fails":             `case " $* " in *" --create-reflog "*) echo "fatal: no" >&2; exit 128;; esac`,
		"branch killed afterwards": `case " $* " in *" --create-reflog "*) $git "$@"; kill -9 $$;; esac`,
		"checkout hangs":           `case " $* " in *" reset "*) sleep 60 & wait;; esac`,
	}
	for name, fragment := range fragments {
		t.Run(name, func(t *testing.T) {
			g, repo := newGit(t, Config{Path: gitThat(t, fragment), Timeout: 1500 * time.Millisecond}), newRepo(t, nil)
			spec := specFor(t, inspect(t, g, repo), "vet")
			before := traces(t, repo)
			if _, err := g.Create(t.Context(), spec); err == nil {
				t.Fatal("no error")
			}
			if after := traces(t, repo); after != before {
				t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
			}
			mustBeEmpty(t, filepath.Dir(spec.Path()))
			if _, err := newGit(t, Config{}).Create(t.Context(), spec); err != nil {
				t.Errorf("the name cannot be used again: %v", err)
			}
		})
	}
}

func TestMissingObjectLeavesNothing(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, nil)
	blob := gitIn(t, repo, "rev-parse", "HEAD:README")
	if err := os.Remove(filepath.Join(repo, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	spec := specFor(t, inspect(t, g, repo), "vet")
	before := traces(t, repo)
	if _, err := g.Create(t.Context(), spec); err == nil {
		t.Fatal("no error")
	}
	if after := traces(t, repo); after != before {
		t.Errorf("left behind: %s", after)
	}
	mustBeEmpty(t, filepath.Dir(spec.Path()))
}

func TestCancelledCreateLeavesNothing(t *testing.T) {
	reached := filepath.Join(tempDir(t), "reached")
	mkfifo(t, reached)
	g := newGit(t, Config{Path: gitThat(t, `case " $* " in *" reset "*) echo x > `+reached+`; sleep 60;; esac`)})
	repo := newRepo(t, nil)
	spec := specFor(t, inspect(t, g, repo), "vet")
	before := traces(t, repo)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := g.Create(ctx, spec); done <- err }()
	if _, err := os.ReadFile(reached); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if after := traces(t, repo); after != before {
		t.Errorf("left behind: %s", after)
	}
	mustBeEmpty(t, filepath.Dir(spec.Path()))
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v %s", err, out)
	}
}

func TestContentionIsRetried(t *testing.T) {
	busy := `case " $* " in *" --create-reflog "*|*" worktree add "*)
	n=$(cat $state/n 2>/dev/null || echo 0); echo $((n+1)) > $state/n
	[ $((n%2)) = 0 ] && { echo "fatal: Unable to create '/x.lock': File exists." >&2; exit 128; };; esac`
	g, repo := newGit(t, Config{Path: gitThat(t, busy)}), newRepo(t, nil)
	if _, err := g.Create(t.Context(), specFor(t, inspect(t, g, repo), "vet")); err != nil {
		t.Fatal(err)
	}
}

func TestTimeoutKillsTheGroup(t *testing.T) {
	g := newGit(t, Config{Path: gitThat(t, "sleep 60 & wait"), Timeout: 100 * time.Millisecond})
	began := time.Now()
	_, err := g.Version(t.Context())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took >= drainTime {
		t.Errorf("the grandchild held the pipe for %v", took)
	}
}

func TestOutputCap(t *testing.T) {
	g := newGit(t, Config{Path: gitThat(t, "yes"), OutputCap: 1000})
	if _, err := g.Version(t.Context()); !errors.Is(err, ErrOutputTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestEnvironmentIsClosed(t *testing.T) {
	t.Setenv("WAVEHUB_SECRET", "x")
	t.Setenv("GIT_DIR", "/elsewhere")
	t.Setenv("GIT_EXTERNAL_DIFF", "evil")
	for _, entry := range (call{args: []string{"x"}}).environment() {
		for _, bad := range []string{"WAVEHUB_", "GIT_DIR", "GIT_EXTERNAL_DIFF"} {
			if strings.HasPrefix(entry, bad) {
				t.Errorf("git would see %s", entry)
			}
		}
	}
	wantCode(t, CheckRef("--help"), hub.CodeInvalidArgument)
}

// Looking for changes runs nothing of the repository either.
func TestChangesRunNothingOfTheRepository(t *testing.T) {
	repo, marker := hostileRepo(t)
	script := filepath.Join(repo, ".git", "marker.sh")
	appendTo(t, filepath.Join(repo, ".git", "config"), fmt.Sprintf("[diff \"evil\"]\n\tcommand = %[1]s command\n\ttextconv = %[1]s textconv\n[filter \"evil\"]\n\tclean = %[1]s again\n", script))
	appendTo(t, filepath.Join(repo, ".gitattributes"), "*.a diff=evil\n")
	g := newGit(t, Config{})
	paths := changed(t, g, repo, func() {
		write(t, filepath.Join(repo, "x.a"), "other\n", 0o644)
		write(t, filepath.Join(repo, "y.a"), "new\n", 0o644)
	})
	wants(t, "in a hostile repository", paths, "x.a", "y.a")
	if raw, err := os.ReadFile(marker); err == nil {
		t.Errorf("git ran %s", raw)
	}
}
