package safefile

import (
	"strings"

	"golang.org/x/sys/unix"
)

func mountedOver(path string) (string, bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", false, err
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	fuse := strings.Contains(name, "fuse")
	return name, fuse || st.Flags&unix.MNT_LOCAL == 0, nil
}
