package worktree

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// Script is how the platform's shell runs the text of a setup hook: the command,
// whose last argument is the file, and what the file has to hold. dir is an
// absolute private folder. The exit code of the command is that of the text.
func Script(run, dir string) (argv []string, file string, data []byte, err error) {
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return nil, "", nil, fmt.Errorf("looking for a shell: %w", err)
	}
	file = filepath.Join(dir, "setup.cmd")
	text := "@echo off\n" + strings.ReplaceAll(run, "\r\n", "\n") + "\n"
	return []string{filepath.Join(system, "cmd.exe"), "/d", "/c", file}, file, []byte(strings.ReplaceAll(text, "\n", "\r\n")), nil
}
