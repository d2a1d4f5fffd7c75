package proc

import (
	"errors"
	"fmt"
	"os"

	"github.com/wavehub/wavehub/internal/hub"
)

// Identity is one process for all time. StartedAt is in a unit of the
// operating system (clock ticks since boot on Linux, microseconds since the
// epoch on macOS, 100 ns since 1601 on Windows) and only ever compared.
type Identity struct {
	PID       int    `json:"pid"`
	StartedAt int64  `json:"started_at"`
	BootID    string `json:"boot_id"`
}

// ErrGone says that the process does not exist, or has ended and only waits
// for its parent to collect it.
var ErrGone = errors.New("no such process")

// process is what one look at the process table tells.
type process struct {
	pid, ppid int
	session   int    // session leader's pid; 0 where unknown
	tty       string // controlling terminal's device number, "" for none
	started   int64
	ended     bool // a zombie: the pid is held, the process is over
}

// Self returns the identity of this process.
func Self() (Identity, error) { return Lookup(os.Getpid()) }

// Lookup returns the identity of the process that has the pid now, a zombie
// included; ErrGone when the pid is free.
func Lookup(pid int) (Identity, error) {
	boot, err := BootID()
	if err != nil {
		return Identity{}, err
	}
	p, err := read(pid)
	if err != nil {
		return Identity{}, fmt.Errorf("looking up process %d: %w", pid, err)
	}
	return Identity{PID: pid, StartedAt: p.started, BootID: boot}, nil
}

// Check says what is known of the process: live when the same pid has the same
// start time in the same boot; exited when the boot is another one, the pid is
// free, has another start time or is a zombie; unverifiable when id is
// incomplete or the process table cannot be read.
func Check(id Identity) hub.Liveness {
	boot, err := BootID()
	if err != nil || id.BootID == "" || id.PID <= 0 {
		return hub.Unverifiable
	}
	if boot != id.BootID {
		return hub.Exited
	}
	p, err := read(id.PID)
	switch {
	case errors.Is(err, ErrGone):
		return hub.Exited
	case err != nil:
		return hub.Unverifiable
	case p.ended || p.started != id.StartedAt:
		return hub.Exited
	}
	return hub.Live
}

// confirm returns nil when id is live, ErrGone when it is proven gone, and
// another error when neither can be proven.
func confirm(id Identity) error {
	switch Check(id) {
	case hub.Live:
		return nil
	case hub.Exited:
		return ErrGone
	}
	return fmt.Errorf("process %d cannot be verified", id.PID)
}
