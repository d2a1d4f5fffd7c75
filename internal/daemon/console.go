package daemon

import (
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/agent"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
	"github.com/wavehub/wavehub/internal/work"
)

// termName is what processes in a pseudo terminal are told that it is.
const termName = "xterm-256color"

// Occupy is what runs in a terminal without a Dispatch; it implements
// work.Console.
func (a agents) Occupy(in work.Occupancy) (hub.LaunchSpec, error) {
	l, argv, err := a.occupant(in)
	if err != nil {
		return hub.LaunchSpec{}, err
	}
	own := placeOfHub()
	for k, v := range in.Env {
		own[k] = v
	}
	own["TERM"] = termName
	return hub.LaunchSpec{Terminal: in.Terminal, Argv: argv, Dir: in.Dir, PTY: &in.Size, Env: a.environment(l, own)}, nil
}

// occupant is the program: an agent as a person starts it, without a prompt, or
// a command line or none for the user's shell.
func (a agents) occupant(in work.Occupancy) (agent.Launcher, []string, error) {
	if in.Agent != "" {
		l, err := a.table.Lookup(in.Agent)
		return l, l.Command, err
	}
	shell, err := userShell(a.table)
	if err != nil || in.Command == "" {
		return agent.Launcher{}, shell, err
	}
	argv, err := commandLine(a.table, in.Command)
	return agent.Launcher{}, argv, err
}

// placeOfHub are the variables by which a program finds this hub. They are no
// credentials: the operator's token is a file that only his user can read.
func placeOfHub() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"WAVEHUB_HOME", "WAVEHUB_CONFIG_DIR", "WAVEHUB_DATA_DIR"} {
		if v := os.Getenv(name); v != "" {
			if abs, err := filepath.Abs(v); err == nil { // it was resolved from this folder before
				out[name] = abs
			}
		}
	}
	return out
}

// Preamble implements work.Console.
func (a agents) Preamble(in work.Launch) string {
	return agent.Preamble(agent.PreambleInput{Worktree: in.Dir, Task: in.Task, Dispatch: in.Dispatch, Bin: a.bin, Spec: in.Prompt})
}

// Pointer implements work.Console.
func (agents) Pointer(private, text string) (string, error) {
	file := filepath.Join(private, agent.PromptFile)
	if err := safefile.WriteAtomic(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	return agent.Pointer(file), nil
}
