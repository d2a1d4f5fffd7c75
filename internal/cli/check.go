package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// defaultCheckWait is how long check --wait waits without --timeout.
const defaultCheckWait = time.Minute

type checkFlags struct {
	wait, peek, all, exitStatus bool
	ack, mailbox                string
	types                       []string
	page                        client.Page
}

func (a *app) checkCommand() *cobra.Command {
	var f checkFlags
	cmd := mark(&cobra.Command{
		Use:   "check",
		Short: "Get the next batch of mail, and acknowledge the one before",
		Long: "Returns the outstanding batch or forms the next one. Receiving consumes nothing: the batch\n" +
			"comes again until it is acknowledged as a whole with --ack. --types decides when a wait\nwakes, never what is returned. --peek and --all only look.\n\n" +
			"Inside a Dispatch it reads the Dispatch's own mailbox, elsewhere the Run's; a worker that\n" +
			"coordinates a child Run says which with --mailbox. A time-out exits 0 with timed_out true,\nor 7 with --exit-status.",
		Example: "wavehub check --wait --timeout 60s\nwavehub check --ack delivery_01j8zq4h5n6p7r8s9t0v1w2x3y --wait\nwavehub check --peek",
		Args:    exactly(),
	}, isMutation, isWait)
	f.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.validate(a, cmd); err != nil {
			return err
		}
		if f.peek || f.all {
			return a.history(&f).runE(a)(cmd, args)
		}
		return a.check(&f).runE(a)(cmd, args)
	}
	return cmd
}

func (f *checkFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.wait, "wait", false, "wait for mail (--timeout, default 60s, at most 10m)")
	flags.StringVar(&f.ack, "ack", "", "acknowledge this Delivery first")
	flags.BoolVar(&f.peek, "peek", false, "only look at mail that is not acknowledged")
	flags.BoolVar(&f.all, "all", false, "only look, at all mail")
	flags.StringSliceVar(&f.types, "types", nil, "types that end the wait, with commas; with --peek and --all: types to show")
	flags.StringVar(&f.mailbox, "mailbox", "", "run, dispatch, run:RUN or dispatch:DISPATCH where both are possible")
	flags.BoolVar(&f.exitStatus, "exit-status", false, "exit 7 on a time-out")
	pageFlags(cmd, &f.page)
	flags.Lookup("limit").Usage = "messages per batch, at most 50 (200 with --peek and --all)"
}

func (f *checkFlags) validate(a *app, cmd *cobra.Command) error {
	looks := f.peek || f.all
	switch {
	case f.peek && f.all:
		return misused(cmd, "takes --peek or --all, not both")
	case cmd.Flags().Changed("limit") && f.page.Limit < 1:
		return misused(cmd, "--limit must be at least 1")
	case looks && f.ack != "":
		return misused(cmd, "--ack cannot be combined with --peek or --all: they only look")
	case looks && f.wait:
		return misused(cmd, "--wait cannot be combined with --peek or --all: they only look")
	case looks && a.flags.retryRequest != "":
		return misused(cmd, "--peek and --all change nothing, so --retry-request has no meaning")
	case !looks && f.page.Cursor != "":
		return misused(cmd, "--cursor is for --peek and --all")
	}
	return nil
}

func (a *app) check(f *checkFlags) verb[client.CheckResult] {
	in := client.CheckOptions{Ack: f.ack, Limit: f.page.Limit, Types: f.types}
	if f.wait {
		in.Wait = a.wait(defaultCheckWait)
	}
	return verb[client.CheckResult]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.CheckResult, error) {
			box, err := a.mailbox(ctx, s, f.mailbox)
			if err != nil {
				return nil, err
			}
			return s.Check(ctx, box, in, opts...)
		},
		human: func(p *printer, out *client.CheckResult) { printBatch(p, out, a.ackCommand(f, out)) },
		exit: func(out *client.CheckResult) error {
			if f.exitStatus && out.TimedOut {
				return exitCode(exitTimedOut)
			}
			return nil
		},
		label: "waiting for mail",
	}
}

func (a *app) history(f *checkFlags) verb[client.HistoryPage] {
	mode := "peek"
	if f.all {
		mode = "all"
	}
	return verb[client.HistoryPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.HistoryPage, error) {
			box, err := a.mailbox(ctx, s, f.mailbox)
			if err != nil {
				return nil, err
			}
			return s.History(ctx, box, mode, f.types, f.page, opts...)
		},
		human: func(p *printer, out *client.HistoryPage) {
			printMessages(p, out.Messages)
			if out.NextCursor != nil {
				p.line("more with: --cursor %s", *out.NextCursor)
			}
		},
	}
}

// ackCommand acknowledges the batch in the mailbox that it came from.
func (a *app) ackCommand(f *checkFlags, out *client.CheckResult) []string {
	argv := []string{"wavehub", "check", "--ack", or(out.DeliveryId, "")}
	if a.flags.run != "" {
		argv = append(argv, "--run", a.flags.run)
	}
	if f.mailbox != "" {
		argv = append(argv, "--mailbox", f.mailbox)
	}
	return argv
}

func printBatch(p *printer, out *client.CheckResult, ack []string) {
	printMessages(p, out.Messages)
	switch {
	case out.DeliveryId != nil:
		p.line("%d messages, %d more waiting; acknowledge with: %s", out.Count, out.WaitingBehind, commandLine(ack))
	case out.TimedOut:
		p.line("no mail within the time")
	default:
		p.line("no mail")
	}
}

func printMessages(p *printer, messages []client.Message) {
	for _, m := range messages {
		stale := ""
		if m.Stale {
			stale = "  (stale)"
		}
		p.line("#%d  %s  %s  from %s%s", m.Seq, m.MessageId, string(m.Type), m.From, stale)
		if m.Subject != "" {
			p.line("  %s", m.Subject)
		}
		p.text(m.Body)
	}
}
