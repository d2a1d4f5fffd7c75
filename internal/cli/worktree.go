package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

const exampleWorktree = "id:wt_01j8zq4h5n6p7r8s9t0v1w2x3y"

func (a *app) worktreeCommand() *cobra.Command {
	return group("worktree", "Make, show and remove git worktrees for workers", "wavehub worktree list",
		a.worktreeCreate(), a.worktreeList(), a.worktreeShow(), a.worktreeRemove())
}

func (a *app) worktreeList() *cobra.Command {
	var page client.Page
	var repo string
	cmd := mark(&cobra.Command{
		Use: "list", Short: "List worktrees", Args: exactly(),
		Example: "wavehub worktree list\nwavehub worktree list --repo demo",
	}, isProxied)
	pageFlags(cmd, &page)
	cmd.Flags().StringVar(&repo, "repo", "", "only of this repository")
	cmd.RunE = verb[client.WorktreePage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.WorktreePage, error) {
			return s.Worktrees(ctx, repo, page, opts...)
		},
		human: func(p *printer, out *client.WorktreePage) {
			list(p, []string{"NAME", "STATE", "BRANCH", "WORKTREE", "PATH"}, out.Worktrees, out.NextCursor, func(w client.Worktree) []string {
				return []string{w.Name, string(w.State), w.Branch, w.WorktreeId, w.Path}
			})
		},
	}.runE(a)
	return cmd
}

type worktreeFlags struct {
	in           client.WorktreeCreate
	setup, hooks string
}

func (a *app) worktreeCreate() *cobra.Command {
	var f worktreeFlags
	cmd := mark(&cobra.Command{
		Use: "create --name NAME", Short: "Make a worktree on a branch of its own and start its setup", Args: exactly(),
		Long: "Makes a git worktree in a folder of the hub's, on the new branch wavehub/NAME, and starts the\n" +
			"repository's setup hook if it has one. Exit code 0 when it is there, 1 when it failed, 10 when\n" +
			"that is not known; the same command under the same request id looks again.",
		Example: "wavehub worktree create --repo demo --name vet\n" +
			"wavehub worktree create --repo demo --name fix --base main --parent current --setup skip",
	}, isMutation, isWait, isProxied)
	flags := cmd.Flags()
	flags.StringVar(&f.in.Repo, "repo", "", "repository: name, id or path (default: the one of this folder)")
	flags.StringVar(&f.in.Name, "name", "", "name of the worktree")
	flags.StringVar(&f.in.Base, "base", "", "ref that it starts from (default: the repository's HEAD)")
	flags.StringVar(&f.in.Parent, "parent", "", "record it as child of: current, id:…, path:… or a name")
	flags.StringVar(&f.setup, "setup", "", "the repository's setup hook: run, skip or inherit (default: run)")
	flags.StringVar(&f.hooks, "repo-hooks", "", "run lets the repository's own git hooks run at the checkout (default: skip)")
	flags.StringVar(&f.in.DisplayName, "display-name", "", "name to show to people")
	flags.StringVar(&f.in.Comment, "comment", "", "note kept with the worktree")
	cmd.RunE = verb[client.WorktreeReceipt]{
		call: a.createWorktree(cmd, &f), human: printWorktreeReceipt, exit: worktreeExit, label: "creating",
	}.runE(a)
	return cmd
}

func (a *app) createWorktree(cmd *cobra.Command, f *worktreeFlags) func(context.Context, *session, []string, ...client.Option) (*client.WorktreeReceipt, error) {
	return func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.WorktreeReceipt, error) {
		if f.in.Name == "" {
			return nil, misused(cmd, "needs --name")
		}
		in := f.in
		in.Setup, in.RepoHooks, in.TimeoutMs = client.WorktreeCreateSetup(f.setup), client.WorktreeCreateRepoHooks(f.hooks), a.waitMS()
		if path, ok := strings.CutPrefix(in.Parent, "path:"); ok {
			at, err := s.folder("--parent", path)
			if err != nil {
				return nil, err
			}
			in.Parent = "path:" + at
		}
		if in.Repo == "" || in.Parent == "current" {
			if err := s.nowhere("repo"); err != nil {
				return nil, err
			}
			dir, err := os.Getwd()
			if err != nil {
				return nil, err
			}
			in.CurrentDir = dir
		}
		return s.CreateWorktree(ctx, in, opts...)
	}
}

func worktreeExit(r *client.WorktreeReceipt) error {
	switch r.State {
	case "failed":
		return exitCode(1)
	case "outcome_unknown":
		return unknownOutcome(r.Mutation.RequestId, "it is not known what became of the worktree %s: %s", r.Worktree.Name, or(r.LastError, "no proof either way"))
	}
	return nil
}

