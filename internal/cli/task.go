package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) taskCommand() *cobra.Command {
	return group("task", "Create and show Tasks: what is to be done",
		"wavehub task create --spec \"go vet ./...\"",
		a.taskCreate(), a.taskList(), a.taskShow(), a.taskUpdate(), a.taskCancel())
}

type taskFlags struct {
	spec                      *body
	title, verifyCmd, handoff string
	verify, scope             string
	dependencies, writeScope  []string
	verifyTimeout             int64
}

func (a *app) taskCreate() *cobra.Command {
	var f taskFlags
	cmd := mark(&cobra.Command{
		Use:     "create --spec TEXT",
		Short:   "Create a Task; nothing starts",
		Example: "wavehub task create --spec \"go vet ./...\" --title vet\nwavehub task create --spec-file task.md --verify-cmd \"go test ./...\" --verify required\nwavehub task create --spec \"tidy the docs\" --write-scope docs,README.md --scope enforce",
		Args:    exactly(),
	}, isMutation)
	f.register(cmd)
	cmd.RunE = verb[client.TaskResult]{call: a.createTask(cmd, &f), human: func(p *printer, out *client.TaskResult) { printTask(p, out.Task) }}.runE(a)
	return cmd
}

func (f *taskFlags) register(cmd *cobra.Command) {
	f.spec = bodyFlags(cmd, "spec", "what is to be done")
	flags := cmd.Flags()
	flags.StringVar(&f.title, "title", "", "a short name (default: from the spec)")
	flags.StringSliceVar(&f.dependencies, "deps", nil, "Tasks that have to be completed first, with commas")
	flags.StringVar(&f.verifyCmd, "verify-cmd", "", "command that checks the result: the worker's hub runs it before a success counts")
	flags.StringVar(&f.verify, "verify", "", "what a check that is not passed means: record, or required (the Dispatch fails)")
	flags.Int64Var(&f.verifyTimeout, "verify-timeout-secs", 0, "limit of the check, in seconds (0: the worker's hub's)")
	flags.StringSliceVar(&f.writeScope, "write-scope", nil, "paths that the worker may change, with commas; * ? and ** are wildcards")
	flags.StringVar(&f.scope, "scope", "", "what a change outside means: advisory, or enforce (the Dispatch fails)")
	flags.StringVar(&f.handoff, "handoff-path", "", "file in which the worker leaves its notes")
}

// task is the Task that the flags describe.
func (f *taskFlags) task(a *app, cmd *cobra.Command) (client.TaskCreate, error) {
	spec, err := f.spec.read(a)
	if err == nil && spec == "" {
		err = misused(cmd, "needs --spec or --spec-file")
	}
	return client.TaskCreate{
		Spec: spec, Title: f.title, Dependencies: f.dependencies, VerifyCmd: f.verifyCmd,
		Verify: client.TaskCreateVerify(f.verify), VerifyTimeoutSecs: f.verifyTimeout, WriteScope: f.writeScope, Scope: client.TaskCreateScope(f.scope), HandoffPath: f.handoff,
	}, err
}

func (a *app) createTask(cmd *cobra.Command, f *taskFlags) func(context.Context, *session, []string, ...client.Option) (*client.TaskResult, error) {
	return func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.TaskResult, error) {
		in, err := f.task(a, cmd)
		if err != nil {
			return nil, err
		}
		run, err := a.resolveRun(ctx, s)
		if err != nil {
			return nil, err
		}
		return s.CreateTask(ctx, run, in, opts...)
	}
}

func (a *app) taskList() *cobra.Command {
	var page client.Page
	var state string
	cmd := &cobra.Command{
		Use: "list", Short: "List the Run's Tasks", Args: exactly(),
		Example: "wavehub task list\nwavehub task list --state ready",
	}
	pageFlags(cmd, &page)
	cmd.Flags().StringVar(&state, "state", "", "pending, ready, dispatched, completed, failed, blocked or cancelled")
	cmd.RunE = verb[client.TaskPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.TaskPage, error) {
			run, err := a.resolveRun(ctx, s)
			if err != nil {
				return nil, err
			}
			return s.Tasks(ctx, run, client.TaskState(state), page, opts...)
		},
		human: func(p *printer, out *client.TaskPage) {
			list(p, []string{"TASK", "STATE", "DISPATCH", "TITLE"}, out.Tasks, out.NextCursor, func(t client.Task) []string {
				return []string{t.TaskId, string(t.State), or(t.LatestDispatchId, "-"), t.Title}
			})
		},
	}.runE(a)
	return cmd
}

