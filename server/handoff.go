package server

import (
	"context"
	"net"
	"sync"
)

// handoff is a net.Listener whose connections come from the accept loop.
type handoff struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newHandoff(addr net.Addr) *handoff {
	return &handoff{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// hand gives c to the server that accepts, or closes it if none does any more
// or ctx ends before.
func (h *handoff) hand(ctx context.Context, c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.done:
		_ = c.Close()
	case <-ctx.Done():
		_ = c.Close()
	}
}

// Accept returns the next connection, net.ErrClosed after Close.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept; it may be called more than once.
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr is the address of the one port.
func (h *handoff) Addr() net.Addr { return h.addr }
