package agent

// grok is the community's grok-cli, as run with 0.0.34: no hooks, no sessions,
// and a terminal interface that mangles what is pasted. xAI's own was not run.
func grok() profile {
	return profile{
		command: []string{"grok"},
		carried: []string{".grok"},
		modes:   map[Mode]ModeSpec{ModeHeadless: {Deliver: DeliverArgv, Ready: ReadyLaunch, Result: StreamGrok}},
		version: []string{"--version"},
		prompt:  map[Mode][]string{ModeHeadless: {"-p"}},
	}
}
