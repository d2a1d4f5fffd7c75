package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// Mode is in which form an agent is started.
type Mode string

// The modes of an agent.
const (
	ModeTUI      Mode = "tui"      // its interface for people, in a terminal
	ModeHeadless Mode = "headless" // without one, over pipes
)

// Deliver is how the first task reaches the process.
type Deliver string

// The ways of handing over. Only paste types into a terminal.
const (
	DeliverStdin Deliver = "stdin" // written to standard input, then closed
	DeliverArgv  Deliver = "argv"  // the last argument
	DeliverFile  Deliver = "file"  // a file whose path is the last argument
	DeliverPaste Deliver = "paste" // pasted into the terminal by the caller
)

// Ready is what shows that an agent takes input.
type Ready string

// The signs of readiness.
const (
	ReadyLaunch     Ready = "launch"     // the process runs
	ReadyHook       Ready = "hook"       // its first hook
	ReadyTitle      Ready = "title"      // the state in its terminal's title
	ReadyQuiescence Ready = "quiescence" // its output has come to rest: a hint only
)

// Completion is what ends an attempt if no report came before.
type Completion string

// The kinds of completion. A report counts first for all of them.
const (
	CompleteByReport Completion = "report" // an exit without a report is a failure
	CompleteByResult Completion = "result" // the terminal record of the output stream
	CompleteByExit   Completion = "exit"   // exit 0 succeeded, any other code failed
)

// The kinds of structured output that NewStream reads.
const (
	StreamClaude   = "claude-stream"
	StreamCodex    = "codex-json"
	StreamGemini   = "gemini-stream"
	StreamOpencode = "opencode-json"
	StreamGrok     = "grok-json"
)

// DefaultGrace is the time between the request to end and the kill.
const DefaultGrace = 5 * time.Second

// ModeSpec is how an agent is run in one mode. In a Definition an empty field
// (nil for Args) leaves the built-in's choice.
type ModeSpec struct {
	Args    []string // behind the command, before everything of the hub's
	Deliver Deliver
	Ready   Ready
	Result  string // kind of its output stream, "" for none
}

// Definition is a launcher as the user's configuration states it. With the
// name of a built-in, or with Like, it changes that one field by field; without
// either, or with Deliver, it is a launcher of its own.
type Definition struct {
	// Like is the built-in to begin from.
	Like string
	// Command is the program, a bare name for PATH or an absolute path, and
	// its fixed arguments.
	Command []string
	// Mode is the default; empty takes tui where the agent has it.
	Mode  Mode
	Modes map[Mode]ModeSpec
	// Deliver is the flat form: one mode without arguments of its own.
	Deliver Deliver
	// Completion is the same for all modes; empty takes each mode's default.
	Completion Completion
	Env        map[string]string
	Grace      time.Duration // 0: DefaultGrace
	Version    []string      // argv that prints the version
	// Bare hands over the Task's text alone, without the preamble; nil leaves
	// the built-in's choice.
	Bare *bool
}

// Launcher is a configured agent whose program has been found.
type Launcher struct {
	Name    string
	Kind    string   // the built-in whose ways it has; Name for one of its own
	Command []string // Command[0] is absolute
	Modes   map[Mode]ModeSpec
	Default Mode
	Env     map[string]string // not to be changed
	Grace   time.Duration
	Bare    bool

	completion Completion // the user's choice for all modes, or ""
	profile    profile    // what is known of the Kind's CLI
}

// In resolves a mode, "" being the default. A mode that the agent does not
// have is invalid_argument.
func (l Launcher) In(mode Mode) (Mode, error) {
	if mode == "" {
		mode = l.Default
	}
	if _, ok := l.Modes[mode]; !ok {
		return "", hub.Invalid("mode", "agent %q has no mode %q, only %s", l.Name, mode, strings.Join(names(l.Modes), " and "))
	}
	return mode, nil
}

// Carried are the paths, relative to a repository's root and with slashes, from
// which the agent takes settings, hooks or programs to start.
func (l Launcher) Carried() []string { return slices.Clone(l.profile.carried) }

// CompletionIn is what ends an attempt in a mode that the agent has: the
// user's choice, else report, result or exit by what the mode gives.
func (l Launcher) CompletionIn(mode Mode) Completion {
	return completionIn(l.completion, l.profile.script != "", l.Modes[mode])
}

func completionIn(chosen Completion, script bool, spec ModeSpec) Completion {
	switch {
	case chosen == CompleteByResult && spec.Result == "":
		return CompleteByReport
	case chosen != "":
		return chosen
	case script:
		return CompleteByExit
	case spec.Result != "":
		return CompleteByResult
	}
	return CompleteByReport
}

func names(modes map[Mode]ModeSpec) []string {
	out := make([]string, 0, len(modes))
	for mode := range modes {
		out = append(out, string(mode))
	}
	slices.Sort(out)
	return out
}
