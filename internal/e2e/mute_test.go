//go:build unix

package e2e

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// muter forwards TCP connections to a target, and loses every answer that
// comes once lose says so; such a connection stays open and silent.
type muter struct {
	target string
	lose   func() bool
	ln     net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns []net.Conn
}

func newMuter(t testing.TB, target string) *muter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	m := &muter{target: target, ln: ln, lose: func() bool { return false }}
	m.wg.Go(m.accept)
	t.Cleanup(func() {
		ln.Close()
		m.cut()
		m.wg.Wait()
	})
	return m
}

// Addr is the https address of the proxy.
func (m *muter) Addr() string { return "https://" + m.ln.Addr().String() }

// set changes when answers are lost.
func (m *muter) set(lose func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lose = lose
}

// cut ends all connections.
func (m *muter) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		c.Close()
	}
	m.conns = nil
}

func (m *muter) accept() {
	for {
		in, err := m.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		out, err := net.Dial("tcp", m.target)
		if err != nil {
			in.Close()
			continue
		}
		m.mu.Lock()
		m.conns = append(m.conns, in, out)
		m.mu.Unlock()
		m.wg.Go(func() { m.copy(out, in, false) })
		m.wg.Go(func() { m.copy(in, out, true) })
	}
}

func (m *muter) copy(dst, src net.Conn, answers bool) {
	defer dst.Close()
	defer src.Close()
	buf, lost := make([]byte, 16<<10), false
	for {
		n, err := src.Read(buf)
		lost = lost || answers && n > 0 && m.loses()
		if n > 0 && !lost {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (m *muter) loses() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lose()
}
