package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

type outputFlags struct {
	page   client.Page
	source string
	follow bool
}

func (a *app) workerRead() *cobra.Command {
	var f outputFlags
	cmd := mark(&cobra.Command{
		Use: "read DISPATCH", Short: "Read what the worker says: its transcript, or its terminal", Args: exactly("DISPATCH"),
		Long: "Prints the agent's own transcript where it is associated with this very process, and\n" +
			"otherwise the end of its terminal, and says why. Tokens are redacted, and nothing in it\n" +
			"can steer your terminal. It is the worker's word, not the hub's.\n\n" +
			"--cursor goes on behind a page, in the same source. --follow goes on until the worker\n" +
			"has ended or --timeout is over; with --json it prints one page a line.",
		Example: "wavehub worker read " + exampleDispatch + "\n" +
			"wavehub worker read " + exampleDispatch + " --source terminal --limit 50\n" +
			"wavehub worker read " + exampleDispatch + " --follow --timeout 10m",
	}, isWait, isLongWait)
	flags := cmd.Flags()
	flags.StringVar(&f.source, "source", "", "auto, transcript or terminal")
	flags.StringVar(&f.page.Cursor, "cursor", "", "cursor of the page before")
	flags.IntVar(&f.page.Limit, "limit", 0, "messages of a transcript or lines of a terminal, at most 1000 (0: the hub's default)")
	flags.BoolVar(&f.follow, "follow", false, "go on with what comes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.follow {
			return a.followOutput(cmd, args, f)
		}
		return verb[client.OutputPage]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.OutputPage, error) {
				return s.Output(ctx, args[0], client.OutputQuery{Source: f.source, Page: f.page, Wait: a.flags.timeout}, opts...)
			},
			human: printOutput,
		}.runE(a)(cmd, args)
	}
	return cmd
}

// outputWait is how long one request of a follower waits.
const outputWait = 30 * time.Second

// followOutput prints page after page until the worker has ended and all of its
// output is printed, or the time is over.
func (a *app) followOutput(cmd *cobra.Command, args []string, f outputFlags) error {
	s, err := a.connect(0)
	if err != nil {
		return err
	}
	defer s.Close()
	if args, err = a.expand(cmd.Context(), s, cmd, args); err != nil {
		return err
	}
	ctx := cmd.Context()
	if a.flags.timed {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.flags.timeout)
		defer cancel()
	}
	q := client.OutputQuery{Source: f.source, Page: f.page}
	for {
		more, err := a.printPage(ctx, s, args[0], &q)
		if err != nil && ctx.Err() != nil && cmd.Context().Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return exitCode(exitTimedOut)
		}
		if err != nil || !more {
			return err
		}
	}
}

// printPage prints one page and sets the query to the one behind it; false when
// there will be none.
func (a *app) printPage(ctx context.Context, s *session, dispatch string, q *client.OutputQuery) (more bool, err error) {
	var raw json.RawMessage
	out, err := s.Output(ctx, dispatch, *q, client.WithBody(&raw))
	if err != nil {
		return false, err
	}
	something := printable(out)
	if something || q.Cursor == "" {
		if err := a.emit(raw, func(p *printer) { printOutput(p, out) }); err != nil {
			return false, err
		}
	}
	if out.Cursor == nil || !something && q.Cursor != "" && out.Status.Terminal != client.LivenessLive {
		return false, nil
	}
	q.Cursor, q.Wait = *out.Cursor, outputWait
	return true, nil
}

func printable(out *client.OutputPage) bool {
	return out.Transcript != nil && len(out.Transcript.Messages) > 0 || out.Terminal != nil && out.Terminal.Text != ""
}

func printOutput(p *printer, out *client.OutputPage) {
	if out.Terminal != nil {
		p.text(out.Terminal.Text)
		return
	}
	if out.Transcript == nil {
		return
	}
	for _, m := range out.Transcript.Messages {
		printEntry(p, m)
	}
}

func printEntry(p *printer, m client.TranscriptMessage) {
	p.line("── %s  %s", string(m.Role), or(m.At, ""))
	for _, b := range m.Blocks {
		switch b.Kind {
		case "tool_call":
			p.line("%s(%s)", b.Name, string(b.Input))
		case "tool_result":
			p.line("→")
			p.text(b.Text)
		case "image_ref":
			p.line("[image %s]", b.Name)
		default:
			p.text(b.Text)
		}
	}
}
