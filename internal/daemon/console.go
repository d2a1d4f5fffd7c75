package daemon

import (
	"maps"
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
	own := placeOfHub()
	maps.Copy(own, in.Env)
	plan, err := a.occupant(in, own)
	if err != nil {
		return hub.LaunchSpec{}, err
	}
	if err := writeFiles(plan); err != nil {
		return hub.LaunchSpec{}, err
	}
	return hub.LaunchSpec{Terminal: in.Terminal, Argv: plan.Argv, Dir: in.Dir, PTY: &in.Size, Env: a.environment(plan.Env)}, nil
}

// occupant is the program: an agent as a person starts it, without a prompt, or
// a command line or none for the user's shell.
func (a agents) occupant(in work.Occupancy, own map[string]string) (agent.Plan, error) {
	if in.Agent != "" {
		l, err := a.table.Lookup(in.Agent)
		if err != nil {
			return agent.Plan{}, err
		}
		return l.Occupy(agent.Input{PromptDir: in.Private, Bin: a.bin, Env: own})
	}
	own["TERM"] = termName
	shell, err := userShell(a.table)
	if err != nil || in.Command == "" {
		return agent.Plan{Argv: shell, Env: own}, err
	}
	argv, err := commandLine(a.table, in.Command)
	return agent.Plan{Argv: argv, Env: own}, err
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
	return a.preamble(in)
}

// Pointer implements work.Console.
func (agents) Pointer(private, text string) (string, error) {
	file := filepath.Join(private, agent.PromptFile)
	if err := safefile.WriteAtomic(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	return agent.Pointer(file), nil
}
