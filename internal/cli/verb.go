package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// Annotations of commands.
const (
	isMutation = "mutation" // takes --retry-request
	isWait     = "wait"     // --timeout is how long it waits for its effect
	isLongWait = "longwait" // such a wait may be longer than one request
)

func mark(cmd *cobra.Command, marks ...string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	for _, m := range marks {
		cmd.Annotations[m] = "yes"
	}
	return cmd
}

func marked(cmd *cobra.Command, m string) bool { return cmd.Annotations[m] != "" }

// verb is one call to the hub with what is printed of its answer.
type verb[T any] struct {
	call  func(ctx context.Context, s *session, args []string, opts ...client.Option) (*T, error)
	human func(p *printer, out *T)
	exit  func(out *T) error // turns an answer into an exit code; nil: always 0
	label string             // of the progress on a terminal
}

func (v verb[T]) runE(a *app) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := a.connect(a.silence(cmd))
		if err != nil {
			return err
		}
		defer s.Close()
		if args, err = a.expand(cmd.Context(), s, cmd, args); err != nil {
			return err
		}
		var body json.RawMessage
		stop := a.progress(v.label)
		out, err := v.call(cmd.Context(), s, args, a.options(&body)...)
		stop()
		if err != nil {
			return err
		}
		return v.finish(a, body, out)
	}
}

func (v verb[T]) finish(a *app, body json.RawMessage, out *T) error {
	if err := a.emit(body, func(p *printer) { v.human(p, out) }); err != nil {
		return err
	}
	if v.exit == nil {
		return nil
	}
	return v.exit(out)
}

// silence is how long the hub may be silent: for verbs that do not wait for an
// effect, --timeout; else the client's default beyond the wait.
func (a *app) silence(cmd *cobra.Command) time.Duration {
	if marked(cmd, isWait) {
		return 0
	}
	return a.flags.timeout
}

// options keeps the answer's body and passes --retry-request on.
func (a *app) options(body *json.RawMessage) []client.Option {
	opts := []client.Option{client.WithBody(body)}
	if a.flags.retryRequest != "" {
		opts = append(opts, client.WithRequestID(a.flags.retryRequest))
	}
	return opts
}

// wait is --timeout, or standard where it was not given.
func (a *app) wait(standard time.Duration) time.Duration {
	if a.flags.timed {
		return a.flags.timeout
	}
	return standard
}

// waitMS is --timeout in milliseconds, 0 where it was not given.
func (a *app) waitMS() int64 {
	return int64((a.flags.timeout + time.Millisecond - 1) / time.Millisecond)
}

// exactly demands these positional arguments.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) && !slices.Contains(args, "") {
			return nil
		}
		want := "no arguments"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		return misused(cmd, "takes %s, got %d", want, len(args))
	}
}

func misused(cmd *cobra.Command, format string, args ...any) error {
	e := usage("", cmd.CommandPath()+" "+format, args...)
	e.Hint = "see: " + cmd.CommandPath() + " --help"
	return e
}

// pageFlags gives a list its --limit and --cursor.
func pageFlags(cmd *cobra.Command, page *client.Page) {
	cmd.Flags().IntVar(&page.Limit, "limit", 0, "entries per page, at most 200 (0: the hub's default)")
	cmd.Flags().StringVar(&page.Cursor, "cursor", "", "next_cursor of the page before")
}
