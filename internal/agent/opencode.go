package agent

import (
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// opencode is as run with 1.18.33. Each start installs a package; without a
// network that must not be tried for long. Headless, a prompt with blanks
// arrives in quotation marks unless it comes on standard input.
func opencode() profile {
	return profile{
		command: []string{"opencode"},
		modes: map[Mode]ModeSpec{
			ModeTUI:      {Deliver: DeliverArgv, Ready: ReadyHook},
			ModeHeadless: {Args: []string{"run", "--format", "json"}, Deliver: DeliverStdin, Ready: ReadyLaunch, Result: StreamOpencode},
		},
		version: []string{"--version"},
		env:     map[string]string{"npm_config_fetch_retries": "0"},
		resume:  []string{"-s", session},
		prompt:  map[Mode][]string{ModeTUI: {"--prompt"}},
		resumed: map[Mode]Deliver{ModeTUI: DeliverPaste}, // with -s, --prompt is passed over
		wire:    wireOpencode,
		read:    readOpencode,
		carried: []string{"opencode.json", "opencode.jsonc", ".opencode"},
		events: []event{
			{"load", hub.AgentSessionStarted, true}, // before there is a session
			{"session.created", hub.AgentSessionStarted, true},
			{"session.status", hub.AgentOther, true}, // by its status
			{"session.idle", hub.AgentTurnEnded, true},
			{"session.error", hub.AgentTurnFailed, true},
			{"permission.asked", hub.AgentPermission, true},
			{"permission.replied", hub.AgentTurnStarted, true},
		},
	}
}

//go:embed opencode.js
var opencodePlugin string

// wireOpencode adds a plugin. The configuration that names it is merged with
// all others; lists of plugins are joined.
func wireOpencode(w wiring) wired {
	text := strings.NewReplacer("= BIN\n", "= "+string(compact(w.bin))+"\n", "= EVENTS\n", "= "+string(compact(w.events))+"\n").Replace(opencodePlugin)
	file := w.file("wavehub.js", []byte(text))
	config := compact(map[string]any{"plugin": []string{fileURL(file.Path)}})
	return wired{env: map[string]string{"OPENCODE_CONFIG_CONTENT": string(config)}, files: []File{file}}
}

// readOpencode reads an event of the plugin. A turn that a person broke off
// leaves the session idle.
func readOpencode(_ string, raw []byte) (hub.AgentEvent, error) {
	var e struct {
		Properties struct {
			Session string `json:"sessionID"`
			Info    struct {
				Parent string `json:"parentID"`
			} `json:"info"`
			Status struct {
				Type string `json:"type"`
			} `json:"status"`
			Permission string        `json:"permission"`
			Error      opencodeError `json:"error"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return hub.AgentEvent{}, err
	}
	p := e.Properties
	out := hub.AgentEvent{Session: p.Session, Detail: p.Permission}
	switch {
	case p.Info.Parent != "":
		return hub.AgentEvent{Kind: hub.AgentOther}, nil // a sub-agent's session
	case p.Status.Type == "busy":
		out.Kind = hub.AgentTurnStarted
	case p.Status.Type == "idle", p.Error.Name == "MessageAbortedError":
		out.Kind = hub.AgentIdle
	case p.Error.Name != "":
		out.Detail = p.Error.text()
	}
	return out, nil
}

// opencodeError is the error of an event and of the output.
type opencodeError struct {
	Name string `json:"name"`
	Data struct {
		Message string `json:"message"`
		Status  int    `json:"statusCode"`
	} `json:"data"`
}

func (e opencodeError) text() string {
	return withStatus(strings.TrimPrefix(e.Name+": "+e.Data.Message, ": "), e.Data.Status)
}
