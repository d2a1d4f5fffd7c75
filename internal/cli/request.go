package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) requestCommand() *cobra.Command {
	show := &cobra.Command{
		Use:     "show REQUEST",
		Short:   "Show what became of one of your own requests",
		Example: "wavehub request show req_01j8zq4h5n6p7r8s9t0v1w2x3y",
		Args:    exactly("REQUEST"),
		RunE: verb[client.RequestDetail]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.RequestDetail, error) {
				return s.Request(ctx, args[0], opts...)
			},
			human: func(p *printer, out *client.RequestDetail) {
				r := out.Request
				p.line("%s  %s  %s", r.RequestId, r.Operation, string(r.State))
				p.line("  stage %s, created %s", or(r.Stage, "none"), r.CreatedAt)
				if r.BodyExpired {
					p.line("  its answer is no longer kept; it made or changed %s", or(r.Object, "nothing"))
					return
				}
				p.text(string(out.Response))
			},
		}.runE(a),
	}
	return group("request", "Look up requests: what was done under a request id",
		"wavehub request show req_01j8zq4h5n6p7r8s9t0v1w2x3y", show)
}
