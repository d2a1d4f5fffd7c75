//go:build unix

package worktree

import (
	"os"
	"syscall"
)

// openFlags open what may be a named pipe by now without waiting for anybody.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK
