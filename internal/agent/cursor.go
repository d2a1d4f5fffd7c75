package agent

// cursor is Cursor's command line agent. Not run: its documented print mode,
// and its interface with the prompt as an argument.
func cursor() profile {
	return profile{
		command: []string{"cursor-agent"},
		carried: []string{".cursor"},
		modes: map[Mode]ModeSpec{
			ModeTUI:      {Deliver: DeliverArgv, Ready: ReadyQuiescence},
			ModeHeadless: {Args: []string{"-p"}, Deliver: DeliverArgv, Ready: ReadyLaunch},
		},
		version: []string{"--version"},
	}
}
