package server

import (
	"bufio"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
)

// TestAcceptance_F10_TheConnectionsOfAKeyAreCut: idle or not, and no others.
func TestAcceptance_F10_TheConnectionsOfAKeyAreCut(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	addr, _ := w.port(nil)
	theirs, others := certificate(t, "home"), certificate(t, "other")
	leaf, err := x509.ParseCertificate(theirs.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	used, err := dialTLS(t, addr, PeerServerName, theirs)
	if err != nil {
		t.Fatal(err)
	}
	other, err := dialTLS(t, addr, PeerServerName, others)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{used, other} {
		if _, _, err := ask(c, "/peer/v1/hello"); err != nil {
			t.Fatal(err)
		}
	}
	w.server.CutPeer(keystore.FingerprintOf(leaf))
	if err := used.SetDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := used.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("a second later it is open: %v", err)
	}
	if _, _, err := ask(other, "/peer/v1/hello"); err != nil {
		t.Errorf("another key: %v", err)
	}
}

// TestARotationIsAnsweredBeforeItsKeyIsCut: who moves the pin cuts the key that it
// was asked with, and still answers.
func TestARotationIsAnsweredBeforeItsKeyIsCut(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	addr, _ := w.port(nil)
	cert := certificate(t, "home")
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	w.peers.moved = func() { w.server.CutPeer(keystore.FingerprintOf(leaf)) }
	conn, err := dialTLS(t, addr, PeerServerName, cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	body := `{"proofs":"","signature":""}`
	if _, err := fmt.Fprintf(conn, "POST /peer/v1/rotate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the answer: %v %v", resp, err)
	}
	if _, _, err := ask(conn, "/peer/v1/hello"); err != nil { // its server is past the answer
		t.Fatal(err)
	}
	w.server.CutPeer(keystore.FingerprintOf(leaf))
	if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("after the answer it is spared still: %v", err)
	}
	w.server.peerConns.mu.Lock()
	defer w.server.peerConns.mu.Unlock()
	if n := len(w.server.peerConns.spared); n != 0 {
		t.Errorf("%d connections are spared", n)
	}
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout() && err != io.EOF
}
