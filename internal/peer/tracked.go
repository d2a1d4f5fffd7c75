package peer

import (
	"crypto/tls"
	"net"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
)

// tracked holds the connections that were made to peers, until they close. It is
// safe for concurrent use; the zero value is ready.
type tracked struct {
	mu    sync.Mutex
	conns map[hub.PeerID]map[*trackedConn]struct{} // guarded by mu
}

// trackedConn leaves its set when it is closed.
type trackedConn struct {
	*tls.Conn
	peer hub.PeerID
	set  *tracked
}

func (t *tracked) add(peer hub.PeerID, conn *tls.Conn) net.Conn {
	c := &trackedConn{Conn: conn, peer: peer, set: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns = map[hub.PeerID]map[*trackedConn]struct{}{}
	}
	if t.conns[peer] == nil {
		t.conns[peer] = map[*trackedConn]struct{}{}
	}
	t.conns[peer][c] = struct{}{}
	return c
}

// Close closes the connection.
func (c *trackedConn) Close() error {
	c.set.release(c)
	return c.Conn.Close()
}

// release forgets a connection, which others close from now on.
func (t *tracked) release(conn net.Conn) {
	c, ok := conn.(*trackedConn)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns[c.peer], c)
	if len(t.conns[c.peer]) == 0 {
		delete(t.conns, c.peer)
	}
}

// cut ends the peer's connections at once, whatever they are in the middle of.
// TLS's own goodbye would wait for a peer that does not read.
func (t *tracked) cut(peer hub.PeerID) {
	t.mu.Lock()
	conns := t.conns[peer]
	delete(t.conns, peer)
	t.mu.Unlock()
	for c := range conns {
		_ = c.NetConn().Close() // its reader and its owner see that it is closed
	}
}
