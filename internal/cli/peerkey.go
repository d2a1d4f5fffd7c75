package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) peerPing() *cobra.Command {
	return &cobra.Command{
		Use: "ping PEER", Short: "Connect to a peer anew, and show how far that comes", Args: exactly("PEER"),
		Long: "The stages are resolve, dial, tls, pin, hello and contract. The live link to the peer is left\n" +
			"alone. The exit code is that of the stage's error.",
		Example: "wavehub peer ping windows",
		RunE: verb[client.PeerPing]{
			label: "connecting",
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerPing, error) {
				return s.Ping(ctx, args[0], opts...)
			},
			human: printPing, exit: pingExit,
		}.runE(a),
	}
}

func printPing(p *printer, out *client.PeerPing) {
	p.line("%s  at %s", out.Name, or(out.Address, "no address"))
	for _, s := range out.Stages {
		p.line("  %s  %s  %s", string(s.Stage), string(s.State), time.Duration(s.DurationUs)*time.Microsecond)
		if s.Error != "" {
			p.line("    %s: %s", s.Code, s.Error)
		}
	}
}

// pingExit is the error of the stage that failed.
func pingExit(out *client.PeerPing) error {
	for _, s := range out.Stages {
		if s.State == "failed" {
			e := client.Errorf(client.Code(s.Code), "%s cannot be reached: stage %s", out.Name, string(s.Stage))
			if s.Hint != "" {
				e.Hint = s.Hint
			}
			return e
		}
	}
	return nil
}

func (a *app) peerRotate() *cobra.Command {
	var in client.KeyRotate
	cmd := mark(&cobra.Command{
		Use: "rotate", Short: "Make a new key of this hub, which its peers follow", Args: exactly(),
		Long: "Each peer learns of the new key over a connection that the former one authenticates: now, or\n" +
			"at its next link-up. Until all know it this hub keeps the former key. A peer that is not\n" +
			"waited for any more sees peer_changed, and has to be paired again: --forget names such peers,\n" +
			"--force means all. While peers are waited for, either ends the wait and makes no new key.\n" +
			"Codes of open invites are bound to the former key and open nothing any more.",
		Example: "wavehub peer rotate",
	}, isMutation)
	cmd.Flags().StringArrayVar(&in.Forget, "forget", nil, "peer that is not waited for any more; may be repeated")
	cmd.Flags().BoolVar(&in.Force, "force", false, "wait for no peer")
	cmd.RunE = verb[client.KeyRotation]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.KeyRotation, error) {
			return s.RotateKey(ctx, in, opts...)
		},
		human: printRotation,
	}.runE(a)
	return cmd
}

func printRotation(p *printer, out *client.KeyRotation) {
	p.line("%s", out.HubId)
	p.line("  fingerprint: %s", out.Fingerprint)
	if out.Rotated {
		p.line("  former: %s", out.FormerFingerprint)
	}
	for _, peer := range out.Unaware {
		p.line("  does not know it yet: %s  %s", peer.Name, peer.PeerId)
	}
	for _, id := range out.Forgotten {
		p.line("  not waited for: %s", id)
	}
}
