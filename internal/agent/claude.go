package agent

import "github.com/wavehub/wavehub/internal/hub"

// claude is Claude Code, as run with 2.1.197. OpenClaude shares its formats;
// it was not run. Hooks come in a settings file of their own, which is merged
// with the user's.
func claude(command string) profile {
	return profile{
		command: []string{command},
		modes: map[Mode]ModeSpec{
			ModeTUI:      {Deliver: DeliverArgv, Ready: ReadyHook},
			ModeHeadless: {Args: []string{"-p", "--output-format", "stream-json", "--verbose"}, Deliver: DeliverStdin, Ready: ReadyLaunch, Result: StreamClaude},
		},
		version: []string{"--version"},
		resume:  []string{"--resume", session},
		mint:    []string{"--session-id", session},
		wire:    wireClaude,
		read:    readHook,
		title:   claudeTitle,
		carried: []string{".claude/settings.json", ".claude/settings.local.json", ".mcp.json"},
		events: []event{
			{"SessionStart", hub.AgentSessionStarted, true},
			{"UserPromptSubmit", hub.AgentTurnStarted, true},
			{"PreToolUse", hub.AgentToolStarted, false},
			{"PostToolUse", hub.AgentToolEnded, true},
			{"PermissionRequest", hub.AgentPermission, true},
			{"Notification", hub.AgentOther, true}, // by its type
			{"Stop", hub.AgentTurnEnded, true},
			{"StopFailure", hub.AgentTurnFailed, true},
			{"SessionEnd", hub.AgentSessionEnded, true},
		},
	}
}

func wireClaude(w wiring) wired {
	file := w.file("claude-settings.json", w.settings(hookSeconds, w.command))
	return wired{args: []string{"--settings", file.Path}, files: []File{file}}
}

// claudeTitle: an asterisk stands for idle and for a question alike.
func claudeTitle(title, _ string) (hub.AgentEventKind, bool) {
	switch {
	case hasMark(title, '✳'):
		return hub.AgentIdle, true
	case spins(title):
		return hub.AgentTurnStarted, true
	}
	return "", false
}
