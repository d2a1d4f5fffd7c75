package sim

import (
	"context"
	"io"
	"math/rand/v2"
	"sync/atomic"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay"
)

// link is the network between the home and one worker hub.
type link struct {
	net      *testkit.FaultNet
	away     atomic.Bool // no connection is made
	atHome   hub.PeerID  // the worker hub, as the home knows it
	atWorker hub.PeerID  // the home, as the worker hub knows it
	worker   *host
}

// dial connects the home to the worker hub.
func (l *link) dial(context.Context) (relay.Conn, error) {
	p := l.worker.up()
	if p == nil || l.away.Load() {
		return nil, errDown
	}
	a, b := l.net.Pipe()
	serve := func(ctx context.Context) { _ = p.desk.Serve(ctx, b, l.atWorker) } // the home's end tells how it ended
	if !p.Go(serve) {
		a.Close()
		return nil, io.ErrClosedPipe
	}
	return a, nil
}

// heal ends all faults.
func (l *link) heal() {
	l.away.Store(false)
	l.net.Set(testkit.Faults{})
	l.net.Mute(false, false)
	l.net.Resume()
}

// disturb draws one kind of weather.
func (l *link) disturb(rng *rand.Rand) {
	l.heal()
	switch rng.IntN(11) {
	case 0:
		l.net.Set(testkit.Faults{Drop: 0.1})
	case 1:
		l.net.Set(testkit.Faults{Duplicate: 0.3, Reorder: 0.3})
	case 2:
		l.net.Set(testkit.Faults{Cut: 0.1})
	case 3:
		l.net.Set(testkit.Faults{Truncate: 0.1})
	case 4:
		l.net.Set(testkit.Faults{Drop: 0.05, Duplicate: 0.1, Reorder: 0.2, Cut: 0.02, Truncate: 0.02, Delay: 0.1})
	case 5:
		l.net.Mute(true, false)
	case 6:
		l.net.Mute(false, true)
	case 7:
		l.net.Pause()
	case 8:
		l.net.Set(testkit.Faults{Delay: 0.5})
	case 9:
		l.net.HalfOpen(rng.IntN(2) == 0)
	case 10:
		l.away.Store(true)
		l.net.CutAll()
	}
}
