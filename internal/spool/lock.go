package spool

import (
	"context"
	"fmt"
	"time"

	"github.com/gofrs/flock"

	"github.com/wavehub/wavehub/internal/safefile"
)

// lockPause is between two tries to get a lock that somebody has.
const lockPause = 5 * time.Millisecond

// lock waits until this is the only process and goroutine at the spool, or until
// ctx ends. The lock is a file of its own, for the spool is replaced, and ends
// with the process that has it.
func (p Place) lock(ctx context.Context) (*flock.Flock, error) {
	if err := safefile.PrivateDir(p.folder()); err != nil {
		return nil, err
	}
	l := flock.New(p.File()+lockSuffix, flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockPause); err != nil {
		return nil, fmt.Errorf("locking the spool of %s: %w", p.Dispatch, err)
	}
	return l, nil
}
