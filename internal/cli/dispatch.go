package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) dispatchCommand() *cobra.Command {
	var in client.DispatchCreate
	var task, reports string
	var liveness time.Duration
	cmd := mark(&cobra.Command{
		Use:   "dispatch --task TASK --to worker:NAME",
		Short: "Give a Task to an attached worker and wait until it has taken it up",
		Long: "Commits the Dispatch to the worker's mailbox and waits (--timeout, default 60s) until the\n" +
			"worker has taken it up: state ready. A worker that is not there gets it when it comes:\n" +
			"then the state is starting, which is no failure and exits 0. NAME@PEER is a worker of a peer.",
		Example: "wavehub dispatch --task task_01j8zq4h5n6p7r8s9t0v1w2x3y --to worker:w-1\n" +
			"wavehub dispatch --task task_01j8zq4h5n6p7r8s9t0v1w2x3y --to worker:w-1@windows --timeout 5s\n" +
			"wavehub dispatch --task task_01j8zq4h5n6p7r8s9t0v1w2x3y --to worker:w-1 --dry-run",
		Args: exactly(),
	}, isMutation, isWait)
	flags := cmd.Flags()
	flags.StringVar(&task, "task", "", "the Task to attempt")
	flags.StringVar(&in.To, "to", "", "worker:NAME, worker:NAME@PEER or terminal:ID")
	flags.StringVar(&in.RetryOf, "retry-of", "", "the failed, stopped or abandoned Dispatch that this one replaces")
	flags.StringVar(&reports, "reports", "", "where lifecycle reports go: inbox or history")
	flags.BoolVar(&in.Inject, "inject", false, "write how to report into the terminal (terminals only)")
	flags.BoolVar(&in.DryRun, "dry-run", false, "only say what would be done")
	livenessFlag(cmd, &liveness)
	flags.BoolVar(&in.NoWait, "no-wait", false, "answer as soon as the Dispatch is committed")
	cmd.RunE = verb[client.StartReceipt]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.StartReceipt, error) {
			switch {
			case task == "":
				return nil, misused(cmd, "needs --task")
			case in.To == "":
				return nil, misused(cmd, "needs --to worker:NAME")
			}
			secs, err := livenessSecs(cmd, liveness)
			if err != nil {
				return nil, err
			}
			in.LivenessSecs = secs
			in.Reports, in.TimeoutMs = client.DispatchCreateReports(reports), a.waitMS()
			return s.CreateDispatch(ctx, task, in, opts...)
		},
		human: func(p *printer, r *client.StartReceipt) { printDispatched(p, in, r) }, exit: a.startExit, label: "waiting for the worker",
	}.runE(a)
	return cmd
}

func printDispatched(p *printer, in client.DispatchCreate, r *client.StartReceipt) {
	if r.DryRun {
		p.line("%s would be given to %s on %s", r.TaskId, cmp.Or(r.Worker, "that terminal"), serverName(r.Server))
		return
	}
	printReceipt(p, r)
	if r.Worker == "" && !in.Inject && r.State == "ready" {
		p.line("\nTell its worker:\n\n%s", r.Preamble)
	}
	if r.State == "starting" {
		p.line("  it waits for %s, which has not taken it up yet", r.Worker)
	}
}
