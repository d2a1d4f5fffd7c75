//go:build linux || darwin

package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot is how long ago the machine was booted, its sleep included.
func SinceBoot() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(bootClock, &t); err != nil {
		return 0, fmt.Errorf("reading the time since boot: %w", err)
	}
	return time.Duration(t.Nano()), nil
}
