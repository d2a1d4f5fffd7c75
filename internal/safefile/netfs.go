package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// NetworkFS reports whether path lies on a file system that is shared over a
// network or copied by a synchronising program, and names it. A store must not
// be there: locks and syncs do not hold. For a path that does not exist, the
// nearest existing parent decides. It asks the operating system once and
// recognises synchronised folders by name (Dropbox, OneDrive, iCloud, Google
// Drive).
func NetworkFS(path string) (string, bool, error) {
	path, err := nearest(path)
	if err != nil {
		return "", false, err
	}
	if name := syncedBy(path); name != "" {
		return name, true, nil
	}
	name, network, err := mountedOver(path)
	if err != nil {
		return "", false, fmt.Errorf("asking for the file system of %s: %w", path, err)
	}
	return name, network, nil
}

func nearest(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		parent := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || parent == path {
			return "", err
		}
		path = parent
	}
}

func syncedBy(path string) string {
	for _, part := range strings.Split(path, string(os.PathSeparator)) {
		if name := syncFolder(strings.ToLower(part)); name != "" {
			return name
		}
	}
	return ""
}

func syncFolder(part string) string {
	switch {
	case part == "dropbox" || strings.HasPrefix(part, "dropbox ("):
		return "Dropbox"
	case part == "onedrive" || strings.HasPrefix(part, "onedrive -"):
		return "OneDrive"
	case part == "mobile documents" || part == "iclouddrive" || part == "icloud drive":
		return "iCloud Drive"
	case part == "google drive" || strings.HasPrefix(part, "googledrive-"):
		return "Google Drive"
	}
	return ""
}
