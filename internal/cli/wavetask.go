package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wavehub/wavehub/client"
)

func (a *app) waveTaskCommand() *cobra.Command {
	return group("task", "Add and change tasks of a wave",
		"wavehub wave task add w1 docs --goal \"Write the docs\" --deps api --agent codex --repo demo --worktree new-top-level",
		a.waveTaskAdd(), a.waveTaskUpdate())
}

// entryFlags are what can be declared of a task of a wave.
type entryFlags struct {
	cmd                           *cobra.Command
	goal                          *body
	dependencies, writes, reads   []string
	workspace, handoff, verifyCmd string
	timeout                       secondsFlag
	place                         placing
}

func (f *entryFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	f.goal = bodyFlags(cmd, "goal", "what is to be done")
	flags := cmd.Flags()
	flags.StringSliceVar(&f.dependencies, "deps", nil, "tasks of the wave that have to be completed first, with commas")
	flags.StringSliceVar(&f.writes, "write-scope", nil, "paths that the worker may change, with commas; * ? and ** are wildcards (--write-scope= for none)")
	flags.StringSliceVar(&f.reads, "read-scope", nil, "paths that the worker reads, with commas")
	flags.StringVar(&f.workspace, "workspace", "", "tasks of other workspaces never conflict with it")
	flags.StringVar(&f.handoff, "handoff-path", "", "file in which the worker leaves its notes")
	flags.StringVar(&f.verifyCmd, "verify-cmd", "", "command that checks the result")
	f.timeout.register(cmd, "timeout", "how long each attempt may take, in whole seconds (default: no limit, at least 1s, at most 168h0m0s)")
	f.place.register(cmd, true)
}

// list is what a list flag says; nil where it was not given, empty for none.
func (f *entryFlags) list(name string, values []string) []string {
	if !f.cmd.Flags().Changed(name) {
		return nil
	}
	return append([]string{}, values...)
}

func (a *app) waveTaskAdd() *cobra.Command {
	var f entryFlags
	cmd := mark(&cobra.Command{
		Use: "add WAVE TOKEN --goal TEXT", Short: "Add a task to a pending wave, which is planned anew as a whole", Args: exactly("WAVE", "TOKEN"),
		Example: "wavehub wave task add w1 docs --goal \"Write the docs\" --deps api --write-scope docs --worker w-1@windows",
	}, isMutation)
	f.register(cmd)
	cmd.RunE = verb[client.WaveResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WaveResult, error) {
			entry, err := f.entry(a, args[1])
			if err != nil {
				return nil, err
			}
			return s.AddWaveTask(ctx, args[0], entry, opts...)
		},
		human: printCreated, label: "planning",
	}.runE(a)
	return cmd
}

// entry is the task that the flags declare.
func (f *entryFlags) entry(a *app, token string) (client.WaveEntry, error) {
	goal, err := f.goal.read(a)
	if err == nil && goal == "" {
		err = misused(f.cmd, "needs --goal or --goal-file")
	}
	if err != nil {
		return client.WaveEntry{}, err
	}
	secs, err := f.timeout.read()
	if err != nil {
		return client.WaveEntry{}, err
	}
	worker, start, err := f.place.read()
	return client.WaveEntry{
		TaskId: token, Goal: goal, Worker: worker, Start: start, Dependencies: f.dependencies, WriteScope: f.list("write-scope", f.writes),
		ReadScope: f.reads, Workspace: f.workspace, HandoffPath: f.handoff, VerifyCmd: f.verifyCmd, TimeoutSecs: secs,
	}, err
}

func (a *app) waveTaskUpdate() *cobra.Command {
	var f entryFlags
	var status, reason string
	cmd := mark(&cobra.Command{
		Use: "update WAVE TOKEN", Short: "Change a task of a wave", Args: exactly("WAVE", "TOKEN"),
		Long: "Of a pending wave everything can be changed, and the whole is planned anew. Of a running one\n" +
			"the goal, for later attempts, and the status: a worker that runs is stopped first. A task\nthat has ended stays as it is.",
		Example: "wavehub wave task update w1 docs --status completed --reason \"done by hand\"\nwavehub wave task update w1 docs --goal-file goal.md",
	}, isMutation)
	f.register(cmd)
	cmd.Flags().StringVar(&status, "status", "", "completed, failed or cancelled")
	cmd.Flags().StringVar(&reason, "reason", "", "why the status is set")
	cmd.RunE = verb[client.WaveResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WaveResult, error) {
			in, err := f.update(a)
			if err != nil {
				return nil, err
			}
			in.Status, in.Reason = client.WaveTaskUpdateStatus(status), reason
			return s.UpdateWaveTask(ctx, args[0], args[1], in, opts...)
		},
		human: printCreated, label: "planning",
	}.runE(a)
	return cmd
}

// update is what the flags that were given change.
func (f *entryFlags) update(a *app) (in client.WaveTaskUpdate, err error) {
	changed := false
	f.cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) { changed = changed || flag.Changed })
	if !changed {
		return in, misused(f.cmd, "needs something to change, such as --goal or --status")
	}
	if in.Goal, err = f.goal.read(a); err != nil {
		return in, err
	}
	if in.Worker, in.Start, err = f.place.read(); err != nil {
		return in, err
	}
	if in.TimeoutSecs, err = f.timeout.read(); err != nil {
		return in, err
	}
	for name, c := range map[string]struct {
		values []string
		into   **[]string
	}{"deps": {f.dependencies, &in.Dependencies}, "write-scope": {f.writes, &in.WriteScope}, "read-scope": {f.reads, &in.ReadScope}} {
		if values := f.list(name, c.values); values != nil {
			*c.into = &values
		}
	}
	for name, c := range map[string]struct {
		value string
		into  **string
	}{"workspace": {f.workspace, &in.Workspace}, "handoff-path": {f.handoff, &in.HandoffPath}, "verify-cmd": {f.verifyCmd, &in.VerifyCmd}} {
		if f.cmd.Flags().Changed(name) {
			*c.into = &c.value
		}
	}
	return in, nil
}
