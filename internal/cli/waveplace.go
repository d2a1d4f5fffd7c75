package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// placing is the flags that say who does a task: an attached worker, or one
// that is started as worker start does.
type placing struct {
	cmd    *cobra.Command
	worker string
	start  client.WaveStart
}

// startNames are the flags of a start.
var startNames = []string{"agent", "on", "repo", "worktree", "name", "base", "parent", "setup", "terminal"}

// register adds the flags. Those of one task have also what no two tasks may share.
func (f *placing) register(cmd *cobra.Command, oneTask bool) {
	f.cmd = cmd
	flags, of := cmd.Flags(), " of tasks that do not say it"
	if oneTask {
		of = ""
		flags.StringVar(&f.start.Name, "name", "", "name of the new worktree")
		flags.StringVar(&f.start.Parent, "parent", "", "parent worktree of new-child")
		flags.StringVar(&f.start.Terminal, "terminal", "", "existing terminal whose agent gets the task, instead of --agent")
	}
	flags.StringVar(&f.worker, "worker", "", "attached worker"+of+": NAME or NAME@PEER")
	flags.StringVar(&f.start.Agent, "agent", "", "launcher"+of+", such as sh, claude or codex")
	flags.StringVar(&f.start.On, "on", "", "peer"+of+" (default: this hub)")
	flags.StringVar(&f.start.Repo, "repo", "", "repository"+of+": name, id or path on that hub")
	flags.StringVar(&f.start.Worktree, "worktree", "", "worktree"+of+": new-top-level, id:…, path:… or a name")
	flags.StringVar(&f.start.Base, "base", "", "ref that new worktrees start from"+of)
	flags.StringVar(&f.start.Setup, "setup", "", "setup hook in new worktrees"+of+": run, skip or inherit")
}

// read is the worker or the start that was given, neither where none was.
func (f *placing) read() (worker string, start *client.WaveStart, err error) {
	i := slices.IndexFunc(startNames, func(name string) bool { return f.cmd.Flags().Changed(name) })
	switch {
	case f.worker != "" && i >= 0:
		return "", nil, ofFlag(f.cmd, startNames[i], "takes --worker or --%s, not both: an attached worker has its place", startNames[i])
	case f.worker != "" || i < 0:
		return f.worker, nil, nil
	case f.start.Agent == "" && f.start.Terminal == "":
		return "", nil, ofFlag(f.cmd, "agent", "needs --agent with --%s", startNames[i])
	}
	out := f.start
	out.Worktree, err = hereOf(out)
	return "", &out, err
}

// hereOf is the worktree of a start with what it says of the current folder made
// absolute: the hub does not know the caller's.
func hereOf(s client.WaveStart) (string, error) {
	path, relative := strings.CutPrefix(s.Worktree, "path:")
	switch {
	case s.On != "":
		return s.Worktree, nil
	case s.Worktree == "current":
		dir, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("finding the working directory: %w", err)
		}
		return "path:" + dir, nil
	case relative && !filepath.IsAbs(path):
		abs, err := absolute("worktree", path)
		if err != nil {
			return "", err
		}
		return "path:" + abs[0], nil
	}
	return s.Worktree, nil
}
