package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// ends waits until a second is over for the end of what f blocks on.
func ends(t *testing.T, what string, f func() error) {
	t.Helper()
	end := make(chan error, 1)
	go func() { end <- f() }()
	select {
	case err := <-end:
		if err == nil {
			t.Errorf("%s goes on", what)
		}
	case <-time.After(time.Second):
		t.Errorf("a second later %s goes on", what)
	}
}

// openRelays serves relay sockets at the worker that answer what comes first.
func openRelays(worker *side) {
	worker.mux.HandleFunc("GET /peer/v1/relay", worker.known(func(w http.ResponseWriter, r *http.Request) {
		c, err := AcceptRelay(w, r)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			f, err := c.ReadFrame(r.Context())
			if err != nil || c.WriteFrame(r.Context(), f) != nil {
				return
			}
		}
	}))
}

// TestARelayOfAFormerKeyEnds: once the record has moved, what this hub has made
// with the key before is over; what it has made since goes on.
func TestARelayOfAFormerKeyEnds(t *testing.T) {
	home, worker := paired(t)
	openRelays(worker)
	id := home.only().ID
	old, err := home.links.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	worker.rotate(RotateInput{})
	fresh, err := home.links.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	home.links.Rekeyed(id, home.only().Fingerprint)
	ends(t, "the relay of the former key", func() error { _, err := old.ReadFrame(t.Context()); return err })
	if err := fresh.WriteFrame(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.ReadFrame(t.Context()); err != nil {
		t.Errorf("the relay of the present key: %v", err)
	}
	_ = fresh.Close()
	_ = old.Close()
	if home.links.conns.mu.Lock(); len(home.links.conns.conns) != 0 {
		t.Errorf("%d peers with connections are held", len(home.links.conns.conns))
	}
	home.links.conns.mu.Unlock()
}

// TestAKeyThatIsReplacedWhileItConnectsIsNotTaken: it knows the proofs, which are
// no secret, and does not tell that it is not the present key.
func TestAKeyThatIsReplacedWhileItConnectsIsNotTaken(t *testing.T) {
	home, worker := paired(t)
	before := home.only()
	worker.rotate(RotateInput{})
	worker.mu.Lock()
	worker.hello = func(h *hub.Hello) { h.Rotated = nil }
	worker.mu.Unlock()
	conn, err := home.links.dial.dialTLS(t.Context(), worker.addr, home.ring.Now().Present(), before.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	now := before
	now.Fingerprint, now.Proofs = worker.present(), worker.ring.Now().Lineage.Bytes()
	home.edit(now)
	_, again, err := home.links.meet(t.Context(), conn, before, home.ring.Now().Present())
	if err == nil && !again {
		t.Error("a connection of the former key is used")
	}
}

// fakeFrames is a relay socket with one frame after another.
type fakeFrames struct{ Conn }

func (fakeFrames) ReadFrame(context.Context) ([]byte, error) { return []byte("x"), nil }

// TestARelaySocketIsLookedAtWithItsFirstFrame: a key that was replaced or removed
// between the upgrade and the session gets no further.
func TestARelaySocketIsLookedAtWithItsFirstFrame(t *testing.T) {
	home, worker := paired(t)
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	key := home.present()
	read := func() error {
		conn := worker.Vet(fakeFrames{}, key)
		for range 2 {
			if _, err := conn.ReadFrame(t.Context()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	home.rotate(RotateInput{})
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "the former key", read(), hub.CodePeerChanged)
	key = home.present()
	worker.remove("home")
	wantCode(t, "a removed peer", read(), hub.CodePeerRevoked)
}

// TestAStreamParkedByAFormerKeyIsNotKept: that it was the pinned one when it asked
// does not count.
func TestAStreamParkedByAFormerKeyIsNotKept(t *testing.T) {
	home, worker := paired(t)
	before := worker.only()
	if err := worker.noteParks(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	home.rotate(RotateInput{})
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "the former key", worker.noteParks(t.Context(), before), hub.CodePeerChanged)
}

// TestACutDoesNotWaitForAPeerThatDoesNotRead: however many levels of TLS it has.
func TestACutDoesNotWaitForAPeerThatDoesNotRead(t *testing.T) {
	home, worker := paired(t)
	far, near := net.Pipe()
	outer := tls.Server(near, ServerConfig(t.Context(), worker.ring, worker.Service))
	inner := tls.Server(carried{buffered{Conn: outer}, TransportReverse}, ServerConfig(t.Context(), worker.ring, worker.Service))
	done := make(chan error, 1)
	go func() { done <- outer.Handshake() }()
	pin := worker.present()
	over := tls.Client(far, ClientConfig(home.ring.Now().Present(), pin))
	if err := errors.Join(over.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	var conns tracked
	conns.add("peer_1", inner)
	cut := make(chan struct{})
	go func() { conns.cut("peer_1"); close(cut) }()
	select {
	case <-cut:
	case <-time.After(time.Second):
		t.Error("a second later the cut waits")
		<-cut
	}
}
