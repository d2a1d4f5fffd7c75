package proc

// bootClock goes on while the machine sleeps: CLOCK_MONOTONIC of time.h.
const bootClock = 6
