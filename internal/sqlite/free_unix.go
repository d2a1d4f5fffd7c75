//go:build unix

package sqlite

import (
	"fmt"
	"syscall"
)

// freeBytes returns how many bytes this process may still write to dir's volume.
func freeBytes(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
