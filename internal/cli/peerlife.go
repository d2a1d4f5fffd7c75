package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) inviteList() *cobra.Command {
	var page client.Page
	cmd := &cobra.Command{
		Use: "list", Short: "List invites and what became of them; codes are never listed", Args: exactly(),
		Example: "wavehub peer invite list",
	}
	pageFlags(cmd, &page)
	cmd.RunE = verb[client.InvitePage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.InvitePage, error) {
			return s.Invites(ctx, page, opts...)
		},
		human: func(p *printer, out *client.InvitePage) {
			list(p, []string{"INVITE", "STATE", "SLOT", "AS", "UNTIL", "WRONG", "PEER"}, out.Invites, out.NextCursor, inviteRow)
		},
	}.runE(a)
	return cmd
}

func inviteRow(i client.Invite) []string {
	return []string{i.InviteId, string(i.State), i.Slot, string(i.Role), i.ExpiresAt, strconv.Itoa(i.WrongProofs), or(i.PeerId, "")}
}

func (a *app) inviteRevoke() *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: "revoke INVITE", Short: "Take an open invite back: its code is good for nothing any more", Args: exactly("INVITE"),
		Example: "wavehub peer invite revoke invite_01kbay5a6wnf69qqypj5xs0m4e",
	}, isMutation)
	cmd.RunE = verb[client.InviteRevoked]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.InviteRevoked, error) {
			return s.RevokeInvite(ctx, args[0], opts...)
		},
		human: func(p *printer, out *client.InviteRevoked) {
			p.line("%s  %s", out.Invite.InviteId, string(out.Invite.State))
		},
	}.runE(a)
	return cmd
}

// peerChange is a verb whose answer is the peer as it is now.
func (a *app) peerChange(cmd *cobra.Command, call func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerResult, error)) *cobra.Command {
	mark(cmd, isMutation).RunE = verb[client.PeerResult]{
		call: call,
		human: func(p *printer, out *client.PeerResult) {
			printPeer(p, out.Peer)
			for _, w := range out.Warnings {
				p.line("  warning: %s", w)
			}
		},
	}.runE(a)
	return cmd
}

func (a *app) peerRename() *cobra.Command {
	return a.peerChange(&cobra.Command{
		Use: "rename PEER NAME", Short: "Call a peer by another name; nothing else changes", Args: exactly("PEER", "NAME"),
		Example: "wavehub peer rename windows desk",
	}, func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerResult, error) {
		return s.UpdatePeer(ctx, args[0], client.PeerUpdate{Name: args[1]}, opts...)
	})
}

func (a *app) peerSet() *cobra.Command {
	var in client.PeerUpdate
	cmd := &cobra.Command{
		Use: "set PEER", Short: "Say where a peer is reached now", Args: exactly("PEER"),
		Long: "The addresses replace all that there were and are tried in their order. Whoever answers there\n" +
			"has to have the peer's key and its store.",
		Example: "wavehub peer set windows --address https://192.0.2.8:7443",
	}
	cmd.Flags().StringArrayVar(&in.Addresses, "address", nil, "https://HOST:PORT; may be repeated")
	return a.peerChange(cmd, func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerResult, error) {
		if len(in.Addresses) == 0 {
			return nil, misused(cmd, "needs --address")
		}
		return s.UpdatePeer(ctx, args[0], in, opts...)
	})
}

