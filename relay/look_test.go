package relay

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
)

// stuckFirst makes connections of which the first can get stuck: no frame gets
// through from then on, and nothing says so.
type stuckFirst struct {
	*pair
	stuck chan struct{} // closed: it is
	made  atomic.Int32
	bytes *atomic.Int64 // what the first says that has come; nil: it does not count
}

func (l *stuckFirst) Open(ctx context.Context, peer hub.PeerID) (Conn, error) {
	conn, err := l.pair.Open(ctx, peer)
	if err != nil || l.made.Add(1) > 1 {
		return conn, err
	}
	first := sticking{conn, l.stuck}
	if l.bytes != nil {
		return metered{first, l.bytes}, nil
	}
	return first, nil
}

type sticking struct {
	Conn
	stuck chan struct{}
}

func (c sticking) ReadFrame(ctx context.Context) ([]byte, error) {
	frame, err := c.Conn.ReadFrame(ctx)
	select {
	case <-c.stuck:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return frame, err
	}
}

func (c sticking) WriteFrame(ctx context.Context, frame []byte) error {
	select {
	case <-c.stuck:
		return nil
	default:
		return c.Conn.WriteFrame(ctx, frame)
	}
}

type metered struct {
	Conn
	bytes *atomic.Int64
}

func (c metered) Received() int64 { return c.bytes.Load() }

// newStuckFirst starts a pair over such connections.
func newStuckFirst(t *testing.T, bytes *atomic.Int64) (*stuckFirst, *atomic.Int64) {
	t.Helper()
	l := &stuckFirst{pair: newPair(t, testkit.NewFaultNet(1, testkit.Faults{})), stuck: make(chan struct{}), bytes: bytes}
	l.puller.cfg.Links = l
	told := &atomic.Int64{}
	l.desk.session.cfg.Silent = func(hub.PeerID) { told.Add(1) }
	l.start()
	eventually(t, 5*time.Second, "up", l.isUp)
	return l, told
}

// Invariant R17: while no other connection can be made a silent session stands;
// with the first that can, what was queued flows.
func TestASilentSessionIsReplacedOnceThereIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, told := newStuckFirst(t, nil)
		p.setDown(errors.New("unreachable"))
		close(p.stuck)
		p.worker.enqueue(hub.NewDispatchID(), "meanwhile")
		<-time.After(20 * time.Second)
		if !p.isUp() || p.opened() < 4 || p.opened() > 8 || told.Load() < 4 {
			t.Errorf("after 20 s: up %v, %d attempts, the worker hub was told %d times", p.isUp(), p.opened(), told.Load())
		}
		p.setDown(nil)
		eventually(t, 4*time.Second, "what was queued has come", p.worker.settled)
		p.worker.sameAs(t, p.home)
		if p.made.Load() != 2 {
			t.Errorf("%d connections", p.made.Load())
		}
		p.close()
		if len(p.puller.cfg.Session.live)+len(p.desk.session.live) != 0 {
			t.Error("a session was left")
		}
	})
}

func TestASessionThatIsHeardIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, told := newStuckFirst(t, nil)
		<-time.After(10 * time.Minute)
		if p.made.Load() != 1 || told.Load() != 0 {
			t.Errorf("idle: %d connections, told %d times", p.made.Load(), told.Load())
		}
		p.close()

		var bytes atomic.Int64
		p, _ = newStuckFirst(t, &bytes)
		close(p.stuck) // no frame gets through, but parts of one come
		for range 15 {
			<-time.After(2 * time.Second)
			bytes.Add(1)
		}
		if p.made.Load() != 1 {
			t.Errorf("slow: %d connections", p.made.Load())
		}
		p.close()
	})
}
