//go:build unix

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// tripwire forwards to a hub, and calls once what it is set to when so many pieces
// have passed, of either direction.
type tripwire struct {
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu   sync.Mutex
	left int    // guarded by mu
	trip func() // guarded by mu
}

func newTripwire(t *testing.T, h *Hub) *tripwire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &tripwire{ln: ln, target: strings.TrimPrefix(h.Endpoint().URL, "https://")}
	w.wg.Go(w.accept)
	t.Cleanup(func() {
		must(t, ln.Close())
		w.wg.Wait()
	})
	return w
}

func (w *tripwire) url() string { return "https://" + w.ln.Addr().String() }

func (w *tripwire) set(pieces int, trip func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.trip = pieces, trip
}

// passed counts one piece.
func (w *tripwire) passed() {
	w.mu.Lock()
	w.left--
	trip := w.trip
	if w.left != 0 {
		trip = nil
	}
	w.mu.Unlock()
	if trip != nil {
		trip()
	}
}

func (w *tripwire) accept() {
	for {
		in, err := w.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.target)
		if err != nil {
			in.Close()
			continue
		}
		w.wg.Go(func() { w.copy(out, in) })
		w.wg.Go(func() { w.copy(in, out) })
	}
}

func (w *tripwire) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
			w.passed()
		}
		if err != nil {
			return
		}
	}
}

// TestAcceptance_F11_RealHubsAreKilledWhilePairing kills one of two hubs when so
// many pieces of the pairing's connection have passed: the handshake is three, the
// upgrade two, each of the messages one or two. The request, repeated with the same
// code, pairs the two.
func TestAcceptance_F11_RealHubsAreKilledWhilePairing(t *testing.T) {
	t.Parallel()
	joiner, inviter := StartHub(t, "home"), StartHub(t, "worker")
	wire := newTripwire(t, inviter)
	first, last := 8, 7+scaled(t, 3, 5, 9)
	for pieces := first; pieces <= last; pieces++ {
		for _, victim := range []*Hub{joiner, inviter} {
			killedPairing(t, joiner, inviter, wire, pieces, victim)
		}
	}
}

func killedPairing(t *testing.T, joiner, inviter *Hub, wire *tripwire, pieces int, victim *Hub) {
	t.Helper()
	what := fmt.Sprintf("%s killed after %d pieces", victim.Name, pieces)
	invite := get[api.InviteResult](t, inviter.Caller(), "peer", "invite").Invite
	file := filepath.Join(t.TempDir(), "code")
	must(t, os.WriteFile(file, []byte(*invite.Code), 0o600))
	add := []string{"peer", "add", "worker", wire.url(), "--code-file", file, "--retry-request", id.New("req_")}
	var once sync.Once
	wire.set(pieces, func() { once.Do(victim.Kill) })
	c := joiner.Caller()
	r := c.json(add...)
	wire.set(0, nil)
	once.Do(func() {}) // one that is under way comes to its end
	if _, gone := victim.process(); closed(gone) {
		victim.Start()
	} else if r.Code != 0 {
		t.Fatalf("%s: nobody was killed, and %+v", what, r)
	}
	if again := c.json(add...); again.Code != 0 {
		t.Fatalf("%s: first %+v\nagain %+v", what, r, again)
	}
	eventually(t, what+": the link is up", 20*time.Second, func() bool { return joiner.shown(t, "worker").Link.State == "up" })
	if p := inviter.shown(t, "home").Peer; p.State != "active" || p.Fingerprint != joiner.Endpoint().Fingerprint {
		t.Errorf("%s: the inviter has %+v", what, p)
	}
	get[api.PeerResult](t, joiner.Caller(), "peer", "remove", "worker")
	get[api.PeerResult](t, inviter.Caller(), "peer", "remove", "home")
}