func (a *app) peerGrant() *cobra.Command {
	var verbs, repos []string
	var workers int
	var noVerbs, noRepos bool
	cmd := &cobra.Command{
		Use: "grant PEER", Short: "Change what a peer may do on this hub, from now on", Args: exactly("PEER"),
		Long: "Grants live on the worker's side. Each flag replaces what it names; what is not named stays.\n" +
			"Workers that run go on. A path that is a repository is registered too.",
		Example: "wavehub peer grant mac --verb start --verb read --max-workers 4\nwavehub peer grant mac --allow-repo /srv/demo\nwavehub peer grant mac --no-verbs",
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&verbs, "verb", nil, "start, read or proxy; may be repeated")
	flags.BoolVar(&noVerbs, "no-verbs", false, "the peer may do nothing")
	flags.StringArrayVar(&repos, "allow-repo", nil, "folder below which the peer may start workers; may be repeated")
	flags.BoolVar(&noRepos, "no-repos", false, "the peer may start workers nowhere")
	flags.IntVar(&workers, "max-workers", 0, "how many workers the peer may have at once (0: no limit)")
	return a.peerChange(cmd, func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerResult, error) {
		switch {
		case len(verbs) > 0 && noVerbs, len(repos) > 0 && noRepos:
			return nil, misused(cmd, "takes a list or none of it, not both")
		case len(verbs)+len(repos) == 0 && !noVerbs && !noRepos && !flags.Changed("max-workers"):
			return nil, misused(cmd, "needs what to change: --verb, --allow-repo, --max-workers, --no-verbs or --no-repos")
		}
		var in client.PeerGrant
		if len(verbs) > 0 || noVerbs {
			named := make([]client.PeerGrantVerbs, len(verbs))
			for i, v := range verbs {
				named[i] = client.PeerGrantVerbs(v)
			}
			in.Verbs = &named
		}
		if len(repos) > 0 || noRepos {
			roots, err := absolute("allow-repo", repos...)
			if err != nil {
				return nil, err
			}
			in.AllowRepos = &roots
		}
		if flags.Changed("max-workers") {
			in.MaxWorkers = &workers
		}
		return s.GrantPeer(ctx, args[0], in, opts...)
	})
}

func (a *app) peerRemove() *cobra.Command {
	return a.peerChange(&cobra.Command{
		Use: "remove PEER", Short: "End the pairing with a peer at once", Args: exactly("PEER"),
		Long: "Its connections are closed, and its name is free. Dispatches of this hub that are left there can\n" +
			"be shown and abandoned only. Workers of the peer that run here go on, but nothing that they report\n" +
			"is taken: peer show lists them. No process is ended.",
		Example: "wavehub peer remove windows",
	}, func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerResult, error) {
		return s.RemovePeer(ctx, args[0], opts...)
	})
}

func printPeer(p *printer, peer client.Peer) {
	p.line("%s  %s  %s  %s", peer.Name, string(peer.State), string(peer.Role), peer.PeerId)
	p.line("  fingerprint: %s", peer.Fingerprint)
	p.line("  store: %s", peer.StoreId)
	for _, address := range peer.Addresses {
		p.line("  address: %s", address)
	}
	if peer.Condition != "" {
		p.line("  condition: %s", peer.Condition)
	}
	if peer.Reverse {
		p.line("  reached over connections that this hub opens (reverse)")
	}
	if peer.Role == "worker" {
		return // what we may do there is granted there
	}
	printGrants(p, peer.Grants)
}

func printGrants(p *printer, g client.Grants) {
	verbs := make([]string, len(g.Verbs))
	for i, v := range g.Verbs {
		verbs[i] = string(v)
	}
	limit := "without limit"
	if g.MaxWorkers > 0 {
		limit = strconv.Itoa(g.MaxWorkers) + " at most"
	}
	if len(verbs) == 0 {
		verbs = []string{"nothing"}
	}
	p.line("  may: %s; workers: %s", strings.Join(verbs, ", "), limit)
	for _, repo := range g.Repos {
		p.line("  may use: %s", repo)
	}
}

func printHolds(p *printer, h client.PeerHolds) {
	if h.Dispatches > 0 {
		p.line("  %d of this hub's Dispatches are there", h.Dispatches)
	}
	if h.Workers > 0 {
		p.line("  %d of its workers are here", h.Workers)
	}
	for _, w := range h.Stranded {
		p.line("  stranded: %s in %s, %s", w.DispatchId, w.Dir, or(w.TerminalId, "an attached worker"))
	}
}
