package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// Desk serves the connections that homes open to this hub: one live session
// per peer. It is safe for concurrent use.
type Desk struct {
	session *Session

	mu     sync.Mutex
	visits int64 // guarded by mu
	twins  processes
	live   map[hub.PeerID]map[*visit]struct{} // guarded by mu
}

// visit is one connection; nonce is "" until its hello.
type visit struct {
	n     int64      // counts connections; guarded by Desk.mu
	nonce string     // guarded by Desk.mu
	up    bool       // guarded by Desk.mu
	since hub.Micros // of its hello; guarded by Desk.mu
	over  string     // the transport
	stop  context.CancelCauseFunc
}

// NewDesk makes a Desk; it starts nothing.
func NewDesk(s *Session) (*Desk, error) {
	if s == nil {
		return nil, errors.New("relay: a Desk needs a Session")
	}
	return &Desk{session: s, live: map[hub.PeerID]map[*visit]struct{}{}}, nil
}

var errReplaced = hub.Errorf(hub.CodePreconditionFailed, "a newer connection of the same process took over")

// Serve runs the worker's side of conn until it ends and returns why. A new
// session of the same process ends the older one quietly. Of two processes of one
// store the one that was met first ends with peer_duplicate, however often it
// comes back while the other is connected.
func (d *Desk) Serve(ctx context.Context, conn Conn, peer hub.PeerID) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	v := &visit{stop: stop, over: transportOf(conn)}
	d.enter(peer, v)
	defer d.leave(peer, v)
	return d.session.run(ctx, conn, hub.RoleWorker, peer, watch{
		up:     func(theirs wire.Hello) { d.arrive(peer, v, theirs.Nonce) },
		silent: func() { d.session.cfg.Silent(peer) },
	})
}

func (d *Desk) enter(peer hub.PeerID, v *visit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[peer] == nil {
		d.live[peer] = map[*visit]struct{}{}
	}
	d.visits++
	v.n = d.visits
	d.live[peer][v] = struct{}{}
}

func (d *Desk) leave(peer hub.PeerID, v *visit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.live[peer], v)
	if len(d.live[peer]) == 0 {
		delete(d.live, peer)
	}
}

func (d *Desk) arrive(peer hub.PeerID, v *visit, nonce string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v.nonce, v.up, v.since = nonce, true, hub.MicrosOf(time.Now())
	d.twins.hear(peer, nonce)
	for other := range d.live[peer] {
		if other != v && other.up {
			d.yield(peer, v, other)
		}
	}
}

// yield ends one of two live connections.
func (d *Desk) yield(peer hub.PeerID, a, b *visit) {
	older, why := a, error(errReplaced)
	if a.nonce == b.nonce && b.n < a.n || a.nonce != b.nonce && d.twins.before(peer, b.nonce, a.nonce) {
		older = b
	}
	if a.nonce != b.nonce {
		why = errTwin
	}
	older.stop(why)
}

// Drop ends the peer's sessions at once, with a goodbye that says it is
// revoked.
func (d *Desk) Drop(peer hub.PeerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.twins.forget(peer)
	for v := range d.live[peer] {
		v.stop(errRevoked)
	}
}

var errRecalled = hub.Errorf(hub.CodePreconditionFailed, "a key was rotated; connect again")

// Recall ends the peer's sessions, so that it connects again.
func (d *Desk) Recall(peer hub.PeerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for v := range d.live[peer] {
		v.stop(errRecalled)
	}
}

// Up reports whether a session of the peer is past its hello.
func (d *Desk) Up(peer hub.PeerID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for v := range d.live[peer] {
		if v.up {
			return true
		}
	}
	return false
}

// State is the link of a peer as the worker's side sees it: up while a session
// of the peer is past its hello.
func (d *Desk) State(peer hub.PeerID) LinkState {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := LinkState{State: LinkDown}
	for v := range d.live[peer] {
		if v.up && v.since >= st.ConnectedAt {
			st = LinkState{State: LinkUp, Transport: v.over, ConnectedAt: v.since}
		}
	}
	return st
}
