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

// trackedConn leaves its set when it is closed. relay says that cut leaves it
// alone; it is guarded by the set's mu.
type trackedConn struct {
	*tls.Conn
	peer  hub.PeerID
	set   *tracked
	relay bool
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
	c.set.forget(c)
	return c.Conn.Close()
}

// forRelay leaves it to the relay to end the connection with its peer.
func (t *tracked) forRelay(conn net.Conn) {
	if c, ok := conn.(*trackedConn); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		c.relay = true
	}
}

func (t *tracked) forget(c *trackedConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns[c.peer], c)
	if len(t.conns[c.peer]) == 0 {
		delete(t.conns, c.peer)
	}
}

// cut ends the peer's connections at once, whatever they are in the middle of, but
// for those of the relay.
func (t *tracked) cut(peer hub.PeerID) {
	t.sever(peer, func(c *trackedConn) bool { return !c.relay })
}

// cutOthers ends at once, the relay's too, what was made with another key of the
// peer.
func (t *tracked) cutOthers(peer hub.PeerID, key string) {
	t.sever(peer, func(c *trackedConn) bool {
		cs := c.ConnectionState()
		return KeyOf(&cs) != key
	})
}

func (t *tracked) sever(peer hub.PeerID, which func(*trackedConn) bool) {
	t.mu.Lock()
	var ends []*trackedConn
	for c := range t.conns[peer] {
		if which(c) {
			ends = append(ends, c)
		}
	}
	t.mu.Unlock()
	for _, c := range ends {
		_ = lowest(c).Close() // its reader and its owner see that it is closed
	}
}

// lowest is what a connection runs over at the very bottom. TLS's own goodbye, on
// any level, would wait for a peer that does not read.
func lowest(conn net.Conn) net.Conn {
	for {
		over, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = over.NetConn()
	}
}
