//go:build unix

package safefile

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func openNoFollowRW(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &UnsafeError{path, "is a symbolic link", "replace it by a regular file"}
	}
	return f, err
}
