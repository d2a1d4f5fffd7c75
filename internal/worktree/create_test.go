package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestCreate(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, nil)
	facts := inspect(t, g, repo)
	spec := specFor(t, facts, "vet")
	made, err := g.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Free(t.Context(), spec); !hub.IsCode(err, hub.CodeNameTaken) {
		t.Errorf("its name is free: %v", err)
	}
	if err := g.Free(t.Context(), specFor(t, facts, "another")); err != nil {
		t.Errorf("another name is taken: %v", err)
	}
	if made.Path != spec.Path() || made.Branch != "wavehub/vet" || made.BaseCommit != facts.Head {
		t.Errorf("made %+v", made)
	}
	got := inspect(t, g, made.Path)
	if got.GitDir != facts.GitDir || got.Branch != made.Branch || got.Head != facts.Head {
		t.Errorf("the worktree is %+v", got)
	}
	if text, err := os.ReadFile(filepath.Join(made.Path, "README")); err != nil || string(text) != "hello\n" {
		t.Errorf("README: %q, %v", text, err)
	}
	if status := gitIn(t, made.Path, "status", "--porcelain"); status != "" {
		t.Errorf("the new worktree is not clean: %s", status)
	}
	if list := gitIn(t, repo, "worktree", "list", "--porcelain"); !strings.Contains(list, "locked "+string(spec.Worktree)) {
		t.Errorf("no lock with the id: %s", list)
	}
	if made.GitDir != gitIn(t, made.Path, "rev-parse", "--absolute-git-dir") {
		t.Errorf("git directory %s", made.GitDir)
	}
}

func TestCreateFromBaseAndLinkedWorktree(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, nil)
	first := gitIn(t, repo, "rev-parse", "HEAD")
	gitIn(t, repo, "commit", "-q", "--allow-empty", "-m", "second")
	facts := inspect(t, g, repo)
	spec := specFor(t, facts, "old")
	spec.Base, spec.Branch = first[:10], "topic/old"
	made, err := g.Create(t.Context(), spec)
	if err != nil || made.BaseCommit != first || made.Branch != "topic/old" {
		t.Fatalf("made %+v, %v", made, err)
	}
	child := specFor(t, inspect(t, g, made.Path), "child")
	inner, err := g.Create(t.Context(), child)
	if err != nil || inner.BaseCommit != first {
		t.Errorf("from the linked worktree's HEAD: %+v, %v", inner, err)
	}
}

func TestCreateRefusesBeforeEffects(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, nil)
	gitIn(t, repo, "branch", "wavehub/taken")
	gitIn(t, repo, "branch", "wavehub/deep/er")
	gitIn(t, repo, "branch", "plain")
	good := specFor(t, inspect(t, g, repo), "vet")
	cases := map[string]struct {
		change func(*CreateSpec)
		code   hub.Code
	}{
		"folder":        {func(s *CreateSpec) { s.Repo = Facts{Path: repo, Kind: KindFolder} }, hub.CodeInvalidArgument},
		"name":          {func(s *CreateSpec) { s.Name = "../x" }, hub.CodeInvalidArgument},
		"option":        {func(s *CreateSpec) { s.Base = "--upload-pack=x" }, hub.CodeInvalidArgument},
		"no such base":  {func(s *CreateSpec) { s.Base = "nope" }, hub.CodeInvalidArgument},
		"no such id":    {func(s *CreateSpec) { s.Base = strings.Repeat("ab", 20) }, hub.CodeInvalidArgument},
		"branch option": {func(s *CreateSpec) { s.Branch = "-D" }, hub.CodeInvalidArgument},
		"branch HEAD":   {func(s *CreateSpec) { s.Branch = "HEAD" }, hub.CodeInvalidArgument},
		"branch taken":  {func(s *CreateSpec) { s.Name = "taken" }, hub.CodeNameTaken},
		"branch below":  {func(s *CreateSpec) { s.Name = "deep" }, hub.CodeNameTaken},
		"branch above":  {func(s *CreateSpec) { s.Branch = "plain/x" }, hub.CodeNameTaken},
		"other repo":    {func(s *CreateSpec) { s.Repo.GitDir = "/elsewhere" }, hub.CodeRepoNotFound},
		"repo gone":     {func(s *CreateSpec) { s.Repo.Path = "/no/such/repo" }, hub.CodeRepoNotFound},
		"unborn":        {func(s *CreateSpec) { s.Repo = inspect(t, g, emptyRepo(t)) }, hub.CodeInvalidArgument},
		"ids":           {func(s *CreateSpec) { s.RepoID = "../x" }, hub.CodeInternal},
	}
	before := traces(t, repo)
	for name, c := range cases {
		spec := good
		c.change(&spec)
		_, err := g.Create(t.Context(), spec)
		if !hub.IsCode(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if _, err := os.Lstat(good.Root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refusal made %s: %v", good.Root, err)
	}
	if after := traces(t, repo); after != before {
		t.Errorf("the repository changed from %s to %s", before, after)
	}
}

func TestCreateFolderTaken(t *testing.T) {
	g, repo := newGit(t, Config{}), newRepo(t, nil)
	spec := specFor(t, inspect(t, g, repo), "vet")
	other := filepath.Join(filepath.Dir(spec.Path()), "VET")
	write(t, filepath.Join(other, "precious"), "x", 0o600)
	before := traces(t, repo)
	_, err := g.Create(t.Context(), spec)
	wantCode(t, err, hub.CodeNameTaken)
	if _, err := os.Stat(filepath.Join(other, "precious")); err != nil {
		t.Error(err)
	}
	if after := traces(t, repo); after != before {
		t.Errorf("the repository changed to %s", after)
	}
}

func TestParallelCreates(t *testing.T) {
	const n = 20
	repo := newRepo(t, nil)
	hubs := []*Git{newGit(t, Config{}), newGit(t, Config{})}
	facts := inspect(t, hubs[0], repo)
	base := specFor(t, facts, "")
	var workers sync.WaitGroup
	for i := range n {
		workers.Go(func() {
			spec := base
			spec.Name, spec.Worktree = fmt.Sprintf("w%d", i), hub.NewWorktreeID()
			if _, err := hubs[i%2].Create(t.Context(), spec); err != nil {
				t.Errorf("%s: %v", spec.Name, err)
			}
		})
	}
	workers.Wait()
	if got := strings.Count(gitIn(t, repo, "worktree", "list", "--porcelain"), "locked wt_"); got != n {
		t.Errorf("%d worktrees, want %d", got, n)
	}
	if got := len(strings.Fields(gitIn(t, repo, "for-each-ref", "--format=%(refname)", "refs/heads/wavehub/"))); got != n {
		t.Errorf("%d branches, want %d", got, n)
	}
}

func TestSameNameOnce(t *testing.T) {
	const n = 8
	repo := newRepo(t, nil)
	hubs := []*Git{newGit(t, Config{}), newGit(t, Config{})}
	base := specFor(t, inspect(t, hubs[0], repo), "same")
	results := make(chan error, n)
	for i := range n {
		go func() {
			spec := base
			spec.Worktree = hub.NewWorktreeID()
			_, err := hubs[i%2].Create(t.Context(), spec)
			results <- err
		}()
	}
	won := 0
	for range n {
		if err := <-results; err == nil {
			won++
		} else {
			wantCode(t, err, hub.CodeNameTaken)
		}
	}
	if won != 1 {
		t.Errorf("%d creations of one name succeeded", won)
	}
	if text, err := os.ReadFile(filepath.Join(base.Path(), "README")); err != nil || string(text) != "hello\n" {
		t.Errorf("the winner's worktree: %q, %v", text, err)
	}
}
