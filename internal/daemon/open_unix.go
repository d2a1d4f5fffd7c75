//go:build unix

package daemon

import (
	"os"
	"syscall"
)

// openRegular opens a file for reading and does not wait for the writer of a
// pipe; the caller looks at what it is.
func openRegular(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
