package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// codex is OpenAI's codex, as run with 0.171.0. Outside a git repository exec
// refuses to begin, although the caller chose the folder: the check is skipped,
// which allows the agent nothing more. In the TUI the first hook comes with
// the first prompt.
func codex() profile {
	return profile{
		command: []string{"codex"},
		modes: map[Mode]ModeSpec{
			ModeTUI:      {Deliver: DeliverArgv, Ready: ReadyHook},
			ModeHeadless: {Args: []string{"exec", "--json", "--skip-git-repo-check"}, Deliver: DeliverStdin, Ready: ReadyLaunch, Result: StreamCodex},
		},
		version: []string{"--version"},
		resume:  []string{"resume", session},
		stdin:   []string{"-"},
		wire:    wireCodex,
		read:    readCodex,
		title:   codexTitle,
		carried: []string{".codex"},
		events: []event{
			{"SessionStart", hub.AgentSessionStarted, true},
			{"UserPromptSubmit", hub.AgentTurnStarted, true},
			{"PreToolUse", hub.AgentToolStarted, false},
			{"PostToolUse", hub.AgentToolEnded, true},
			{"PermissionRequest", hub.AgentPermission, true},
			{"Stop", hub.AgentTurnEnded, true},
			{"Interrupt", hub.AgentIdle, true}, // the turn was broken off by a person
			{"SessionEnd", hub.AgentSessionEnded, true},
			{codexNotify, hub.AgentTurnEnded, false},
		},
	}
}

// codexNotify is the name that a notify program of the user's calls the hook
// by. It is not wired: it would displace the user's own.
const codexNotify = "notify"

// codexEndSeconds is the most that codex allows its last hooks.
const codexEndSeconds = 3

// wireCodex keeps the TUI from using one background server, and with it one
// environment, for all workers, and adds the hooks. Codex runs no hook that
// nobody has reviewed; ours are trusted by their exact hash, for this process
// only, so that hooks of the user or of a repository are reviewed as ever.
// The hub's variables are set for its shell tool even where the user lets it
// inherit only a core.
func wireCodex(w wiring) wired {
	var out wired
	if w.mode == ModeTUI {
		out.args = append(out.args, "--no-daemon")
	}
	states := make([]string, 0, len(w.events))
	for _, name := range w.events {
		command, seconds := w.shellCommand(name), hookSeconds
		if name == "SessionEnd" || name == "Interrupt" {
			seconds = codexEndSeconds
		}
		handler := `{type="command",command=` + toml(command) + `,timeout=` + strconv.Itoa(seconds) + `}`
		out.args = append(out.args, "-c", "hooks."+name+"=[{hooks=["+handler+"]}]")
		states = append(states, toml(codexHookKey(name, w.windows))+`={trusted_hash=`+toml(codexHookHash(name, command, seconds))+`}`)
	}
	out.args = append(out.args, "-c", "hooks.state={"+strings.Join(states, ",")+"}")
	for _, name := range slices.Sorted(maps.Keys(w.own)) {
		out.args = append(out.args, "-c", "shell_environment_policy.set."+name+"="+toml(w.own[name]))
	}
	return out
}

// codexHookKey is how codex names the only hook of an event that came by -c.
func codexHookKey(event string, windows bool) string {
	layer := "/<session-flags>/config.toml"
	if windows {
		layer = `C:\<session-flags>\config.toml`
	}
	return layer + ":" + snake(event) + ":0:0"
}

// codexHookHash is codex's identity of a hook: the hash of its normal form.
func codexHookHash(event, command string, seconds int) string {
	sum := sha256.Sum256(compact(map[string]any{
		"event_name": snake(event),
		"hooks":      []any{map[string]any{"async": false, "command": command, "timeout": seconds, "type": "command"}},
	}))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// snake turns SessionStart into session_start.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// toml is a basic string; JSON's are the same but for DEL.
func toml(s string) string {
	return strings.ReplaceAll(string(compact(s)), "\x7f", `\u007f`)
}

// readCodex reads the JSON of a hook, or what codex hands a notify program.
func readCodex(name string, raw []byte) (hub.AgentEvent, error) {
	if name != codexNotify {
		return readHook(name, raw)
	}
	var n struct {
		Type    string   `json:"type"`
		Thread  string   `json:"thread-id"`
		Prompts []string `json:"input-messages"`
		Last    string   `json:"last-assistant-message"`
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return hub.AgentEvent{}, err
	}
	if n.Type != "agent-turn-complete" || isTitleThread(n.Prompts) {
		return hub.AgentEvent{Kind: hub.AgentOther}, nil
	}
	return hub.AgentEvent{Session: n.Thread, Detail: n.Last}, nil
}

// isTitleThread knows the hidden thread in which the TUI has a title made for
// the session: it is another thread, of which nothing follows.
func isTitleThread(prompts []string) bool {
	return len(prompts) > 0 && strings.HasPrefix(prompts[0], "Generate a concise, single-line task title")
}

// codexTitle reads the state sequence (OSC 7501), else the title: a spinner
// while it works, a blinking mark while it needs a person.
func codexTitle(title, osc string) (hub.AgentEventKind, bool) {
	if state, ok := strings.CutPrefix(strings.TrimPrefix(osc, "7501;"), "state="); ok {
		state, _, _ = strings.Cut(state, ":")
		kind, known := map[string]hub.AgentEventKind{
			"idle": hub.AgentIdle, "working": hub.AgentTurnStarted, "done": hub.AgentTurnEnded, "blocked": hub.AgentPermission,
		}[state]
		return kind, known
	}
	switch {
	case title == "":
		return "", false
	case strings.HasPrefix(title, "[ ! ] Action Required"), strings.HasPrefix(title, "[ . ] Action Required"):
		return hub.AgentPermission, true
	case spins(title):
		return hub.AgentTurnStarted, true
	}
	return hub.AgentIdle, true
}