func printWorktreeReceipt(p *printer, r *client.WorktreeReceipt) {
	p.line("%s  %s  %s", r.Worktree.WorktreeId, string(r.State), r.Worktree.Path)
	if r.LastError != nil {
		p.line("  %s: %s", or(r.FailedStage, r.Stage), *r.LastError)
	}
	for _, e := range r.Effects {
		p.line("  %s %s %s", e.Action, string(e.Kind), e.Id)
	}
	p.line("  setup: %s", string(r.Worktree.Setup.State))
	printLeftovers(p, r.ResidualResources, nil)
	for _, d := range r.Defaults {
		p.line("  %s: %s (%s)", d.Field, d.Value, d.Source)
	}
}

func (a *app) worktreeShow() *cobra.Command {
	return mark(&cobra.Command{
		Use: "show WHERE", Short: "Show a worktree, its lineage, and what it holds that is nowhere else", Args: exactly("WHERE"),
		Long:    "WHERE is current, id:WORKTREE, path:PATH or a worktree's exact name.",
		Example: "wavehub worktree show current\nwavehub worktree show " + exampleWorktree,
		RunE: verb[client.WorktreeDetail]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WorktreeDetail, error) {
				which, err := s.worktreeNamed(ctx, args[0])
				if err != nil {
					return nil, err
				}
				return s.Worktree(ctx, which, opts...)
			},
			human: printWorktree,
		}.runE(a),
	}, isProxied)
}

// worktreeNamed is the id or name that the hub knows a selector's worktree by.
func (s *session) worktreeNamed(ctx context.Context, selector string) (string, error) {
	if id, ok := strings.CutPrefix(selector, "id:"); ok {
		return s.fullID(ctx, id)
	}
	path, ok := strings.CutPrefix(selector, "path:")
	if selector == "current" {
		if err := s.nowhere("WHERE"); err != nil {
			return "", err
		}
		path, ok = ".", true
	}
	if !ok {
		return selector, nil
	}
	where, err := s.folder("WHERE", path)
	if err != nil {
		return "", err
	}
	at, err := s.WorktreeAt(ctx, where)
	if err != nil {
		return "", err
	}
	return at.Worktrees[0].WorktreeId, nil
}

func printWorktree(p *printer, out *client.WorktreeDetail) {
	w := out.Worktree
	p.line("%s  %s  %s", w.Name, string(w.State), w.WorktreeId)
	if w.DisplayName != "" {
		p.line("  %s", w.DisplayName)
	}
	if w.Comment != "" {
		p.line("  %s", w.Comment)
	}
	p.line("  path %s", w.Path)
	p.line("  branch %s, checked out %s at %s, from %s", w.Branch, or(out.Branch, "none"), or(out.Head, "no commit"), w.BaseCommit)
	p.line("  repository %s, parent %s, setup %s", out.Repo.Name, or(w.ParentWorktreeId, "none"), string(w.Setup.State))
	for _, c := range out.Children {
		p.line("  child %s  %s", c.Name, c.WorktreeId)
	}
	for _, d := range out.Dispatches {
		p.line("  used by %s", d)
	}
	if out.Unknown != nil {
		p.line("  what it holds is not known: %s", *out.Unknown)
	}
	printLosses(p, "only here", out.Losses, out.LossCount)
}

func printLosses(p *printer, what string, losses []client.WorktreeLoss, count int) {
	for _, l := range losses {
		p.line("  %s: %s %s", what, string(l.Kind), l.Name)
	}
	if more := count - len(losses); more > 0 {
		p.line("  %s: %d more", what, more)
	}
}

func (a *app) worktreeRemove() *cobra.Command {
	var in client.WorktreeRemove
	cmd := mark(&cobra.Command{
		Use: "remove WHERE", Short: "Delete a worktree and its branch, unless something would be lost", Args: exactly("WHERE"),
		Long: "WHERE is current, id:WORKTREE, path:PATH or a worktree's exact name. A worktree that is in use, or\n" +
			"holds changes, untracked files or commits that are nowhere else, is refused. --force saves those\n" +
			"under refs of the repository first and says which; a repository inside has to be moved away first.\n" +
			"Files that git ignores go with the worktree.",
		Example: "wavehub worktree remove vet\nwavehub worktree remove " + exampleWorktree + " --force",
	}, isMutation)
	cmd.Flags().BoolVar(&in.Force, "force", false, "save what would be lost under refs of the repository, then remove")
	cmd.RunE = verb[client.WorktreeRemoval]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WorktreeRemoval, error) {
			which, err := s.worktreeNamed(ctx, args[0])
			if err != nil {
				return nil, err
			}
			return s.RemoveWorktree(ctx, which, in, opts...)
		},
		human: printRemoval, label: "removing",
	}.runE(a)
	return cmd
}

func printRemoval(p *printer, r *client.WorktreeRemoval) {
	p.line("%s  removed  %s", r.WorktreeId, r.Path)
	if r.BranchKept {
		p.line("  the branch %s stays: it has moved, or is checked out elsewhere", r.Branch)
	}
	for _, s := range r.Saved {
		p.line("  saved %s: %s  %s", string(s.Of), s.Ref, s.Commit)
	}
	printLosses(p, "not saved", r.NotSaved, len(r.NotSaved))
}
