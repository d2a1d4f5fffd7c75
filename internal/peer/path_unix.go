//go:build !windows

package peer

import "path/filepath"

// absolute reports whether path is absolute and clean.
func absolute(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }
