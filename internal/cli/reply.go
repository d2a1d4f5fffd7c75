package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) replyCommand() *cobra.Command {
	var message, subject string
	cmd := mark(&cobra.Command{
		Use:     "reply --id MESSAGE",
		Short:   "Answer a question, or send guidance to the sender of another message",
		Example: "wavehub reply --id msg_01j8zq4h5n6p7r8s9t0v1w2x3y --body Yes",
		Args:    exactly(),
	}, isMutation)
	text := bodyFlags(cmd, "body", "the answer")
	cmd.Flags().StringVar(&message, "id", "", "the message to answer")
	cmd.Flags().StringVar(&subject, "subject", "", "one line")
	cmd.RunE = verb[client.SendResult]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.SendResult, error) {
			body, err := text.read(a)
			switch {
			case err != nil:
				return nil, err
			case message == "":
				return nil, misused(cmd, "needs --id")
			case body == "":
				return nil, misused(cmd, "needs --body or --body-file")
			}
			return s.Reply(ctx, message, client.Reply{Body: body, Subject: subject}, opts...)
		},
		human: printSent,
	}.runE(a)
	return cmd
}
