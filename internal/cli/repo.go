package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) repoCommand() *cobra.Command {
	return group("repo", "Register and list repositories that workers may be placed in",
		"wavehub repo list", a.repoAdd(), a.repoList())
}

func (a *app) repoAdd() *cobra.Command {
	var name, setup string
	cmd := mark(&cobra.Command{
		Use: "add PATH", Short: "Register a repository or a plain folder", Args: exactly("PATH"),
		Example: "wavehub repo add . --name demo",
	}, isMutation)
	cmd.Flags().StringVar(&name, "name", "", "how to call it (default: the folder's name)")
	cmd.Flags().StringVar(&setup, "setup", "", "what --setup inherit means for new worktrees here: run or skip")
	cmd.RunE = verb[client.RepoResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.RepoResult, error) {
			path, err := absolute("PATH", args[0])
			if err != nil {
				return nil, err
			}
			return s.AddRepo(ctx, client.RepoAdd{Path: path[0], Name: name, Setup: client.RepoAddSetup(setup)}, opts...)
		},
		human: func(p *printer, out *client.RepoResult) {
			p.line("%s  %s  %s  %s", out.Repo.Name, out.Repo.RepoId, string(out.Repo.Kind), out.Repo.Path)
		},
	}.runE(a)
	return cmd
}

func (a *app) repoList() *cobra.Command {
	var page client.Page
	cmd := mark(&cobra.Command{
		Use: "list", Short: "List registered repositories", Args: exactly(),
		Example: "wavehub repo list\nwavehub --hub windows repo list",
	}, isProxied)
	pageFlags(cmd, &page)
	cmd.RunE = verb[client.RepoPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.RepoPage, error) {
			return s.Repos(ctx, page, opts...)
		},
		human: func(p *printer, out *client.RepoPage) {
			list(p, []string{"NAME", "KIND", "REPO", "PATH"}, out.Repos, out.NextCursor, func(r client.Repo) []string {
				return []string{r.Name, string(r.Kind), r.RepoId, r.Path}
			})
		},
	}.runE(a)
	return cmd
}
