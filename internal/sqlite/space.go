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
	min     int64 // bytes, of a large volume; 0 and below never refuse
	volume  func(string) (volume, error)
	elapsed func() time.Duration // monotonic
	at      atomic.Int64         // elapsed at the last look
	verdict atomic.Pointer[verdict]
}

type verdict struct{ err error }

// volume is what a volume holds and has free for this process, in bytes.
type volume struct{ size, free int64 }

// smallVolume is the part of a volume that is kept free when that is less than
// the configured bytes.
const smallVolume = 16

// needed is how much has to be free for new work.
func (v volume) needed(most int64) int64 { return min(most, v.size/smallVolume) }

func newSpaceGuard(dir string, min int64) *spaceGuard {
	began := time.Now()
	g := &spaceGuard{dir: dir, min: min, volume: volumeOf, elapsed: func() time.Duration { return time.Since(began) }}
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
	if vol, err := g.volume(g.dir); err != nil {
		v.err = err
	} else if need := vol.needed(g.min); vol.free < need {
		v.err = hub.Errorf(hub.CodeStorageFull, "%d bytes are free; new work needs %d", vol.free, need)
	}
	g.verdict.Store(v)
}
