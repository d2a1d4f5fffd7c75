package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

type startFlags struct {
	task                 string
	fresh                taskFlags
	in                   client.WorkerStart
	mode, setup, reports string
	liveness             time.Duration
}

func (a *app) workerStart() *cobra.Command {
	var f startFlags
	cmd := mark(&cobra.Command{
		Use:   "start (--task TASK | --spec TEXT) --worktree WHERE (--agent NAME | --terminal TERM)",
		Short: "Start a worker for a Task and wait until it is ready",
		Long: "Starts one supervised attempt at a Task and waits for the outcome of the start:\n" +
			"exit code 0 ready, 1 failed, 10 when it is unknown whether the worker runs.\n\n" +
			"With --spec the start creates its Task: refused, it leaves none. A new worktree is then\n" +
			"named after the Task unless --name says otherwise.\n\n" +
			"WHERE is current, new-child, new-top-level, id:WORKTREE, path:PATH or a worktree's name.",
		Example: "wavehub worker start --spec \"go vet ./...\" --title vet --worktree new-top-level --agent sh\n" +
			"wavehub worker start --task task_01j8zq4h5n6p7r8s9t0v1w2x3y --repo demo --worktree new-top-level --name vet --agent sh\n" +
			"wavehub worker start --task task_01j8zq4h5n6p7r8s9t0v1w2x3y --on windows --repo demo --worktree new-top-level --name vet --agent sh --timeout 60s\n" +
			"wavehub worker start --task task_01j8zq4h5n6p7r8s9t0v1w2x3y --worktree current --agent claude",
		Args: exactly(),
	}, isMutation, isWait)
	f.register(cmd)
	cmd.RunE = verb[client.StartReceipt]{
		call: a.startWorker(cmd, &f), human: printReceipt, exit: a.startExit, label: "starting",
	}.runE(a)
	return cmd
}

func (f *startFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.task, "task", "", "the Task to attempt")
	f.fresh.register(cmd)
	flags.StringVar(&f.in.On, "on", "", "name or id of the peer to run on (default: this hub)")
	flags.StringVar(&f.in.Repo, "repo", "", "repository: name, id or path on that hub")
	flags.StringVar(&f.in.Worktree, "worktree", "", "current, new-child, new-top-level, id:…, path:… or a name")
	flags.StringVar(&f.in.Name, "name", "", "name of the new worktree")
	flags.StringVar(&f.in.Base, "base", "", "ref that the new worktree starts from")
	flags.StringVar(&f.in.Parent, "parent", "", "parent worktree of new-child: id:…, path:… or a name (default: this folder's)")
	flags.StringVar(&f.in.Agent, "agent", "", "launcher to start, such as sh, claude or codex")
	flags.StringVar(&f.mode, "mode", "", "tui (in a terminal) or headless (default: the launcher's)")
	flags.BoolVar(&f.in.ResumeSession, "resume-session", false, "with --retry-of: the agent goes on with its own session")
	flags.StringVar(&f.in.Terminal, "terminal", "", "existing terminal whose agent gets the Task, instead of --agent")
	flags.StringVar(&f.setup, "setup", "", "the repository's setup hook in a new worktree: run, skip or inherit (default: run)")
	flags.StringVar(&f.in.DisplayName, "display-name", "", "name to show to people")
	flags.StringVar(&f.in.Comment, "comment", "", "note kept with the Dispatch")
	flags.StringVar(&f.reports, "reports", "", "where lifecycle reports go: inbox or history")
	flags.StringVar(&f.in.RetryOf, "retry-of", "", "the failed, stopped or abandoned Dispatch that this one replaces")
	flags.BoolVar(&f.in.MayCoordinate, "may-coordinate", false, "let the worker create one child Run and coordinate it, within its own repository")
	livenessFlag(cmd, &f.liveness)
	flags.BoolVar(&f.in.NoWait, "no-wait", false, "answer as soon as the start is recorded")
}

func (a *app) startWorker(cmd *cobra.Command, f *startFlags) func(context.Context, *session, []string, ...client.Option) (*client.StartReceipt, error) {
	return func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.StartReceipt, error) {
		if err := f.check(cmd); err != nil {
			return nil, err
		}
		in := f.in
		var err error
		if in.LivenessSecs, err = livenessSecs(cmd, f.liveness); err != nil {
			return nil, err
		}
		in.Mode, in.Setup, in.Reports, in.TimeoutMs = client.WorkerStartMode(f.mode), client.WorkerStartSetup(f.setup), client.WorkerStartReports(f.reports), a.waitMS()
		if placedByFolder(in) {
			dir, err := os.Getwd()
			if err != nil {
				return nil, fmt.Errorf("finding the working directory: %w", err)
			}
			in.CurrentDir = dir
		}
		if f.task == "" {
			return a.startSpec(ctx, s, cmd, f, in, opts...)
		}
		return s.StartWorker(ctx, f.task, in, opts...)
	}
}

// placedByFolder reports whether the working directory is a part of what is
// asked for: else the same command means the same in every folder.
func placedByFolder(in client.WorkerStart) bool {
	switch {
	case in.On != "":
		return false
	case in.Worktree == "new-child":
		return in.Repo == "" || in.Parent == ""
	case in.Worktree == "new-top-level":
		return in.Repo == ""
	}
	return in.Worktree == "current"
}

func (a *app) startExit(r *client.StartReceipt) error {
	switch r.State {
	case "failed":
		return exitCode(1)
	case "outcome_unknown":
		return unknownOutcome(r.Mutation.RequestId, "it is not known whether the worker of %s has started: %s", r.DispatchId, or(r.LastError, "no proof either way"))
	}
	return nil
}

// unknownOutcome is what an answer means that has a receipt, but no proof.
func unknownOutcome(requestID, format string, args ...any) error {
	e := client.Errorf(client.CodeOutcomeUnknown, format, args...)
	e.RequestID = requestID
	e.Hint = "the same command under the same request id looks again; it starts nothing twice"
	return e
}

func printReceipt(p *printer, r *client.StartReceipt) {
	p.line("%s  %s  on %s", r.DispatchId, string(r.State), serverName(r.Server))
	if r.LastError != nil {
		p.line("  %s: %s", or(r.FailedStage, r.Stage), *r.LastError)
	}
	for _, e := range r.Effects {
		p.line("  %s %s %s", e.Action, string(e.Kind), e.Id)
	}
	if r.Setup.State != "not_applicable" {
		p.line("  setup: %s", string(r.Setup.State))
	}
	printLeftovers(p, r.ResidualResources, r.NextCommands)
	for _, d := range r.Defaults {
		p.line("  %s: %s (%s)", d.Field, d.Value, d.Source)
	}
	for _, w := range r.Warnings {
		p.line("  warning: %s", w)
	}
}

func printLeftovers(p *printer, residuals []client.Resource, next [][]string) {
	for _, r := range residuals {
		p.line("%s", strings.TrimRight("  left over: "+string(r.Kind)+" "+r.Id+" "+string(r.Liveness), " "))
	}
	for _, argv := range next {
		p.line("  next: %s", commandLine(argv))
	}
}

func serverName(s client.Server) string {
	if s.PeerId == nil {
		return "this hub"
	}
	return s.Name
}
