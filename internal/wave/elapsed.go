package wave

import (
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	// storeEvery is how often the elapsed time of a wave is written down.
	storeEvery = 10 * time.Second
	// lateLook bounds what one look adds: a process that was held up was not awake.
	lateLook = 30 * time.Second
	// patience is how long after the hub came up an expiry that was there already
	// is not acted on, so that links can deliver what was finished.
	patience = time.Minute
)

// elapsed is the time of one wave: awake time of this process, on top of what was
// written down, and of the time since then in which the hub was down.
type elapsed struct {
	recovered bool
	begun     int           // iteration that it was begun for; 0 for none
	now       time.Duration // awake time of the process, at the last look
	last      Instant
	stored    time.Duration // now, when the elapsed time was written down last
	base      time.Duration // the wave's time then
	down      time.Duration // of it: downtime
	atStart   time.Duration // the wave's time when the hub came up
	since     time.Duration // now, at that moment
	read      time.Duration // now, when the whole wave was read last
}

// look takes a look at the clocks.
func (e *elapsed) look(in Instant) {
	if e.last != (Instant{}) {
		e.now += min(max(in.Mono-e.last.Mono, 0), lateLook)
	}
	e.last = in
}

// begin goes on with what is written down of a wave, once per iteration.
func (e *elapsed) begin(w hub.Wave) {
	if e.begun == pass(w) {
		return
	}
	gone := downtime(w.Clock, e.last)
	e.base, e.down = ms(w.ElapsedMS)+gone, ms(w.DowntimeMS)
	if e.recovered {
		e.down += gone
		e.atStart, e.since = e.base, e.now
	}
	e.begun, e.stored = pass(w), e.now
}

// downtime is how long nobody looked: on the same boot by the boot's clock, else by
// the wall's, of which a step back counts as nothing.
func downtime(was hub.WaveClock, now Instant) time.Duration {
	switch {
	case was.At == 0:
		return 0
	case was.Boot != "" && was.Boot == now.Boot:
		return max(now.SinceBoot-ms(was.BootMS), 0)
	}
	return max(now.Wall.Sub(was.At), 0)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (e *elapsed) elapsed() time.Duration { return e.base + e.now - e.stored }

// patient reports whether the hub has just come up.
func (e *elapsed) patient() bool { return e.recovered && e.now-e.since < patience }

// due reports whether it is time to write the elapsed time down.
func (e *elapsed) due() bool { return e.now-e.stored >= storeEvery }

// stamp is w with the time as it is now.
func (e *elapsed) stamp(w hub.Wave) hub.Wave {
	w.ElapsedMS, w.DowntimeMS = e.elapsed().Milliseconds(), e.down.Milliseconds()
	w.Clock = clockOf(e.last)
	return w
}

// saved notes that stamp was written down.
func (e *elapsed) saved() { e.base, e.stored = e.elapsed(), e.now }

func clockOf(in Instant) hub.WaveClock {
	return hub.WaveClock{Boot: in.Boot, BootMS: in.SinceBoot.Milliseconds(), At: in.Wall}
}

// processClock are the clocks of this process alone.
func processClock() func() Instant {
	start := time.Now()
	return func() Instant {
		now := time.Now()
		return Instant{Mono: now.Sub(start), Wall: hub.MicrosOf(now)}
	}
}
