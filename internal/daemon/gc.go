package daemon

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Garbage between two collections: at least spareBytes, however little lives, for
// a small heap would be collected hundreds of times a second; and half of what
// lives, for a thousand waiting connections live long.
const (
	spareBytes   = 12 << 20
	sparePercent = 50
	maxPercent   = 800
)

// gcPace adjusts the collector's pace after each collection. It changes the
// whole process, so that a hub's own process has one; GOGC in the environment
// leaves everything to its user.
type gcPace struct{ off atomic.Bool }

// paceGC begins, and returns what ends it and sets the default again.
func paceGC() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	p := &gcPace{}
	p.adjust()
	return func() {
		p.off.Store(true)
		debug.SetGCPercent(100)
	}
}

// adjust sets the pace, and comes again after the next collection, which is when
// the mark that it leaves is found to be garbage.
func (p *gcPace) adjust() {
	if p.off.Load() {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(gcPercent(live[0].Value.Uint64()))
	mark := &struct{ self *gcPace }{p}
	runtime.AddCleanup(mark, (*gcPace).adjust, p)
}

// gcPercent is how much garbage, in percent of what lives, is let grow.
func gcPercent(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	return int(min(max(spareBytes*100/live, sparePercent), maxPercent))
}
