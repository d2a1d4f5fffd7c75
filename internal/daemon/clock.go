package daemon

import (
	"log/slog"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
	"github.com/wavehub/wavehub/internal/wave"
)

// hostClock reads the clocks that waves are timed by. A host that does not tell of
// its boot is timed by the wall.
func hostClock(log *slog.Logger) func() wave.Instant {
	boot, err := proc.BootID()
	if err != nil {
		log.Warn("reading the identity of this boot: downtime is told by the wall clock", "error", err)
	}
	start := time.Now()
	return func() wave.Instant {
		now := time.Now()
		in := wave.Instant{Mono: now.Sub(start), Wall: hub.MicrosOf(now)}
		if up, err := proc.SinceBoot(); err == nil {
			in.Boot, in.SinceBoot = boot, up
		}
		return in
	}
}
