package server

import (
	"net"
	"net/http"
	"sync"
)

// unused holds the connections that have not sent anything yet. Clients open
// such connections ahead of need; http.Server.Shutdown gives each five seconds
// to send its first request, which a hub that stops would refuse. It is safe
// for concurrent use; the zero value is ready.
type unused struct {
	mu    sync.Mutex
	over  bool                  // guarded by mu
	conns map[net.Conn]struct{} // guarded by mu
}

// follow is a http.Server's ConnState.
func (u *unused) follow(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, c)
	case u.over:
		_ = c.Close()
	case u.conns == nil:
		u.conns = map[net.Conn]struct{}{c: {}}
	default:
		u.conns[c] = struct{}{}
	}
}

// close closes them, and from now on each that follows; it may be called more
// than once.
func (u *unused) close() {
	u.mu.Lock()
	conns := u.conns
	u.over, u.conns = true, nil
	u.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
}
