//go:build unix

package sqlite

import (
	"fmt"
	"syscall"
)

// volumeOf looks at dir's volume.
func volumeOf(dir string) (volume, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return volume{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return volume{size: int64(st.Blocks) * int64(st.Bsize), free: int64(st.Bavail) * int64(st.Bsize)}, nil
}
