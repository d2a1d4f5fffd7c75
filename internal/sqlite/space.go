package sqlite

import (
	"sync/atomic"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// spaceGuard refuses new work while the volume is nearly full. It is safe for
// concurrent use and looks at the volume at most once a second.
type spaceGuard struct {
	dir     string
	min     int64                       // bytes; 0 and below never refuse
	free    func(string) (int64, error) // bytes
	elapsed func() time.Duration        // monotonic
	at      atomic.Int64                // elapsed at the last look
	verdict atomic.Pointer[verdict]
}

type verdict struct{ err error }

func newSpaceGuard(dir string, min int64) *spaceGuard {
	began := time.Now()
	g := &spaceGuard{dir: dir, min: min, free: freeBytes, elapsed: func() time.Duration { return time.Since(began) }}
	g.look()
	return g
}

func (g *spaceGuard) check() error {
	if g.min <= 0 {
		return nil
	}
	last, now := g.at.Load(), int64(g.elapsed())
	if now-last >= int64(time.Second) && g.at.CompareAndSwap(last, now) {
		g.look()
	}
	return g.verdict.Load().err
}

func (g *spaceGuard) look() {
	v := &verdict{}
	if n, err := g.free(g.dir); err != nil {
		v.err = err
	} else if n < g.min {
		v.err = hub.Errorf(hub.CodeStorageFull, "%d bytes are free; new work needs %d", n, g.min)
	}
	g.verdict.Store(v)
}
