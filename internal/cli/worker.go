package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

const exampleDispatch = "dispatch_01j8zq4h5n6p7r8s9t0v1w2x3y"

func (a *app) workerCommand() *cobra.Command {
	return group("worker", "Start, watch and end workers: supervised attempts at a Task",
		"wavehub worker list",
		a.workerStart(), a.workerList(), a.workerShow(), a.workerRead(), a.workerWait(), a.workerStop(), a.workerAbandon())
}

func (a *app) workerList() *cobra.Command {
	var page client.Page
	var task string
	var live bool
	cmd := mark(&cobra.Command{
		Use: "list", Short: "List Dispatches, newest first", Args: exactly(),
		Long: "Lists the Dispatches of all Runs, or of the one given with --run. Of live ones it says what\n" +
			"their owners said last of link, process, output and report; nobody is asked.",
		Example: "wavehub worker list\nwavehub worker list --live",
	}, isProxied)
	pageFlags(cmd, &page)
	cmd.Flags().StringVar(&task, "task", "", "only of this Task")
	cmd.Flags().BoolVar(&live, "live", false, "only those without a final state")
	cmd.RunE = verb[client.DispatchPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.DispatchPage, error) {
			return s.Dispatches(ctx, client.DispatchFilter{Run: a.flags.run, Task: task, Live: live}, page, opts...)
		},
		human: func(p *printer, out *client.DispatchPage) {
			columns := []string{"DISPATCH", "STATE", "HUB", "TASK", "REASON", "LINK", "PROCESS", "OUTPUT", "REPORT"}
			list(p, columns, out.Dispatches, out.NextCursor, func(d client.Dispatch) []string {
				row := []string{d.DispatchId, string(d.State), a.server(d.Server), d.TaskId, or(d.Reason, "-")}
				return append(row, inList(d.Observation)...)
			})
		},
	}.runE(a)
	return cmd
}

func (a *app) workerShow() *cobra.Command {
	return mark(&cobra.Command{
		Use:     "show DISPATCH",
		Short:   "Show one Dispatch and what can be said of its worker now",
		Example: "wavehub worker show " + exampleDispatch,
		Args:    exactly("DISPATCH"),
		RunE: verb[client.DispatchDetail]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.DispatchDetail, error) {
				return s.Dispatch(ctx, args[0], opts...)
			},
			human: a.printDispatch,
		}.runE(a),
	}, isProxied)
}

func (a *app) printDispatch(p *printer, out *client.DispatchDetail) {
	d, o := out.Dispatch, out.Observation
	p.line("%s  %s  on %s", d.DispatchId, string(d.State), a.server(d.Server))
	p.line("  task %s, run %s", d.TaskId, d.RunId)
	if d.Reason != nil {
		p.line("  reason: %s", *d.Reason)
	}
	if d.Outcome != nil {
		p.line("  outcome: %s", *d.Outcome)
	}
	printObservation(p, o)
	if out.RelayParked != "" {
		p.line("  relay parked: %s", out.RelayParked)
	}
	printFindings(p, d.Findings)
	if s := out.Receipt.Setup; s.State != "not_applicable" {
		p.line("  setup %s", string(s.State))
	}
	printLeftovers(p, out.Receipt.ResidualResources, out.Receipt.NextCommands)
}

func (a *app) workerStop() *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: "stop DISPATCH", Short: "Fence the Dispatch and end exactly its process tree", Args: exactly("DISPATCH"),
		Long:    "Exit code 0 when the end is proven or the Dispatch had settled before, 10 when the end\ncannot be proven (stop_unknown); the same command looks again.",
		Example: "wavehub worker stop " + exampleDispatch + " --timeout 30s",
	}, isMutation, isWait)
	cmd.RunE = verb[client.StopResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.StopResult, error) {
			return s.StopWorker(ctx, args[0], client.WorkerStop{TimeoutMs: a.waitMS()}, opts...)
		},
		human: printStop,
		exit: func(r *client.StopResult) error {
			if r.State != client.DispatchStateStopUnknown && r.State != client.DispatchStateStopping {
				return nil
			}
			return unknownOutcome(r.Mutation.RequestId, "the end of %s is not proven: %s", r.DispatchId, or(r.LastError, "no proof either way"))
		},
		label: "stopping",
	}.runE(a)
	return cmd
}

func (a *app) workerAbandon() *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: "abandon DISPATCH", Short: "Give a Dispatch up without a signal to any process", Args: exactly("DISPATCH"),
		Example: "wavehub worker abandon " + exampleDispatch,
	}, isMutation)
	cmd.RunE = verb[client.StopResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.StopResult, error) {
			return s.AbandonWorker(ctx, args[0], opts...)
		},
		human: printStop,
	}.runE(a)
	return cmd
}

func printStop(p *printer, r *client.StopResult) {
	p.line("%s  %s", r.DispatchId, string(r.State))
	if r.AlreadySettled {
		p.line("  it had settled before; nothing was changed")
	}
	if r.LastError != nil {
		p.line("  %s", *r.LastError)
	}
	if r.Warning != "" {
		p.line("  warning: %s", r.Warning)
	}
	printLeftovers(p, r.ResidualResources, r.NextCommands)
}
