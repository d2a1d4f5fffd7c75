package config

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	envHome      = "WAVEHUB_HOME"
	envConfigDir = "WAVEHUB_CONFIG_DIR"
	envDataDir   = "WAVEHUB_DATA_DIR"
)

// directories finds the configuration and the data directory. WAVEHUB_HOME=DIR
// stands for DIR/config and DIR/data; the two specific variables win over it.
func directories() (configDir, dataDir Origin, err error) {
	configDir, err = directory("config_dir", envConfigDir, "config", defaultConfigDir)
	if err != nil {
		return Origin{}, Origin{}, err
	}
	dataDir, err = directory("data_dir", envDataDir, "data", defaultDataDir)
	return configDir, dataDir, err
}

func directory(key, variable, under string, standard func() (string, error)) (Origin, error) {
	dir, source := os.Getenv(variable), "environment "+variable
	if home := os.Getenv(envHome); dir == "" && home != "" {
		dir, source = filepath.Join(home, under), "environment "+envHome
	}
	if dir == "" {
		found, err := standard()
		if err != nil {
			return Origin{}, noDirectory(key, variable, err)
		}
		dir, source = found, "default"
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Origin{}, noDirectory(key, variable, err)
	}
	return Origin{Key: key, Value: abs, Source: source}, nil
}

func noDirectory(key, variable string, err error) error {
	return invalid(fmt.Sprintf("set %s or %s to a folder", variable, envHome), err, "%s cannot be determined", key)
}

func defaultConfigDir() (string, error) {
	base, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "wavehub"), nil
}
