package daemon

import (
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/agent"
	"github.com/wavehub/wavehub/internal/hub"
)

// userShell is the system's command interpreter.
func userShell(*agent.Table) ([]string, error) {
	shell := os.Getenv("ComSpec")
	if !filepath.IsAbs(shell) {
		return nil, hub.Errorf(hub.CodeAgentUnconfigured, "ComSpec names no command interpreter")
	}
	return []string{shell}, nil
}

// commandLine runs a command line in it.
func commandLine(t *agent.Table, line string) ([]string, error) {
	shell, err := userShell(t)
	return append(shell, "/d", "/c", line), err
}
