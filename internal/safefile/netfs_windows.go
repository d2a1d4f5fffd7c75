package safefile

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

func mountedOver(path string) (string, bool, error) {
	volume := filepath.VolumeName(path)
	if strings.HasPrefix(volume, `\\`) && !strings.HasPrefix(volume, `\\?\`) {
		return "network share", true, nil
	}
	root, err := windows.UTF16PtrFromString(volume + `\`)
	if err != nil {
		return "", false, err
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "network drive", true, nil
	}
	return "", false, nil
}
