package agent

// amp is Sourcegraph's. Not run: only its documented execute mode is used.
func amp() profile {
	return profile{
		command: []string{"amp"},
		modes:   map[Mode]ModeSpec{ModeHeadless: {Deliver: DeliverArgv, Ready: ReadyLaunch}},
		version: []string{"--version"},
		prompt:  map[Mode][]string{ModeHeadless: {"-x"}},
	}
}
