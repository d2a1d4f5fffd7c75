//go:build unix

package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSalvage cuts a creation off behind each of its commands, as the death of
// its hub does: nothing is cleaned up. What is complete is found, what is not is
// gone, and the name can be used again.
func TestSalvage(t *testing.T) {
	for name, c := range map[string]struct {
		fragment string
		whole    bool
	}{
		"before the branch":   {fragment: `case " $* " in *" --create-reflog "*) exit 99;; esac`},
		"behind the branch":   {fragment: `case " $* " in *" --create-reflog "*) $git "$@"; exit 99;; esac`},
		"behind the add":      {fragment: `case " $* " in *" worktree add "*) $git "$@"; exit 99;; esac`},
		"behind the checkout": {fragment: `case " $* " in *" reset "*) $git "$@"; exit 99;; esac`, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, repo := newGit(t, Config{}), newRepo(t, nil)
			spec := specFor(t, inspect(t, g, repo), "vet").complete()
			before := traces(t, repo)
			dying := newGit(t, Config{Path: gitThat(t, c.fragment)})
			cut, err := dying.prepare(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := cut.build(t.Context()); err == nil {
				t.Fatal("it was not cut off")
			}
			made, ok, err := g.Salvage(t.Context(), spec)
			if err != nil || ok != c.whole {
				t.Fatalf("salvaged %v, %v", ok, err)
			}
			if ok {
				if made.Path != spec.Path() || made.Branch != "wavehub/vet" || made.BaseCommit != spec.Repo.Head {
					t.Errorf("found %+v", made)
				}
				return
			}
			if after := traces(t, repo); after != before {
				t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
			}
			mustBeEmpty(t, filepath.Dir(spec.Path()))
			if _, err := g.Create(t.Context(), spec); err != nil {
				t.Errorf("the name cannot be used again: %v", err)
			}
		})
	}
}

// What is not proven to be of the worktree stays.
func TestSalvageLeavesWhatIsNotOurs(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, nil)
	spec := specFor(t, inspect(t, g, repo), "vet")
	if _, ok, err := g.Salvage(t.Context(), spec); err != nil || ok {
		t.Errorf("of nothing: %v, %v", ok, err)
	}
	gitIn(t, repo, "branch", "wavehub/vet")
	write(t, filepath.Join(spec.Path(), "precious"), "x", 0o600)
	if err := os.Chmod(spec.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	before := traces(t, repo)
	if _, ok, err := g.Salvage(t.Context(), spec); err != nil || ok {
		t.Errorf("of what another made: %v, %v", ok, err)
	}
	if _, err := os.Stat(filepath.Join(spec.Path(), "precious")); err != nil || traces(t, repo) != before {
		t.Errorf("it removed what is not its own: %v, %s", err, traces(t, repo))
	}
}

// A git that outlived its hub is waited for.
func TestSalvageWaitsForALivingGit(t *testing.T) {
	reached := filepath.Join(tempDir(t), "reached")
	proceed := filepath.Join(tempDir(t), "proceed")
	for _, p := range []string{reached, proceed} {
		mkfifo(t, p)
	}
	dying := newGit(t, Config{Path: gitThat(t, `case " $* " in *" reset "*) echo x > `+reached+`; read -r _ < `+proceed+`;; esac`)})
	repo := newRepo(t, nil)
	spec := specFor(t, inspect(t, dying, repo), "vet")
	done := make(chan error, 1)
	go func() { _, err := dying.Create(context.Background(), spec); done <- err }()
	if _, err := os.ReadFile(reached); err != nil {
		t.Fatal(err)
	}
	g := newGit(t, Config{})
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := g.Salvage(soon, spec); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while git is at work: %v", err)
	}
	if err := os.WriteFile(proceed, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := g.Salvage(t.Context(), spec); err != nil || !ok {
		t.Errorf("when it is done: %v, %v", ok, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The repository's hooks run where the user asked for it, and only at the
// checkout.
func TestRepoHooksRunOnRequest(t *testing.T) {
	g := newGit(t, Config{})
	repo, marker := hostileRepo(t)
	spec := specFor(t, inspect(t, g, repo), "vet")
	spec.Hooks = true
	made, err := g.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ran, err := os.ReadFile(marker)
	if err != nil || string(ran) != "post-index-change\npost-checkout\n" {
		t.Errorf("ran %q, %v", ran, err)
	}
	if text, err := os.ReadFile(filepath.Join(made.Path, "x.a")); err != nil || string(text) != "a\n" {
		t.Errorf("x.a: %q, %v", text, err)
	}
}
