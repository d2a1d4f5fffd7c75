package agent

// copilot is GitHub's. Not run: only its documented print mode is used.
func copilot() profile {
	return profile{
		command: []string{"copilot"},
		carried: []string{".github/copilot", ".mcp.json"},
		modes:   map[Mode]ModeSpec{ModeHeadless: {Deliver: DeliverArgv, Ready: ReadyLaunch}},
		version: []string{"--version"},
		prompt:  map[Mode][]string{ModeHeadless: {"-p"}},
	}
}
