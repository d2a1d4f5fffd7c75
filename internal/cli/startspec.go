package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wavehub/wavehub/client"
)

// ofTask are the flags of worker start that describe the Task it creates.
var ofTask = []string{"spec", "spec-file", "title", "deps", "verify-cmd", "verify", "write-scope", "scope", "handoff-path"}

// check demands a Task, one that is there or one to create, and a place.
func (f *startFlags) check(cmd *cobra.Command) error {
	described := ""
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if described == "" && slices.Contains(ofTask, flag.Name) {
			described = flag.Name
		}
	})
	switch {
	case f.task != "" && described != "":
		return misused(cmd, "takes --task or --%s, not both: the Task is there already", described)
	case f.task == "" && described == "":
		return misused(cmd, "needs --task or --spec")
	case f.in.Worktree == "":
		return misused(cmd, "needs --worktree: current, new-child, new-top-level, id:…, path:… or a name")
	}
	return nil
}

// startSpec starts a worker for a Task that the start creates.
func (a *app) startSpec(ctx context.Context, s *session, cmd *cobra.Command, f *startFlags, in client.WorkerStart, opts ...client.Option) (*client.StartReceipt, error) {
	task, err := f.fresh.task(a, cmd)
	if err != nil {
		return nil, err
	}
	run, err := a.resolveRun(ctx, s)
	if err != nil {
		return nil, err
	}
	return s.StartTask(ctx, run, client.TaskStart{Task: task, Start: in}, opts...)
}
