//go:build unix

package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// holdPause is between looks at a lock that somebody else has.
const holdPause = 20 * time.Millisecond

// acquire takes the lock that the file stands for. The git processes that are
// given the file share it, and so keep it for as long as they live: who gets it
// knows that no git of a hub that died is still at work.
func acquire(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of worktrees: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking worktrees: %w", err), f.Close())
		}
		select {
		case <-time.After(holdPause):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for another git: %w", ctx.Err()), f.Close())
		}
	}
}

// keeps lets a process inherit the lock.
func keeps(f *os.File) []*os.File {
	if f == nil {
		return nil
	}
	return []*os.File{f}
}
