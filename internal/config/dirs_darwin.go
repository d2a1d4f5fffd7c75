package config

import "path/filepath"

func defaultDataDir() (string, error) {
	base, err := defaultConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "data"), nil
}
