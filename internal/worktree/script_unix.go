//go:build unix

package worktree

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Script is how the platform's shell runs the text of a setup hook: the command,
// whose last argument is the file, and what the file has to hold. dir is an
// absolute private folder. The exit code of the command is that of the text.
func Script(run, dir string) (argv []string, file string, data []byte, err error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, "", nil, fmt.Errorf("looking for a shell: %w", err)
	}
	if shell, err = filepath.Abs(shell); err != nil {
		return nil, "", nil, fmt.Errorf("looking for a shell: %w", err)
	}
	file = filepath.Join(dir, "setup.sh")
	return []string{shell, file}, file, []byte(run + "\n"), nil
}
