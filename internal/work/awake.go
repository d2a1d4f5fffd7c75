package work

import "time"

const (
	// sweepEvery is how often the owner looks for what no event tells: silence.
	sweepEvery = 5 * time.Second
	// sweepLate is a sweep that came too late to count the silence before it.
	sweepLate = 3 * sweepEvery
	// sleptFor is how far the wall may run ahead of the monotonic clock between
	// sweeps before the host counts as having slept.
	sleptFor = 10 * time.Second
)

// instant is one moment on both clocks of the host; only differences mean
// something.
type instant struct{ mono, wall time.Duration }

// clock reads instants; a host that sleeps stops its monotonic clock, or lets it
// jump.
func clock() func() instant {
	start := time.Now()
	return func() instant {
		now := time.Now()
		return instant{mono: now.Sub(start), wall: time.Duration(now.UnixNano())}
	}
}

// awake measures silence in time that the hub was awake and swept. After a late
// sweep or a sleep, silence is counted anew: whoever was to be heard could not be.
type awake struct {
	last  instant       // of the last sweep
	floor time.Duration // nothing counts before it
}

// sweep notes a sweep.
func (a *awake) sweep(now instant) {
	mono, wall := now.mono-a.last.mono, now.wall-a.last.wall
	if mono > sweepLate || wall-mono > sleptFor {
		a.floor = now.mono
	}
	a.last = now
}

// silent is how long nothing was heard at the last sweep.
func (a *awake) silent(since time.Duration) time.Duration {
	return a.last.mono - max(since, a.floor)
}
