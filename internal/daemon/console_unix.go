//go:build unix

package daemon

import (
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/agent"
)

// userShell is the shell that the hub's user has, else sh.
func userShell(t *agent.Table) ([]string, error) {
	if shell := os.Getenv("SHELL"); filepath.IsAbs(shell) {
		if info, err := os.Stat(shell); err == nil && info.Mode().IsRegular() {
			return []string{shell}, nil
		}
	}
	l, err := t.Lookup(agent.Shell)
	return l.Command, err
}

// commandLine runs a command line in sh.
func commandLine(t *agent.Table, line string) ([]string, error) {
	l, err := t.Lookup(agent.Shell)
	if err != nil {
		return nil, err
	}
	return append(l.Command, "-c", line), nil
}
