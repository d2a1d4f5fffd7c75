package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/wavehub/wavehub/internal/metrics"
)

// meter counts connections and waits. A connection whose call waits counts
// among the waits, not among the connections. It is safe for concurrent use.
type meter struct {
	metrics *metrics.Metrics
	open    atomic.Int64
	waits   atomic.Int64
}

func newMeter(m *metrics.Metrics) *meter { return &meter{metrics: m} }

func (m *meter) addOpen(n int64) int64 {
	now := m.open.Add(n)
	m.metrics.Connections(now)
	return now
}

// enterWait counts one more wait, and returns what ends it; false when there
// are too many.
func (m *meter) enterWait(r *http.Request) (leave func(), ok bool) {
	if now := m.waits.Add(1); now > maxWaits {
		m.waits.Add(-1)
		return nil, false
	}
	m.metrics.Waits(m.waits.Load())
	_, counted := r.Context().Value(connKey{}).(*conn)
	if counted {
		m.addOpen(-1)
	}
	return func() {
		m.metrics.Waits(m.waits.Add(-1))
		if counted {
			m.addOpen(1)
		}
	}, true
}

// conn is an accepted connection; closing it, once, gives its place back.
type conn struct {
	net.Conn
	meter *meter
	once  sync.Once
}

// Close closes the connection.
func (c *conn) Close() error {
	c.once.Do(func() { c.meter.addOpen(-1) })
	return c.Conn.Close()
}

type connKey struct{}

// withConn lets handlers find the connection that they answer on.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if counted, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, counted)
	}
	return ctx
}
