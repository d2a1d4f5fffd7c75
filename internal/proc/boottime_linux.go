package proc

import "golang.org/x/sys/unix"

// bootClock goes on while the machine sleeps.
const bootClock = unix.CLOCK_BOOTTIME
