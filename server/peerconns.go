package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/wavehub/wavehub/internal/keystore"
)

// peerConns holds the connections of the peer mux that http.Server answers on;
// a websocket's is its handler's. It is safe for concurrent use; the zero value
// is ready.
type peerConns struct {
	mu     sync.Mutex
	conns  map[*tls.Conn]struct{} // guarded by mu
	spared map[net.Conn]struct{}  // what some of them run over; guarded by mu
}

// spare has the connection of a request outlive a cut until the request has been
// answered. What comes next on it is judged by its key as ever.
func (p *peerConns) spare(r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spared == nil {
		p.spared = map[net.Conn]struct{}{}
	}
	p.spared[c] = struct{}{}
}

// follow is a http.Server's ConnState.
func (p *peerConns) follow(c net.Conn, state http.ConnState) {
	conn, ok := c.(*tls.Conn)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if state != http.StateActive {
		delete(p.spared, conn.NetConn())
	}
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(p.conns, conn)
	case p.conns == nil:
		p.conns = map[*tls.Conn]struct{}{conn: {}}
	default:
		p.conns[conn] = struct{}{}
	}
}

// of returns the connections that proved the key.
func (p *peerConns) of(fingerprint string) (found []*tls.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if _, spared := p.spared[c.NetConn()]; spared {
			continue
		}
		if certs := c.ConnectionState().PeerCertificates; len(certs) > 0 && keystore.FingerprintOf(certs[0]) == fingerprint {
			found = append(found, c)
		}
	}
	return found
}

// CutPeer closes the connections of a peer's key at once, idle or not: their
// requests end unanswered. Websockets are their handlers' to end.
func (s *Server) CutPeer(fingerprint string) {
	for _, c := range s.peerConns.of(fingerprint) {
		_ = c.NetConn().Close() // the server sees that it is closed
	}
}
