package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// questionStates are what question list takes as --state.
var questionStates = []string{"pending", "answered", "closed"}

func (a *app) questionCommand() *cobra.Command {
	return group("question", "Look at the questions of workers", "wavehub question list --state pending", a.questionList())
}

func (a *app) questionList() *cobra.Command {
	var page client.Page
	var state string
	cmd := &cobra.Command{
		Use: "list", Short: "List questions, newest first", Args: exactly(),
		Long:    "Lists the questions of the workers of all Runs, or of the one given with --run. They are\nanswered with reply --id.",
		Example: "wavehub question list\nwavehub question list --state pending",
	}
	pageFlags(cmd, &page)
	cmd.Flags().StringVar(&state, "state", "", strings.Join(questionStates, ", ")+" (default: all)")
	cmd.RunE = verb[client.QuestionPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.QuestionPage, error) {
			if state != "" && !slices.Contains(questionStates, state) {
				return nil, misused(cmd, "--state: %q is not one of %s", state, strings.Join(questionStates, ", "))
			}
			return s.Questions(ctx, a.flags.run, state, page, opts...)
		},
		human: func(p *printer, out *client.QuestionPage) {
			list(p, []string{"MESSAGE", "STATE", "DISPATCH", "QUESTION", "ANSWER"}, out.Questions, out.NextCursor, func(q client.AskedQuestion) []string {
				return []string{q.MessageId, string(q.State), q.DispatchId, q.Question, or(q.Answer, "-")}
			})
		},
	}.runE(a)
	return cmd
}
