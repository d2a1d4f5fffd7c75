package proc

import (
	"errors"
	"fmt"
	"os"
)

// maxAncestors bounds the walk to the root of the process tree.
const maxAncestors = 256

// Ancestors returns this process and those that it descends from, the nearest
// first. It ends where a parent is gone, or where the parent's pid has been
// taken by a younger process.
func Ancestors() ([]Identity, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	var out []Identity
	err = walkUp(func(p process) (bool, error) {
		out = append(out, Identity{PID: p.pid, StartedAt: p.started, BootID: boot})
		return true, nil
	})
	return out, err
}

// walkUp calls fn for this process and its ancestors until it returns false.
func walkUp(fn func(process) (more bool, err error)) error {
	var child process
	for pid, n := os.Getpid(), 0; pid > 0 && n < maxAncestors; n++ {
		p, err := read(pid)
		if errors.Is(err, ErrGone) {
			return nil // an ancestor ended meanwhile: nothing above it is ours
		}
		if err != nil {
			return fmt.Errorf("walking up from process %d: %w", os.Getpid(), err)
		}
		if n > 0 && ppidStale && p.started > child.started {
			return nil
		}
		if more, err := fn(p); err != nil || !more {
			return err
		}
		child, pid = p, p.ppid
	}
	return nil
}
