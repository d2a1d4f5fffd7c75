//go:build unix && !darwin

package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// defaultDataDir follows the XDG base directories: state, not configuration.
func defaultDataDir() (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); base != "" {
		if !filepath.IsAbs(base) {
			return "", fmt.Errorf("XDG_STATE_HOME is not an absolute path: %s", base)
		}
		return filepath.Join(base, "wavehub"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "wavehub"), nil
}
