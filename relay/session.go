package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// Session runs relay connections; one Session serves any number at once.
type Session struct {
	cfg Config

	mu   sync.Mutex
	live map[*link]struct{} // those past their hello; guarded by mu
}

// NewSession validates cfg; it starts nothing.
func NewSession(cfg Config) (*Session, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	return &Session{cfg: cfg, live: map[*link]struct{}{}}, nil
}

// Run speaks the relay protocol over conn until ctx ends, the peer leaves or
// something fails, and returns why. role is this hub's own on the link: a home
// sends to_worker items and imports to_home ones. It closes conn. The cause of
// ctx is told to the peer.
func (s *Session) Run(ctx context.Context, conn Conn, role hub.Role, peer hub.PeerID) error {
	return s.run(ctx, conn, role, peer, watch{func(wire.Hello) {}, func() {}})
}

// watch is what the keeper of a session is told; neither may block.
type watch struct {
	up     func(theirs wire.Hello)
	silent func() // at each look at a peer that does not answer
}

func (s *Session) run(ctx context.Context, conn Conn, role hub.Role, peer hub.PeerID, w watch) error {
	l := newLink(&s.cfg, conn, peer)
	l.silent = w.silent
	switch role {
	case hub.RoleHome:
		l.send, l.recv = hub.ToWorker, hub.ToHome
	case hub.RoleWorker:
		l.send, l.recv = hub.ToHome, hub.ToWorker
	default:
		return fmt.Errorf("relay session as %q: the role is home or worker", role)
	}
	defer conn.Close()
	theirs, err := l.greet(ctx)
	if err != nil {
		l.goodbye(ctx, err)
		return err
	}
	defer s.enter(l)()
	w.up(theirs)
	return l.run(ctx)
}

// link is one running session. Its reader, applier and sender goroutines end
// before run returns.
type link struct {
	cfg        *Config
	conn       Conn
	peer       hub.PeerID
	send, recv hub.Direction

	written  uint64          // frames so far; greet and the sender only
	came     *inbound        // greet and the reader only
	in       chan wire.Frame // items and acks, reader to applier
	out      *outbox         // control frames, for the sender
	sent     *ledger         // what the peer may acknowledge
	gaps     *gaps           // what we have asked for again
	inFlight *budget         // item bytes the peer may still send
	feed     hub.FeedState   // of the peer's log; applier only, after greet
	behind   behind          // applier only
	ahead    *ahead          // applier only
	log      hub.LogState    // of our own log, as the hello said; read after greet
	lacks    bool            // the peer has lost what it acknowledged; read after greet
	refused  refused         // applier only
	doubt    *doubt          // whether the connection has survived a sleep
	silent   func()          // sender only
	reading  atomic.Bool     // the reader waits for the network
	presence bool            // both sides speak of workers; set by greet
	heard    int64           // the last presence frame; reader only

	failed  chan struct{} // closed with the first failure
	once    sync.Once
	failure error // read after failed is closed
}

func newLink(cfg *Config, conn Conn, peer hub.PeerID) *link {
	return &link{
		cfg: cfg, conn: conn, peer: peer, came: newInbound(conn),
		in: make(chan wire.Frame, mergedFrames), out: newOutbox(), sent: newLedger(),
		gaps: newGaps(cfg.Again), inFlight: &budget{left: 2 * cfg.Window}, failed: make(chan struct{}),
		behind: behind{}, refused: refused{}, ahead: newAhead(cfg.Window), doubt: newDoubt(),
	}
}

func (l *link) fail(err error) {
	l.once.Do(func() { l.failure = err; close(l.failed) })
}

// run ends in this order: the first failure, the goodbye by the sender (or
// Grace later, if a write hangs), the connection, the other goroutines.
func (l *link) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { l.fail(context.Cause(ctx)) })
	defer stop()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context) error{l.read, l.apply} {
		wg.Go(func() { l.fail(loop(work)) })
	}
	wg.Go(func() {
		defer cancel()
		l.fail(l.sendAll(work))
	})
	<-l.failed
	grace := time.AfterFunc(l.cfg.Grace, cancel)
	defer grace.Stop()
	<-work.Done()
	l.conn.Close()
	wg.Wait()
	return l.failure
}

// receive returns the next frame.
func (l *link) receive(ctx context.Context) (wire.Frame, error) {
	raw, err := l.came.frame(ctx)
	if err != nil {
		return nil, err
	}
	f, err := wire.Decode(raw)
	if err != nil {
		return nil, protocolf("%v", err)
	}
	return f, nil
}

// write encodes, numbers and sends one frame; only greet and the sender call it.
func (l *link) write(ctx context.Context, f wire.Frame) error {
	raw, err := wire.Encode(make([]byte, numberSize), f)
	if err != nil {
		return fmt.Errorf("encoding a %T frame: %w", f, err)
	}
	l.written++
	binary.BigEndian.PutUint64(raw, l.written)
	return l.conn.WriteFrame(ctx, raw)
}

// goodbye is best effort: the connection may be the reason. A peer that has
// left gets none.
func (l *link) goodbye(ctx context.Context, why error) {
	if _, gone := errors.AsType[*PeerGone](why); gone {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Grace)
	defer cancel()
	_ = l.write(ctx, goodbyeFor(why))
}
