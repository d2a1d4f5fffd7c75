package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) peerReverse() *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: "reverse PEER on|off", Short: "Let a home reach this hub over connections that this hub opens", Args: exactly("PEER", "on|off"),
		Long: "For a hub that runs workers and that its home cannot dial, behind NAT for instance: this hub\n" +
			"dials the home and keeps a few connections waiting there. peer add --serve turns it on.\n" +
			"Only the worker's side can change it; links that are up stay.",
		Example: "wavehub peer reverse mac on",
	}, isMutation)
	cmd.RunE = verb[client.PeerResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.PeerResult, error) {
			on := args[1] == "on"
			if !on && args[1] != "off" {
				return nil, misused(cmd, "takes on or off behind the peer, not %q", args[1])
			}
			return s.SetPeerReverse(ctx, args[0], on, opts...)
		},
		human: func(p *printer, out *client.PeerResult) { printPeer(p, out.Peer) },
	}.runE(a)
	return cmd
}
