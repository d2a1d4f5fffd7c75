package cli

import (
	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// isProxied marks the verbs that --hub sends to a paired hub. Which they are is
// the scope table's of the hubs; a verb without the mark is refused before
// anything is sent.
const isProxied = "proxied"

// checkHub refuses --hub where a paired hub does nothing for it.
func (a *app) checkHub(cmd *cobra.Command) error {
	if a.flags.hub == "" || marked(cmd, isProxied) || cmd.HasSubCommands() {
		return nil
	}
	return outOfReach("%s is not done through another hub", cmd.CommandPath())
}

func outOfReach(format string, args ...any) error {
	e := client.Errorf(client.CodeOutOfScope, format, args...)
	e.Status, e.Hint = 0, "ask on that hub itself, or leave --hub away; a paired hub lists and shows, makes worktrees and terminals, and drives those terminals"
	return e
}

// wholeID refuses an abbreviation of an id of another hub, which nobody here can
// complete.
func (s *session) wholeID(text string) error {
	if s.hub == "" {
		return nil
	}
	return usage("", "%q is no whole id: ids of another hub are given in full", text)
}

// folder is a path as the hub that is asked understands it: below the caller's
// folder on this machine, as it was given for another.
func (s *session) folder(flag, path string) (string, error) {
	if s.hub != "" {
		return path, nil
	}
	abs, err := absolute(flag, path)
	if err != nil {
		return "", err
	}
	return abs[0], nil
}

// nowhere refuses the caller's own folder for a place on another hub.
func (s *session) nowhere(flag string) error {
	if s.hub == "" {
		return nil
	}
	return usage(flag, "the current folder is not on %s: name a place there", s.hub)
}

// server names the hub of an answer, for which another one that answers is the
// one that was asked.
func (a *app) server(s client.Server) string {
	if a.flags.hub != "" && s.PeerId == nil {
		return a.flags.hub
	}
	return serverName(s)
}
