package peer

import (
	"path/filepath"
	"strings"
)

// absolute reports whether path is absolute and no network or device path.
func absolute(path string) bool {
	return filepath.IsAbs(path) && !strings.HasPrefix(filepath.ToSlash(path), "//")
}
