package terminal

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
)

// Attend is Wait that also tells of signs of life: at once, when the process is
// proven to live, and each time that it has written something after again was
// called. at is when it wrote last, 0 for never. sign is called by the goroutine
// of Attend, one call after the other; again may be called from anywhere, also
// too late, and once for each call of sign. Whoever does not call it is told
// nothing more and costs nothing. A supervisor of an older hub tells only the
// first sign.
func (m *Manager) Attend(ctx context.Context, inc hub.Incarnation, sign func(at hub.Micros, again func())) (hub.ProcessState, error) {
	return m.wait(ctx, inc, func(c *client, dir string) {
		(&attendance{c: c, output: filepath.Join(dir, outputDir), sign: sign}).begin()
	})
}

// attendance asks for the signs of one process.
type attendance struct {
	c      *client
	output string
	sign   func(at hub.Micros, again func())

	mu    sync.Mutex
	total int64 // guarded by mu; bytes of output that were told
}

// begin tells the first sign. With output that cannot be read there is one too
// many behind it, and no harm.
func (a *attendance) begin() {
	a.c.wrote = a.wrote
	tail, err := readTail(a.output, 0)
	if err != nil {
		tail.Total = 0
	}
	a.wrote(tail.Total)
}

func (a *attendance) wrote(total int64) {
	a.mu.Lock()
	a.total = total
	a.mu.Unlock()
	at, err := lastOutputAt(a.output)
	if err != nil {
		at = 0 // it lives, which is what the sign says
	}
	a.sign(at, a.again)
}

// again asks to be told of more output. A supervisor that does not listen any
// more ends the connection, which is told by Attend.
func (a *attendance) again() {
	if a.c.hello.Version < liveVersion {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.c.send(Command{Op: opWatch, After: a.total})
}
