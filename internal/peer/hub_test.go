package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/receipt"
)

// side is one hub: service, links, and a peer mux over real TLS on loopback.
type side struct {
	*Service
	t      testing.TB
	store  *memStore
	id     keystore.Identity // of the beginning
	ring   *keystore.Ring
	links  *Links
	client *Client
	url    string
	addr   string
	mux    *http.ServeMux
	cfg    Config

	rotated func(context.Context) error // Config.Rotated, if set

	mu    sync.Mutex
	hello func(*hub.Hello) // changes what is served; guarded by mu
	seen  int              // requests that reached the mux; guarded by mu
}

// cheap is the Argon2 cost of tests.
var cheap = Cost{Time: 1, MemoryKiB: 64, Threads: 1}

func newSide(t testing.TB, name string) *side {
	t.Helper()
	dir := t.TempDir()
	id, err := keystore.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{t: t, store: newMemStore("store-" + name), id: id, ring: keystore.NewRing(dir, id), mux: http.NewServeMux()}
	s.cfg = Config{
		Store: s.store, Gate: s.newGate(), Identity: s.ring, Rotator: s.ring, Features: hub.Features(), TokenKey: make([]byte, 32), Name: name, Nonce: "nonce-" + name,
		Addresses: func() []string { return []string{s.url} }, Now: s.store.now, Cost: cheap,
		AttemptEvery: time.Millisecond, FailureAfter: time.Millisecond,
		Rotated: func(ctx context.Context) error {
			if s.rotated != nil {
				return s.rotated(ctx)
			}
			return nil
		},
	}
	if s.Service, err = New(s.cfg); err != nil {
		t.Fatal(err)
	}
	s.listen()
	if s.links, err = NewLinks(LinksConfig{Identity: s.ring, Peers: s.Service, Offer: hub.OwnOffer(), Timeout: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.links.Close)
	s.client = NewClient(s.links)
	return s
}

func (s *side) newGate() *receipt.Gate {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(func() { cancel(); wg.Wait() })
	return receipt.NewGate(s.store, func(f func(context.Context)) bool { wg.Go(func() { f(ctx) }); return true })
}

// now is the service of the present process.
func (s *side) now() *Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Service
}

// restart is the hub after kill -9: of what it knew, the store is left.
func (s *side) restart() {
	s.t.Helper()
	cfg := s.cfg
	cfg.Gate, cfg.Nonce = s.newGate(), cfg.Nonce+"+"
	next, err := New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Service = next
}

func (s *side) listen() {
	s.mux.HandleFunc("GET /peer/v1/pair", func(w http.ResponseWriter, r *http.Request) { s.now().PairHandler().ServeHTTP(w, r) })
	s.mux.HandleFunc("GET /peer/v1/hello", s.known(func(w http.ResponseWriter, r *http.Request) {
		h, err := s.now().Greet(r)
		if err != nil {
			writeProblem(w, err)
			return
		}
		s.mu.Lock()
		if s.hello != nil {
			s.hello(&h)
		}
		s.mu.Unlock()
		writeJSON(w, 200, h)
	}))
	s.mux.HandleFunc("POST /peer/v1/rotate", func(w http.ResponseWriter, r *http.Request) {
		p, err := s.Admit(r.Context(), KeyOf(r.TLS))
		var in hub.Rotation
		if err == nil {
			err = json.NewDecoder(r.Body).Decode(&in)
		}
		var out hub.RotationTaken
		if err == nil {
			out, err = s.FollowRotation(r.Context(), r.TLS, p, in)
		}
		if err != nil {
			writeProblem(w, err)
			return
		}
		writeJSON(w, 200, out)
	})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen++
		s.mu.Unlock()
		s.mux.ServeHTTP(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = ServerConfig(context.Background(), s.ring, s.Service)
	srv.TLS.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		return ServerConfig(h.Context(), s.ring, s.now()), nil
	}
	srv.StartTLS()
	s.t.Cleanup(srv.Close)
	s.url, s.addr = srv.URL, srv.Listener.Addr().String()
}

// known is the guard of every route but pairing.
func (s *side) known(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.now().Admit(r.Context(), KeyOf(r.TLS)); err != nil {
			writeProblem(w, err)
			return
		}
		h(w, r)
	}
}

func (s *side) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func request(t testing.TB, op string, args any) receipt.Request {
	t.Helper()
	r, err := receipt.New(hub.Principal{Kind: hub.SystemPrincipal}, "", op, args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *side) invite(in InviteInput) InviteView {
	s.t.Helper()
	out, err := s.Invite(s.t.Context(), request(s.t, "peer.invite", in), in)
	if err != nil || out.Invite.Code == nil {
		s.t.Fatalf("invite: %+v %v", out, err)
	}
	return out.Invite
}

func (s *side) join(in JoinInput) (PeerResult, error) {
	s.t.Helper()
	return s.Join(s.t.Context(), request(s.t, "peer.add", in.Name), in)
}

// paired joins two fresh hubs: the second one is the worker.
func paired(t *testing.T) (home, worker *side) {
	home, worker = newSide(t, "home"), newSide(t, "worker")
	inv := worker.invite(InviteInput{})
	if _, err := home.join(JoinInput{Name: "box", URL: worker.url, Code: *inv.Code}); err != nil {
		t.Fatal(err)
	}
	return home, worker
}

func (s *side) only() hub.Peer {
	s.t.Helper()
	ps := s.store.all()
	if len(ps) != 1 {
		s.t.Fatalf("%d peers, want 1: %+v", len(ps), ps)
	}
	return ps[0]
}

func wantCode(t *testing.T, what string, err error, code hub.Code) {
	t.Helper()
	if !hub.IsCode(err, code) {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// put stores an invite as it is.
func (s *side) put(i hub.Invite) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.invites = append(s.store.invites, i)
}
