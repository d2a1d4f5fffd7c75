package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) messageCommand() *cobra.Command {
	show := &cobra.Command{
		Use:     "show MESSAGE",
		Short:   "Show one message, how far it has come, and the verdict on it",
		Example: "wavehub message show msg_01j8zq4h5n6p7r8s9t0v1w2x3y",
		Args:    exactly("MESSAGE"),
		RunE: verb[client.MessageOnly]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.MessageOnly, error) {
				return s.Message(ctx, args[0], opts...)
			},
			human: printMessage,
		}.runE(a),
	}
	return group("message", "Look at single messages",
		"wavehub message show msg_01j8zq4h5n6p7r8s9t0v1w2x3y", show)
}

func printMessage(p *printer, out *client.MessageOnly) {
	m := out.Message
	printMessages(p, []client.Message{m})
	if len(m.Payload) > 0 && string(m.Payload) != "null" {
		p.text(string(m.Payload))
	}
	p.line("to %s at %s: %s", m.To, m.CreatedAt, string(out.Delivery))
	if verdict := or(out.Verdict, ""); verdict != "" {
		p.line("verdict: %s %s", verdict, out.Reason)
	}
}
