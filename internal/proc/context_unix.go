//go:build unix

package proc

import (
	"errors"
	"fmt"
)

// CallerContext returns the text that names the terminal this process was
// called from: that of its nearest ancestor, itself first, with a controlling
// terminal whose session leader lives. It is "tty:" and a hash of boot,
// terminal device, and the session leader's pid and start time, so another
// session on the same device has another text. Without such an ancestor it is
// "": a directory is never a context.
func CallerContext() (text string, err error) {
	err = walkUp(func(p process) (bool, error) {
		text, err = ownContext(p)
		return text == "", err
	})
	return text, err
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
