package daemon

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/wavehub/wavehub/internal/agent"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/internal/worktree"
)

// git fits package worktree to work.Git.
type git struct {
	*worktree.Git
	root string
}

func (g git) Inspect(ctx context.Context, path string) (work.Folder, error) {
	f, err := g.Git.Inspect(ctx, path)
	return work.Folder{Path: f.Path, Kind: string(f.Kind), Head: f.Head}, err
}

func (git) Canonical(path string) (string, error) { return worktree.Canonical(path) }

func (g git) spec(n work.NewWorktree) worktree.CreateSpec {
	return worktree.CreateSpec{Root: g.root, RepoID: n.Repo.ID, Worktree: n.ID, Name: n.Name, Base: n.Base}
}

func (g git) Where(n work.NewWorktree) (path, branch string) {
	return g.spec(n).Path(), worktree.BranchPrefix + n.Name
}

func (g git) Free(ctx context.Context, n work.NewWorktree) error {
	spec := g.spec(n)
	spec.Repo.Path = n.Repo.Path
	return g.Git.Free(ctx, spec)
}

func (git) Check(name, base string) error {
	if err := worktree.CheckName(name); err != nil {
		return err
	}
	if base == "" {
		return nil
	}
	return worktree.CheckRef(base)
}

func (g git) Create(ctx context.Context, n work.NewWorktree) (hub.Worktree, error) {
	facts, err := g.Git.Inspect(ctx, n.Repo.Path)
	if err != nil {
		return hub.Worktree{}, err
	}
	spec := g.spec(n)
	spec.Repo = facts
	made, err := g.Git.Create(ctx, spec)
	return hub.Worktree{
		ID: n.ID, Repo: n.Repo.ID, Name: n.Name, Path: made.Path, Branch: made.Branch, Base: made.BaseCommit,
	}, err
}

func (g git) HasSetup(ctx context.Context, repo hub.Repo, base string) (bool, error) {
	facts, commit, err := g.Resolve(ctx, repo.Path, base)
	if err != nil {
		return false, err
	}
	found, _, err := g.SetupHook(ctx, facts, commit)
	return found, err
}

// agents fits the launcher table to work.Agents.
type agents struct {
	table *agent.Table
	bin   string
	base  []string // the hub's own environment, filtered by the table
}

func newAgents(cfg config.Config, bin string) (agents, error) {
	defs := make(map[string]agent.Definition, len(cfg.Agents))
	for name, d := range cfg.Agents {
		defs[name] = agent.Definition{
			Command: d.Command, Deliver: agent.Deliver(d.Deliver), Completion: agent.Completion(d.Completion), Env: d.Env, Grace: d.Grace,
		}
	}
	table, err := agent.New(defs)
	return agents{table: table, bin: bin, base: os.Environ()}, err
}

func (a agents) Completion(name string) (string, error) {
	l, err := a.table.Lookup(name)
	return string(l.Completion), err
}

func (a agents) Grace(name string) time.Duration {
	if l, err := a.table.Lookup(name); err == nil {
		return l.Grace
	}
	return agent.DefaultGrace
}

func (a agents) Plan(in work.Launch) (hub.LaunchSpec, error) {
	l, err := a.table.Lookup(in.Agent)
	if err != nil {
		return hub.LaunchSpec{}, err
	}
	plan, err := l.Plan(agent.Input{Spec: in.Prompt, PromptDir: in.Private, Preamble: agent.Preamble(agent.PreambleInput{
		Worktree: in.Dir, Task: in.Task, Dispatch: in.Dispatch, Bin: a.bin, Spec: in.Prompt,
	})})
	if err != nil {
		return hub.LaunchSpec{}, err
	}
	for _, f := range plan.Files {
		if err := safefile.WriteAtomic(f.Path, f.Data, f.Mode); err != nil {
			return hub.LaunchSpec{}, err
		}
	}
	return hub.LaunchSpec{
		Terminal: in.Terminal, Argv: plan.Argv, Stdin: plan.Stdin, Dir: in.Dir, Env: a.environment(l, in.Env),
	}, nil
}

func (agents) Preamble(task hub.TaskID, id hub.DispatchID) string {
	return agent.AttachedPreamble(task, id)
}

// environment is the allow-listed base, the launcher's own, and the hub's; the
// folder of the program is last in PATH, so that plain "wavehub" works.
func (a agents) environment(l agent.Launcher, own map[string]string) []string {
	extra := map[string]string{}
	for k, v := range l.Env {
		extra[k] = v
	}
	for k, v := range own {
		extra[k] = v
	}
	if _, set := l.Env["PATH"]; !set {
		extra["PATH"] = withFolder(os.Getenv("PATH"), filepath.Dir(a.bin))
	}
	return agent.Environment(a.base, extra)
}

func withFolder(path, folder string) string {
	if _, err := exec.LookPath("wavehub"); err == nil || path == "" {
		return path
	}
	return path + string(os.PathListSeparator) + folder
}
