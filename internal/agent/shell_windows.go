package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// findShell takes sh from PATH or from the installation of Git for Windows
// that git itself belongs to.
func findShell() (string, error) {
	path, err := find("sh.exe")
	if err == nil {
		return path, nil
	}
	git, gitErr := find("git.exe")
	if gitErr != nil {
		return "", fmt.Errorf("neither sh.exe nor Git for Windows is in PATH: %w", exec.ErrNotFound)
	}
	root := filepath.Dir(filepath.Dir(git))
	for _, candidate := range []string{filepath.Join(root, "bin", "sh.exe"), filepath.Join(root, "usr", "bin", "sh.exe")} {
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("no sh.exe under %s: %w", root, exec.ErrNotFound)
}
