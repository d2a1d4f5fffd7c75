package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) peerCommand() *cobra.Command {
	return group("peer", "Pair with other hubs, show them, and say what they may do",
		"wavehub peer list",
		a.peerInvite(), a.peerAdd(), a.peerList(), a.peerShow(), a.peerPing(), a.peerRename(), a.peerSet(), a.peerGrant(),
		a.peerReverse(), a.peerRotate(), a.peerRemove())
}

func (a *app) peerInvite() *cobra.Command {
	var in client.InviteCreate
	var as string
	var ttl time.Duration
	cmd := mark(&cobra.Command{
		Use: "invite", Short: "Offer another hub to pair, and get the code for it", Args: exactly(),
		Long: "This hub becomes the worker side unless --as home is given. The other side may use only\n" +
			"what --allow-repo names.",
		Example: "wavehub peer invite --allow-repo /srv/demo --ttl 10m",
	}, isMutation)
	flags := cmd.Flags()
	flags.StringArrayVar(&in.AllowRepos, "allow-repo", nil, "folder below which the peer may start workers; may be repeated")
	flags.StringVar(&as, "as", "", "the role of this hub: home or worker")
	flags.BoolVar(&in.Mutual, "mutual", false, "both hubs may start workers on the other")
	flags.IntVar(&in.MaxWorkers, "max-workers", 0, "how many workers the peer may have at once (0: no limit)")
	flags.DurationVar(&ttl, "ttl", 0, "how long the invite is open (default 10m)")
	cmd.RunE = verb[client.InviteResult]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.InviteResult, error) {
			if cmd.Flags().Changed("ttl") && ttl <= 0 {
				return nil, misused(cmd, "takes a --ttl above zero only")
			}
			repos, err := absolute("allow-repo", in.AllowRepos...)
			if err != nil {
				return nil, err
			}
			in.AllowRepos, in.As, in.TtlMs = repos, client.InviteCreateAs(as), ttl.Milliseconds()
			return s.Invite(ctx, in, opts...)
		},
		human: printInvite,
	}.runE(a)
	cmd.AddCommand(a.inviteList(), a.inviteRevoke())
	return cmd
}

func printInvite(p *printer, out *client.InviteResult) {
	invite := out.Invite
	p.line("%s  open until %s", invite.InviteId, invite.ExpiresAt)
	p.line("  code: %s", or(invite.Code, "no longer shown ("+string(invite.SecretState)+")"))
	p.line("  fingerprint: %s", invite.Fingerprint)
	for _, address := range invite.Addresses {
		p.line("  address: %s", address)
	}
	for _, w := range out.Warnings {
		p.line("  warning: %s", w)
	}
}

func (a *app) peerAdd() *cobra.Command {
	var in client.PeerAdd
	var file string
	cmd := mark(&cobra.Command{
		Use: "add NAME URL", Short: "Pair with the hub that gave a code", Args: exactly("NAME", "URL"),
		Long:    "The code is read from --code-file (- for stdin), or asked for on a terminal: it never stands\non the command line. NAME is how this hub calls the other.",
		Example: "wavehub peer add windows https://192.0.2.7:7443 --code-file code.txt",
	}, isMutation)
	flags := cmd.Flags()
	flags.StringVar(&file, "code-file", "", "file with the pairing code (- for stdin)")
	flags.BoolVar(&in.Serve, "serve", false, "this hub becomes the worker side, and its home reaches it over connections that it opens")
	flags.StringArrayVar(&in.AllowRepos, "allow-repo", nil, "with --serve or --mutual: folder below which the peer may start workers; may be repeated")
	flags.BoolVar(&in.Mutual, "mutual", false, "both hubs may start workers on the other")
	flags.IntVar(&in.MaxWorkers, "max-workers", 0, "how many workers the peer may have at once (0: no limit)")
	cmd.RunE = verb[client.PeerResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerResult, error) {
			var err error
			if in.Code, err = a.pairingCode(cmd, file); err != nil {
				return nil, err
			}
			if in.AllowRepos, err = absolute("allow-repo", in.AllowRepos...); err != nil {
				return nil, err
			}
			in.Name, in.Url = args[0], args[1]
			stop := a.progress("pairing")
			defer stop()
			return s.AddPeer(ctx, in, opts...)
		},
		human: func(p *printer, out *client.PeerResult) { printPeer(p, out.Peer) },
		exit: func(out *client.PeerResult) error {
			if out.Peer.State != "pending" {
				return nil
			}
			return unknownOutcome(out.Mutation.RequestId, "the pairing with %s is not completed yet", out.Peer.Name)
		},
	}.runE(a)
	return cmd
}

func (a *app) pairingCode(cmd *cobra.Command, file string) (string, error) {
	code := ""
	switch {
	case file != "":
		text, err := a.readText("code-file", file)
		if err != nil {
			return "", err
		}
		code = text
	case isTerminal(a.stdin):
		a.note("Pairing code: ")
		line, err := bufio.NewReader(a.stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", usage("code-file", "reading the code: %v", err)
		}
		code = line
	default:
		return "", misused(cmd, "needs --code-file where there is no terminal to ask on")
	}
	if code = strings.TrimSpace(code); code == "" {
		return "", misused(cmd, "got an empty pairing code")
	}
	return code, nil
}

func (a *app) peerList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all peers", Example: "wavehub peer list", Args: exactly(),
		RunE: verb[client.PeerPage]{
			call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.PeerPage, error) {
				return s.Peers(ctx, opts...)
			},
			human: func(p *printer, out *client.PeerPage) {
				list(p, []string{"NAME", "STATE", "ROLE", "PEER", "ADDRESSES"}, out.Peers, out.NextCursor, func(peer client.Peer) []string {
					return []string{peer.Name, string(peer.State), string(peer.Role), peer.PeerId, strings.Join(peer.Addresses, " ")}
				})
			},
		}.runE(a),
	}
}

// printLink says since when the link is up, or at which stage it failed last.
func printLink(p *printer, out *client.PeerDetail) {
	l := out.Link
	text := string(l.State) + ", " + string(l.Transport)
	if l.ConnectedAt != nil {
		text += ", since " + *l.ConnectedAt
	}
	if l.Stage != nil {
		text += ", stage " + *l.Stage
	}
	p.line("  link %s", text)
}

func (a *app) peerShow() *cobra.Command {
	return &cobra.Command{
		Use: "show PEER", Short: "Show one peer, by name or id, and its link", Args: exactly("PEER"),
		Example: "wavehub peer show windows",
		RunE: verb[client.PeerDetail]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerDetail, error) {
				return s.Peer(ctx, args[0], opts...)
			},
			human: func(p *printer, out *client.PeerDetail) {
				printPeer(p, out.Peer)
				printHolds(p, out.Holds)
				printLink(p, out)
				if out.Peer.Reverse {
					p.line("  %d connections of this hub wait there", out.Link.Parked)
				}
				if out.Link.LastError != nil {
					p.line("  last error: %s", *out.Link.LastError)
				}
				if r := out.Refused; r != nil {
					p.line("  refused here at %s, stage %s: %s", r.At, string(r.Stage), r.Error)
				}
				printRelay(p, out.Relay)
			},
		}.runE(a),
	}
}
