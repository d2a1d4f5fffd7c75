package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wavehub/wavehub/internal/hub"
)

// port serves a world on a loopback port until stop, which returns what Serve
// returned.
func (w *world) port(ln net.Listener) (addr string, stop func() error) {
	w.t.Helper()
	if ln == nil {
		var err error
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			w.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.server.Serve(ctx, ln) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	w.t.Cleanup(func() {
		if err := stop(); err != nil {
			w.t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr().String(), stop
}

func dialTLS(t *testing.T, addr, name string, certs ...tls.Certificate) (*tls.Conn, error) {
	t.Helper()
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{
		InsecureSkipVerify: true, ServerName: name, Certificates: certs, NextProtos: []string{"h2", "http/1.1"},
	}}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*tls.Conn), nil
}

// ask sends one request over the connection.
func ask(c net.Conn, path string) (*http.Response, string, error) {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, "", err
	}
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		return nil, "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, "", err
	}
	raw, err := io.ReadAll(resp.Body)
	return resp, string(raw), err
}

func TestServerNameSelectsTheMux(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	addr, _ := w.port(nil)
	cert := certificate(t, "home")
	for _, c := range []struct {
		name, shown, path string
		certs             []tls.Certificate
		status            int
	}{
		{"", "api", "/healthz", nil, 200},
		{"localhost", "api", "/healthz", nil, 200},
		{"localhost", "api", "/healthz", []tls.Certificate{cert}, 200},
		{"localhost", "api", "/peer/v1/hello", []tls.Certificate{cert}, 404},
		{PeerServerName, "peer", "/peer/v1/hello", []tls.Certificate{cert}, 200},
		{PeerServerName, "peer", "/healthz", []tls.Certificate{cert}, 404},
	} {
		conn, err := dialTLS(t, addr, c.name, c.certs...)
		if err != nil {
			t.Fatalf("%q: %v", c.name, err)
		}
		st := conn.ConnectionState()
		if st.PeerCertificates[0].Subject.CommonName != c.shown || st.NegotiatedProtocol != "http/1.1" {
			t.Errorf("%q: certificate of %s, protocol %q", c.name, st.PeerCertificates[0].Subject.CommonName, st.NegotiatedProtocol)
		}
		resp, body, err := ask(conn, c.path)
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%q %s: %v %v %s", c.name, c.path, resp, err, body)
		}
	}
	conn, err := dialTLS(t, addr, PeerServerName)
	if err == nil { // TLS 1.3 tells the client with its first read
		_, _, err = ask(conn, "/peer/v1/pair")
	}
	if err == nil {
		t.Error("a peer without a key is served")
	}
}

// remoteListener makes its connections look as if they came from elsewhere.
type remoteListener struct{ net.Listener }

type remoteConn struct{ net.Conn }

func (l remoteListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return remoteConn{c}, nil
}

func (remoteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7} }

func TestRemoteClients(t *testing.T) {
	for _, remote := range []bool{false, true} {
		w := newWorld(t, func(c *Config) { c.APIRemote = remote })
		w.paired(hub.PeerActive)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr, _ := w.port(remoteListener{ln})
		if _, err := dialTLS(t, addr, "localhost"); (err == nil) != remote {
			t.Errorf("api_remote %v: %v", remote, err)
		}
		conn, err := dialTLS(t, addr, PeerServerName, certificate(t, "home"))
		if err != nil {
			t.Fatal(err)
		}
		if resp, _, err := ask(conn, "/peer/v1/hello"); err != nil || resp.StatusCode != 200 {
			t.Errorf("a remote peer: %v %v", resp, err)
		}
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	w := newWorld(t)
	addr, _ := w.port(nil)
	w.server.meter.open.Store(maxConnections)
	if _, err := dialTLS(t, addr, "localhost"); err == nil {
		t.Error("one connection too many is served")
	}
	eventually(t, func() bool { return w.server.meter.open.Load() == maxConnections })
	w.server.meter.open.Store(0)
	conn, err := dialTLS(t, addr, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.server.meter.open.Load() == 1 })
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.server.meter.open.Load() == 0 })
}

// TestWaitsCountApart: a connection whose call waits is no connection meanwhile.
func TestWaitsCountApart(t *testing.T) {
	w := newWorld(t)
	run, consumer := w.bound()
	addr, _ := w.port(nil)
	conn, err := dialTLS(t, addr, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	q := w.check(run, consumer, `{"wait_ms":600000}`).http()
	q.Host = "127.0.0.1"
	if err := q.Write(conn); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.server.meter.waits.Load() == 1 && w.server.meter.open.Load() == 0 })
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.server.meter.waits.Load() == 0 && w.server.meter.open.Load() == 0 })
}

func TestStoppingLeavesNothingBehind(t *testing.T) {
	w := newWorld(t)
	run, consumer := w.bound()
	before := goleak.IgnoreCurrent()
	addr, stop := w.port(nil)
	waiting, err := dialTLS(t, addr, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	q := w.check(run, consumer, `{"wait_ms":600000}`).http()
	if err := q.Write(waiting); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.server.meter.waits.Load() == 1 })
	silent, err := net.Dial("tcp", addr) // never shakes hands
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	idle, err := dialTLS(t, addr, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(idle, "/healthz"); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(waiting), nil)
	if err != nil || resp.StatusCode != 503 {
		t.Errorf("the waiting call: %v %v", resp, err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the port still accepts")
	}
	if n := w.server.meter.open.Load(); n != 0 {
		t.Errorf("%d connections are counted", n)
	}
	goleak.VerifyNone(t, before)
	if err := w.server.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown again: %v", err)
	}
}

// A connection that was opened ahead of need does not hold up the end, for which
// http.Server would give it five seconds from its opening.
func TestStoppingClosesUnusedConnections(t *testing.T) {
	w := newWorld(t)
	addr, stop := w.port(nil)
	c, err := dialTLS(t, addr, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(4 * time.Second)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.server.unused.count() == 1 })
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the unused connection: %v", err)
	}
	if n := w.server.unused.count(); n != 0 {
		t.Errorf("%d unused connections are remembered", n)
	}
}

func (u *unused) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns)
}

// stingyListener fails before each connection.
type stingyListener struct {
	net.Listener
	failed bool
}

func (l *stingyListener) Accept() (net.Conn, error) {
	if l.failed = !l.failed; l.failed {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func TestAcceptingSurvivesFailures(t *testing.T) {
	w := newWorld(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := w.port(&stingyListener{Listener: ln})
	for range 2 {
		conn, err := dialTLS(t, addr, "localhost")
		if err != nil {
			t.Fatal(err)
		}
		if _, body, err := ask(conn, "/healthz"); err != nil || !strings.Contains(body, "ok") {
			t.Errorf("%q %v", body, err)
		}
	}
}

func TestNewValidates(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration is taken")
	}
	short := newWorld(t).server.cfg
	short.CursorKey = []byte("short")
	if _, err := New(short); err == nil {
		t.Error("a short cursor key is taken")
	}
}