func (a *app) taskUpdate() *cobra.Command {
	var title, state, ifMatch string
	cmd := mark(&cobra.Command{
		Use:     "update TASK",
		Short:   "Change a Task's text or, while no Dispatch of it is live, its state",
		Example: "wavehub task update task_01j8zq4h5n6p7r8s9t0v1w2x3y --title \"vet, again\"\nwavehub task update task_01j8zq4h5n6p7r8s9t0v1w2x3y --state ready",
		Args:    exactly("TASK"),
	}, isMutation)
	spec := bodyFlags(cmd, "spec", "what is to be done")
	flags := cmd.Flags()
	flags.StringVar(&title, "title", "", "a short name")
	flags.StringVar(&state, "state", "", "ready (reopens it), completed, failed or cancelled")
	flags.StringVar(&ifMatch, "if-match", "", "only if the Task is at this version: its ETag, or its version as task show prints it")
	cmd.RunE = verb[client.TaskResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TaskResult, error) {
			text, err := spec.read(a)
			if err != nil {
				return nil, err
			}
			if text == "" && title == "" && state == "" {
				return nil, misused(cmd, "needs --title, --spec or --state")
			}
			in := client.TaskUpdate{Title: title, Spec: text, State: client.TaskUpdateState(state)}
			return s.UpdateTask(ctx, args[0], etag(ifMatch), in, opts...)
		},
		human: func(p *printer, out *client.TaskResult) { printTask(p, out.Task) },
	}.runE(a)
	return cmd
}

// etag is the ETag of a version that is given without its quotes, or as the
// number that --json prints; any other text is left for the hub to judge.
func etag(version string) string {
	number := strings.TrimPrefix(version, "v")
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return version
	}
	return `"v` + number + `"`
}

func (a *app) taskCancel() *cobra.Command {
	return mark(&cobra.Command{
		Use:     "cancel TASK",
		Short:   "Set a Task that nobody works on to cancelled",
		Example: "wavehub task cancel task_01j8zq4h5n6p7r8s9t0v1w2x3y",
		Args:    exactly("TASK"),
		RunE: verb[client.TaskResult]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TaskResult, error) {
				return s.UpdateTask(ctx, args[0], "", client.TaskUpdate{State: "cancelled"}, opts...)
			},
			human: func(p *printer, out *client.TaskResult) { printTask(p, out.Task) },
		}.runE(a),
	}, isMutation)
}

func (a *app) taskShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show TASK",
		Short:   "Show one Task",
		Example: "wavehub task show task_01j8zq4h5n6p7r8s9t0v1w2x3y",
		Args:    exactly("TASK"),
		RunE: verb[client.TaskOnly]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TaskOnly, error) {
				return s.Task(ctx, args[0], opts...)
			},
			human: func(p *printer, out *client.TaskOnly) {
				printTask(p, out.Task)
				if out.LatestDispatch != nil {
					printFindings(p, out.LatestDispatch.Findings)
				}
				p.text(out.Task.Spec)
				if result := or(out.Task.Result, ""); result != "" {
					p.line("result, as the worker reported it:")
					p.text(result)
				}
				if data := out.Task.ResultData; len(data) > 0 && string(data) != "null" {
					p.line("with the result:")
					p.text(string(data))
				}
			},
		}.runE(a),
	}
}

func printTask(p *printer, t client.Task) {
	p.line("%s  %s  %s", t.TaskId, string(t.State), t.Title)
	p.line("  version %q", fmt.Sprintf("v%d", t.Version))
	for _, dependency := range t.Dependencies {
		p.line("  after %s", dependency)
	}
	if t.LatestDispatchId != nil {
		p.line("  latest dispatch %s", *t.LatestDispatchId)
	}
	printChecks(p, t)
}
