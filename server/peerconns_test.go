package server

import (
	"crypto/x509"
	"io"
	"net"
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

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout() && err != io.EOF
}
