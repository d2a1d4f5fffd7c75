//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
)

// maxAncestors bounds the walk to the root of the process tree.
const maxAncestors = 256

// CallerContext returns the text that names the terminal this process was
// called from: that of its nearest ancestor, itself first, with a controlling
// terminal whose session leader lives. It is "tty:" and a hash of boot,
// terminal device, and the session leader's pid and start time, so another
// session on the same device has another text. Without such an ancestor it is
// "": a directory is never a context.
func CallerContext() (string, error) {
	for pid, n := os.Getpid(), 0; pid > 0 && n < maxAncestors; n++ {
		p, err := read(pid)
		if errors.Is(err, ErrGone) {
			return "", nil // an ancestor ended meanwhile: nothing above it is ours
		}
		if err != nil {
			return "", fmt.Errorf("finding the terminal context: %w", err)
		}
		text, err := ownContext(p)
		if err != nil || text != "" {
			return text, err
		}
		pid = p.ppid
	}
	return "", nil
}

func ownContext(p process) (string, error) {
	if p.tty == "" || p.session <= 0 {
		return "", nil
	}
	leader, err := Lookup(p.session)
	if errors.Is(err, ErrGone) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("finding the terminal context: %w", err)
	}
	return contextText(leader.BootID, p.tty, leader), nil
}
