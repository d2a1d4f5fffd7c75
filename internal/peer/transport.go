package peer

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// The transports of a link.
const (
	TransportDirect  = "direct"  // the home has dialled the worker hub
	TransportReverse = "reverse" // the worker hub has dialled the home and parked the stream
)

// transport yields byte streams to a peer. The same pinned TLS runs over all of
// them, the home as the client. Its errors are LinkErrors.
type transport interface {
	dial(ctx context.Context, p hub.Peer) (conn net.Conn, name string, err error)
}

// direct dials one address of a peer.
type direct struct {
	dialer
	host string
}

func (d direct) dial(ctx context.Context, _ hub.Peer) (net.Conn, string, error) {
	dialling(ctx, d.host)
	conn, err := d.dialTCP(ctx, d.host)
	return conn, TransportDirect, err
}

// reverse takes a stream that the peer has parked, and waits for one no longer
// than dialling may take.
type reverse struct {
	lot   *Lot
	limit time.Duration
}

func (r reverse) dial(ctx context.Context, p hub.Peer) (net.Conn, string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	conn, err := r.lot.take(ctx, p)
	if err == nil {
		dialling(ctx, TransportReverse)
	}
	return conn, TransportReverse, err
}

// carried is a stream that knows its transport.
type carried struct {
	net.Conn
	over string
}

// NetConn is the stream alone.
func (c carried) NetConn() net.Conn { return c.Conn }

// LocalAddr tells the transport too, to those who see no more of a connection.
func (c carried) LocalAddr() net.Addr { return carriedAddr{c.Conn.LocalAddr(), c.over} }

type carriedAddr struct {
	net.Addr
	over string
}

// transportOf is the transport of a connection that connect has made.
func transportOf(conn net.Conn) string {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(carried); ok {
		return c.over
	}
	return ""
}

// TransportOf is the transport by which a request has come to a server.
func TransportOf(r *http.Request) string {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(carriedAddr); ok {
		return a.over
	}
	return TransportDirect
}
