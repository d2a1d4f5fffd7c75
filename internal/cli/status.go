package cli

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what this hub is and how much it holds", Example: "wavehub status", Args: exactly(),
		RunE: verb[client.HubStatus]{
			call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.HubStatus, error) {
				return s.Status(ctx, opts...)
			},
			human: func(p *printer, out *client.HubStatus) {
				h, n := out.Hub, out.Counts
				p.line("%s  %s  version %s, up since %s", h.Name, h.Url, h.Version, h.StartedAt)
				p.line("  hub %s", h.HubId)
				p.line("  fingerprint %s", h.Fingerprint)
				p.line("  %d runs, %d tasks, %d live dispatches, %d messages", n.Runs, n.Tasks, n.DispatchesLive, n.Messages)
			},
		}.runE(a),
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Example: "wavehub version", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			doc := struct {
				BuildInfo
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{a.build, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return a.emitValue(doc, func(p *printer) {
				p.line("wavehub %s (commit %s, %s, %s, %s)", doc.Version, doc.Commit, doc.Date, doc.Go, doc.Platform)
			})
		},
	}
}
