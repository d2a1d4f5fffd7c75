package agent

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
)

// profile is what is known of an agent's CLI. The user's configuration may
// change command, modes, version and env; the rest is the CLI's own nature.
type profile struct {
	command []string
	modes   map[Mode]ModeSpec
	version []string // behind the command
	env     map[string]string

	// resume are the words that continue the session {session}, mint those
	// that give a new session that id; nil where the CLI cannot.
	resume, mint []string
	// prompt are the words right before a prompt that is an argument, stdin
	// those that make the CLI read it from standard input.
	prompt map[Mode][]string
	stdin  []string
	// resumed is how the prompt gets to a session that is continued, where that
	// differs from the mode's own way.
	resumed map[Mode]Deliver
	// script is the name of the file that a shell gets the Task's text in.
	script string
	// wire makes the CLI tell its hub of its events; nil without hooks.
	wire func(wiring) wired
	// events are the CLI's hooks; read takes the JSON of one apart.
	events []event
	read   func(name string, raw []byte) (hub.AgentEvent, error)
	// carried are the files and folders of a repository from which the CLI takes
	// settings, hooks or programs to start.
	carried []string
	// title tells the state from what the TUI writes into its terminal's title.
	title func(title, osc string) (hub.AgentEventKind, bool)
}

// event is a hook of a CLI. Only a wired one is asked for: each costs the
// agent the start of a process.
type event struct {
	name  string
	kind  hub.AgentEventKind
	wired bool
}

// session stands for the session's id in resume and mint.
const session = "{session}"

// builtins are the agents of this system that need no configuration.
func builtins(windows bool) map[string]profile {
	all := map[string]profile{
		"codex": codex(), "claude": claude("claude"), "openclaude": claude("openclaude"), "grok": grok(), "gemini": gemini(),
		"opencode": opencode(), "copilot": copilot(), "cursor": cursor(), "amp": amp(), Shell: shell(),
	}
	if windows {
		all["cmd"], all["powershell"] = cmd(), powershell()
	}
	return all
}

// everywhere are the agents of all systems: what an agent says is read the same.
var everywhere = sync.OnceValue(func() map[string]profile { return builtins(true) })

// reserved are the launchers that cannot be redefined, on any system.
var reserved = []string{Shell, "cmd", "powershell"}

// Kinds returns the names of the built-in agents of this system, sorted.
func Kinds() []string {
	return slices.Sorted(maps.Keys(builtins(runtime.GOOS == "windows")))
}

// kindOf returns the kind of the event of that name, other for an unknown one.
func (p profile) kindOf(name string) hub.AgentEventKind {
	for _, e := range p.events {
		if e.name == name {
			return e.kind
		}
	}
	return hub.AgentOther
}

// wiredEvents are the names of the hooks to ask for.
func (p profile) wiredEvents() []string {
	var out []string
	for _, e := range p.events {
		if e.wired {
			out = append(out, e.name)
		}
	}
	return out
}
