package config

import (
	"os"
	"path/filepath"
)

// defaultDataDir is the local, not the roaming, application data.
func defaultDataDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "wavehub"), nil
}
