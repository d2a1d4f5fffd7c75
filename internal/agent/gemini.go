package agent

import "github.com/wavehub/wavehub/internal/hub"

// gemini is gemini-cli, as run with 0.61.0. Without GEMINI_CLI_NO_RELAUNCH it
// is a wrapper that does not pass on the signals to its child.
func gemini() profile {
	return profile{
		command: []string{"gemini"},
		modes: map[Mode]ModeSpec{
			ModeTUI:      {Deliver: DeliverArgv, Ready: ReadyHook},
			ModeHeadless: {Args: []string{"-o", "stream-json"}, Deliver: DeliverStdin, Ready: ReadyLaunch, Result: StreamGemini},
		},
		version: []string{"--version"},
		env:     map[string]string{"GEMINI_CLI_NO_RELAUNCH": "true"},
		resume:  []string{"--resume", session},
		mint:    []string{"--session-id", session},
		prompt:  map[Mode][]string{ModeTUI: {"-i"}, ModeHeadless: {"-p"}},
		wire:    wireGemini,
		read:    readHook,
		title:   geminiTitle,
		carried: []string{".gemini"},
		events: []event{
			{"SessionStart", hub.AgentSessionStarted, true},
			{"BeforeAgent", hub.AgentTurnStarted, true},
			{"BeforeTool", hub.AgentToolStarted, false}, // hooks slow its turns visibly
			{"AfterTool", hub.AgentToolEnded, false},
			{"Notification", hub.AgentOther, true}, // by its type
			{"AfterAgent", hub.AgentTurnEnded, true},
			{"SessionEnd", hub.AgentSessionEnded, true},
		},
	}
}

// wireGemini gives the hooks as the system's defaults, the lowest of gemini's
// settings: the user's are merged over them, and an administrator's stay in
// force. Gemini passes over the file if a folder above it may be written by
// others. Its timeouts are in milliseconds.
func wireGemini(w wiring) wired {
	file := w.file("gemini-defaults.json", w.settings(hookSeconds*1000, w.shellCommand))
	return wired{env: map[string]string{"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": file.Path}, files: []File{file}}
}

func geminiTitle(title, _ string) (hub.AgentEventKind, bool) {
	switch {
	case hasMark(title, '◇'):
		return hub.AgentIdle, true
	case hasMark(title, '✦'):
		return hub.AgentTurnStarted, true
	case hasMark(title, '✋'):
		return hub.AgentPermission, true
	}
	return "", false
}
