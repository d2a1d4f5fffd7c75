package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) worktreeCommand() *cobra.Command {
	return group("worktree", "Show the worktrees that this hub made", "wavehub worktree list", a.worktreeList())
}

func (a *app) worktreeList() *cobra.Command {
	var page client.Page
	var repo string
	cmd := &cobra.Command{
		Use: "list", Short: "List worktrees", Args: exactly(),
		Example: "wavehub worktree list\nwavehub worktree list --repo demo",
	}
	pageFlags(cmd, &page)
	cmd.Flags().StringVar(&repo, "repo", "", "only of this repository")
	cmd.RunE = verb[client.WorktreePage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.WorktreePage, error) {
			return s.Worktrees(ctx, repo, page, opts...)
		},
		human: func(p *printer, out *client.WorktreePage) {
			list(p, []string{"NAME", "BRANCH", "WORKTREE", "PATH"}, out.Worktrees, out.NextCursor, func(w client.Worktree) []string {
				return []string{w.Name, w.Branch, w.WorktreeId, w.Path}
			})
		},
	}.runE(a)
	return cmd
}
