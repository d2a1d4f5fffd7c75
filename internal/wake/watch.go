package wake

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"
)

// Gap is how far the wall clock may get ahead of the monotonic one between two
// looks, and how late a look may come, before it counts as sleep.
const Gap = 10 * time.Second

// Reading is one look at the clocks. Mono counts from any fixed moment; on most
// systems it stands still while the host sleeps.
type Reading struct {
	Wall time.Time
	Mono time.Duration
}

// slept reports whether the host slept between two looks that were meant to be
// every apart. Where the monotonic clock runs on through sleep, the second look
// is late. A wall clock that was set forward counts too: looking once too often
// does no harm.
func slept(before, after Reading, every time.Duration) bool {
	wall, mono := after.Wall.Round(0).Sub(before.Wall.Round(0)), after.Mono-before.Mono
	return wall-mono > Gap || mono-every > Gap
}

// Config configures a Watch. Zero values mean the real clocks and interfaces.
type Config struct {
	Every time.Duration // between two looks; 5 s
	Read  func() Reading
	Addrs func() ([]net.Addr, error)
	Log   *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Every <= 0 {
		c.Every = 5 * time.Second
	}
	if c.Read == nil {
		start := time.Now()
		c.Read = func() Reading { return Reading{time.Now(), time.Since(start)} }
	}
	if c.Addrs == nil {
		c.Addrs = net.InterfaceAddrs
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Watch looks until ctx ends, and calls woke after each sleep and moved after
// each change of the host's addresses, from one goroutine; a wake-up in another
// network calls both. The calls must not block for long.
func Watch(ctx context.Context, c Config, woke, moved func()) error {
	c = c.withDefaults()
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	last, at := c.Read(), c.addresses(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, there := c.Read(), c.addresses(at)
		if slept(last, now, c.Every) {
			woke()
		}
		if !slices.Equal(at, there) {
			moved()
		}
		last, at = now, there
	}
}

// addresses are the host's, in order; those known before while the system does
// not tell.
func (c Config) addresses(known []string) []string {
	found, err := c.Addrs()
	if err != nil {
		c.Log.Debug("reading this host's addresses", "error", err)
		return known
	}
	texts := make([]string, len(found))
	for i, a := range found {
		texts[i] = a.String()
	}
	slices.Sort(texts)
	return texts
}
