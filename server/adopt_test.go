package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
)

// tcpPair is a TCP connection on loopback: the end for the server, and ours.
func tcpPair(t *testing.T) (theirs, ours net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if theirs, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = theirs.Close(), ours.Close() })
	return theirs, ours
}

// askOver sends GET path over TLS on raw, as a client of the server name.
func askOver(t *testing.T, raw net.Conn, name, path string) (string, error) {
	t.Helper()
	if err := raw.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: name, Certificates: []tls.Certificate{certificate(t, "home")}})
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestAdoptedConnectionsReachThePeerMuxOnly(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	early, ours := tcpPair(t)
	adopted := make(chan struct{})
	go func() { defer close(adopted); w.server.Adopt(t.Context(), early) }() // waits for Serve
	_, stop := w.port(nil)
	if got, err := askOver(t, ours, PeerServerName, "/peer/v1/hello"); err != nil || !strings.Contains(got, "hub_test") {
		t.Errorf("the peer mux: %q %v", got, err)
	}
	<-adopted
	theirs, ours := tcpPair(t)
	w.server.Adopt(t.Context(), theirs)
	asked := keystore.ServerName("hub_test", PeerServerName) // by a name that says which key is wanted
	if got, err := askOver(t, ours, asked, "/peer/v1/hello"); err != nil || !strings.Contains(got, "hub_test") {
		t.Errorf("the peer mux by a key's name: %q %v", got, err)
	}
	for _, name := range []string{"localhost", "", "127.0.0.1"} {
		theirs, ours := tcpPair(t)
		w.server.Adopt(t.Context(), theirs)
		if got, err := askOver(t, ours, name, "/healthz"); err == nil {
			t.Errorf("the API is served to %q: %q", name, got)
		}
	}
	if n := w.server.meter.open.Load(); n > 1 {
		t.Errorf("%d connections are counted", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	late, ours := tcpPair(t)
	w.server.Adopt(t.Context(), late)
	if _, err := ours.Read(make([]byte, 1)); err == nil {
		t.Error("a server that has ended has taken a connection")
	}
}

func TestAdoptGivesUpWithItsContext(t *testing.T) {
	w := newWorld(t)
	theirs, ours := tcpPair(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.server.Adopt(ctx, theirs)
	if _, err := ours.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}
