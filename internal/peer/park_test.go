package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/testkit"
)

// nat is a home and a worker hub that only the worker hub can dial, through a
// proxy.
type nat struct {
	t            *testing.T
	home, worker *side
	proxy        *testkit.Proxy // before the home
	lot          *Lot
	parker       *Parker
	stop         func() // of the parker; returns when it has ended
	atHome       hub.PeerID
	atWorker     hub.PeerID

	mu      sync.Mutex
	arrived int                 // guarded by mu
	lost    []error             // guarded by mu
	inner   func(*tls.Config)   // changes what the worker serves on streams; guarded by mu
	hold    func(net.Conn) bool // keeps a taken stream from the server; guarded by mu
	ending  chan struct{}       // of the home
	conns   chan net.Conn       // taken streams, for the worker's server
}

const quick = 200 * time.Millisecond // a ping

func newNAT(t *testing.T) *nat {
	t.Helper()
	n := &nat{t: t, home: newSide(t, "home"), worker: newSide(t, "worker"), ending: make(chan struct{}), conns: make(chan net.Conn)}
	n.home.features(hub.FeatureReverse)
	n.lot = NewLot(LotConfig{Ping: quick, Answer: 500 * time.Millisecond, Arrived: func(hub.PeerID) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.arrived++
	}})
	n.home.mux.Handle("GET "+ParkPath, n.home.ParkHandler(n.lot, n.ending, func(_ hub.Peer, err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.lost = append(n.lost, err)
	}))
	n.home.relink(LinksConfig{Timeout: 2 * time.Second, Lot: n.lot})
	var err error
	if n.proxy, err = testkit.NewProxy(n.home.addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.proxy.Close() })
	inv := n.home.invite(InviteInput{As: hub.RoleHome})
	n.worker.url = "https://127.0.0.1:9" // what it tells of itself cannot be dialled
	got, err := n.worker.join(JoinInput{Name: "home", URL: "https://" + n.proxy.Addr(), Code: *inv.Code, Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	n.atHome, n.atWorker = n.home.only().ID, got.Peer.ID
	n.serve()
	n.park()
	return n
}

// features are offered by the side's hello.
func (s *side) features(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hello = func(h *hub.Hello) { h.Features = names }
}

// relink replaces the side's Links.
func (s *side) relink(cfg LinksConfig) {
	s.t.Helper()
	cfg.Identity, cfg.Peers = s.id, s.Service
	links, err := NewLinks(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(links.Close)
	s.links, s.client = links, NewClient(links)
}

// serve is the worker's peer server on taken streams.
func (n *nat) serve() {
	srv := &http.Server{Handler: n.worker.mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(tls.NewListener(streamListener{n}, n.innerTLS()))
	}()
	n.t.Cleanup(func() { close(n.conns); srv.Close(); <-done })
}

func (n *nat) innerTLS() *tls.Config {
	return &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		cfg := ServerConfig(h.Context(), n.worker.id, n.worker.Service)
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.inner != nil {
			n.inner(cfg)
		}
		return cfg, nil
	}}
}

type streamListener struct{ n *nat }

func (l streamListener) Accept() (net.Conn, error) {
	if c, ok := <-l.n.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l streamListener) Close() error   { return nil }
func (l streamListener) Addr() net.Addr { return &net.TCPAddr{} }

// park starts a parker, with a new process's memory.
func (n *nat) park() {
	n.t.Helper()
	var err error
	n.parker, err = NewParker(ParkerConfig{Links: n.worker.links, Ping: quick, BackoffMin: 20 * time.Millisecond, BackoffMax: 100 * time.Millisecond, Serve: n.taken})
	if err != nil {
		n.t.Fatal(err)
	}
	n.parker.Add(n.atWorker)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	parker := n.parker
	go func() { done <- parker.Run(ctx) }()
	n.stop = sync.OnceFunc(func() { cancel(); <-done })
	n.t.Cleanup(n.stop)
}

func (n *nat) taken(ctx context.Context, c net.Conn) {
	n.mu.Lock()
	hold := n.hold
	n.mu.Unlock()
	if hold != nil && hold(c) {
		return
	}
	select {
	case n.conns <- c:
	case <-ctx.Done():
		c.Close()
	}
}

func (n *nat) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *nat) eventually(what string, ok func() bool) {
	n.t.Helper()
	tick, end := time.NewTicker(2*time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer end.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end.C:
			n.t.Fatalf("not within 20s: %s; home has %d, worker says %+v", what, n.lot.Count(n.atHome), n.parker.State(n.atWorker))
		}
	}
}

// full waits until all streams are parked, as both sides see it.
func (n *nat) full() {
	n.t.Helper()
	n.eventually("four streams are parked", func() bool {
		return n.lot.Count(n.atHome) == 4 && n.parker.State(n.atWorker).Parked == 4
	})
}

// hello makes a fresh connection and returns its error.
func (n *nat) hello() error {
	n.home.links.Close()
	_, err := n.home.client.Hello(n.t.Context(), n.atHome)
	return err
}

func TestAcceptance_F15_AHubThatCannotBeDialledIsReached(t *testing.T) {
	n := newNAT(t)
	n.full()
	if p := n.home.only(); !p.Parks || p.Reverse || p.State != hub.PeerActive {
		t.Errorf("at home: %+v", p)
	}
	if p := n.worker.only(); !p.Reverse || p.Parks {
		t.Errorf("at the worker: %+v", p)
	}
	h, err := n.home.client.Hello(t.Context(), n.atHome)
	if err != nil || h.HubID != n.worker.id.HubID {
		t.Fatalf("%+v %v", h, err)
	}
	n.full() // a taken stream is replaced
	n.worker.mux.HandleFunc("GET /peer/v1/relay", n.worker.known(func(w http.ResponseWriter, r *http.Request) {
		c, err := AcceptRelay(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		f, err := c.ReadFrame(r.Context())
		if err == nil {
			err = c.WriteFrame(r.Context(), append(f, []byte(TransportOf(r))...))
		}
		if err != nil {
			t.Error(err)
		}
	}))
	c, err := n.home.links.Open(t.Context(), n.atHome)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if over := c.(frames).Transport(); over != TransportReverse {
		t.Errorf("the relay runs over %q", over)
	}
	if err := c.WriteFrame(t.Context(), []byte("by ")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.ReadFrame(t.Context()); err != nil || string(got) != "by reverse" {
		t.Errorf("%q %v", got, err)
	}
}

func TestDirectLinksSaySo(t *testing.T) {
	home, worker := paired(t)
	over := ""
	worker.mux.HandleFunc("GET /peer/v1/relay", func(w http.ResponseWriter, r *http.Request) {
		over = TransportOf(r)
		if c, err := AcceptRelay(w, r); err == nil {
			c.Close()
		}
	})
	c, err := home.links.Open(t.Context(), home.only().ID)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if got := c.(frames).Transport(); got != TransportDirect || over != TransportDirect {
		t.Errorf("%q and %q", got, over)
	}
}

// A stream is idle for many pings and still works: both sides count misses.
func TestParkedStreamsLiveOnPings(t *testing.T) {
	n := newNAT(t)
	n.full()
	before := n.proxy.Carried()
	n.eventually("many pings have passed", func() bool { return n.proxy.Carried() > before+1_500 })
	n.set(func() {
		if len(n.lost) != 0 || n.arrived > 4 {
			t.Errorf("%d streams came, lost: %v", n.arrived, n.lost)
		}
	})
	if err := n.hello(); err != nil {
		t.Error(err)
	}
}

func TestCutRestartedAndSilentStreamsHeal(t *testing.T) {
	n := newNAT(t)
	for name, harm := range map[string]func(){
		"cut": n.proxy.CutAll,
		"the home away for a while": func() {
			n.proxy.Refuse(true)
			n.proxy.CutAll()
			n.eventually("both sides know", func() bool { return n.lot.Count(n.atHome) == 0 && n.parker.State(n.atWorker).Parked == 0 })
			if st := n.parker.State(n.atWorker); st.LastError == "" || st.Stage == "" {
				t.Errorf("the worker says %+v", st)
			}
			n.proxy.Refuse(false)
		},
		"the worker's process": func() { n.stop(); n.park() },
		"the home drops them":  func() { n.lot.Renew() },
		"the worker renews":    func() { n.parker.Renew() },
		"the home is silent":   func() { n.parker.RenewAt(n.atWorker) },
		"silence": func() {
			n.proxy.Mute(true)
			n.eventually("both sides know", func() bool { return n.lot.Count(n.atHome) == 0 && n.parker.State(n.atWorker).Parked == 0 })
			n.proxy.Mute(false)
			n.proxy.CutAll()
		},
	} {
		n.full()
		if err := n.hello(); err != nil {
			t.Errorf("before %s: %v", name, err)
		}
		n.full()
		harm()
		n.full()
		if err := n.hello(); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// Whatever byte the network is cut at, nothing but the attempt is lost.
func TestCutsAtEveryPointHeal(t *testing.T) {
	n := newNAT(t)
	n.full()
	for at := int64(1); at < 12_000; at += 97 {
		n.proxy.CutAfter(at)
		_ = n.hello() // may fail: the cut may strike it
	}
	n.proxy.CutAfter(-1)
	n.eventually("it heals", func() bool { return n.hello() == nil })
	n.full()
}

func TestAStreamThatDoesNotAnswerIsPassedOver(t *testing.T) {
	n := newNAT(t)
	n.full()
	dead, _ := net.Pipe() // nobody reads it
	defer dead.Close()
	ended := make(chan error, 1)
	go func() { ended <- n.lot.park(t.Context(), n.atHome, dead, func() error { return nil }) }()
	n.eventually("it is there", func() bool { return n.lot.Count(n.atHome) == 5 })
	if err := n.hello(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the dead stream counts as taken")
	}
	n.full()
}

// With a blackhole as address and no stream, a connection waits for a stream.
func TestAConnectionWaitsForAStream(t *testing.T) {
	n := newNAT(t)
	n.stop()
	n.eventually("no stream is left", func() bool { return n.lot.Count(n.atHome) == 0 })
	got := make(chan error, 1)
	go func() { got <- n.hello() }()
	n.eventually("it waits", func() bool {
		n.lot.mu.Lock()
		defer n.lot.mu.Unlock()
		return n.lot.next[n.atHome] != nil
	})
	n.park()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestWithoutAStreamTheLimitHolds(t *testing.T) {
	n := newNAT(t)
	n.stop()
	n.home.relink(LinksConfig{Timeout: 300 * time.Millisecond, Lot: n.lot})
	n.eventually("no stream is left", func() bool { return n.lot.Count(n.atHome) == 0 })
	from := time.Now()
	err := n.hello()
	wantCode(t, "no stream", err, hub.CodeRemoteRuntimeUnavailable)
	if stageOf(err) != StageDial || time.Since(from) > 5*time.Second || !strings.Contains(err.Error(), "parked") {
		t.Errorf("after %s: %v", time.Since(from), err)
	}
	p := n.home.only()
	p.Parks = false
	n.home.edit(p)
	n.home.relink(LinksConfig{Timeout: time.Hour, Lot: n.lot})
	if err := n.hello(); stageOf(err) != StageDial { // and not after an hour
		t.Error(err)
	}
}

// While no stream is there, who answers at the worker's own addresses may be
// anybody; who answers on its stream may not.
func TestAcceptance_F09_AnotherKeyOnAStream(t *testing.T) {
	n := newNAT(t)
	stranger := newSide(t, "stranger")
	p := n.home.only()
	p.Addresses = []string{stranger.url}
	n.home.edit(p)
	n.stop()
	n.home.relink(LinksConfig{Timeout: 300 * time.Millisecond, Lot: n.lot})
	n.eventually("no stream is left", func() bool { return n.lot.Count(n.atHome) == 0 })
	wantCode(t, "somebody at its address", n.hello(), hub.CodeRemoteRuntimeUnavailable)
	n.home.relink(LinksConfig{Timeout: 5 * time.Second, Lot: n.lot})
	other, err := keystore.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n.set(func() {
		n.inner = func(c *tls.Config) { c.Certificates, c.GetCertificate = []tls.Certificate{other.Cert}, nil }
	})
	n.park()
	n.full()
	seen := n.worker.requests()
	_, err = n.home.links.connect(t.Context(), n.atHome)
	wantCode(t, "another key on the stream", err, hub.CodePeerChanged)
	if stageOf(err) != StagePin || n.worker.requests() != seen {
		t.Errorf("%v; %d requests came through", err, n.worker.requests()-seen)
	}
	n.set(func() { n.inner = nil })
	n.full()
	if err := n.hello(); err != nil {
		t.Error(err)
	}
}

func TestAnotherStoreOnAStream(t *testing.T) {
	n := newNAT(t)
	n.full()
	n.worker.mu.Lock()
	n.worker.hello = func(h *hub.Hello) { h.StoreID = "another" }
	n.worker.mu.Unlock()
	wantCode(t, "another store", n.hello(), hub.CodePeerStoreChanged)
}

func TestAcceptance_F10_ARemovedPeerHasNoStreams(t *testing.T) {
	n := newNAT(t)
	n.full()
	p := n.home.only()
	p.State = hub.PeerRemoved
	n.home.edit(p)
	from := time.Now()
	n.lot.Drop(n.atHome)
	n.eventually("its streams are closed", func() bool { return n.lot.Count(n.atHome) == 0 && n.parker.State(n.atWorker).Parked == 0 })
	if took := time.Since(from); took > time.Second {
		t.Errorf("they were closed after %s", took)
	}
	n.set(func() {
		if n.arrived != 4 {
			t.Errorf("%d streams came, of a removed peer %d", n.arrived, n.arrived-4)
		}
	})
	n.eventually("the worker hears why", func() bool { return n.parker.State(n.atWorker).Stage == StageTLS })
	p.State = hub.PeerActive
	n.home.edit(p)
	n.full()
	w := n.worker.only()
	w.State = hub.PeerRevoked
	n.worker.edit(w)
	n.parker.Remove(n.atWorker)
	n.eventually("the worker has closed them", func() bool { return n.lot.Count(n.atHome) == 0 })
	n.eventually("no connection waits for the next", func() bool { return !n.home.only().Parks })
}

// A peer that is removed between its admission and its stream's arrival.
func TestAStreamOfAPeerJustRemovedIsDropped(t *testing.T) {
	n := newNAT(t)
	near, far := net.Pipe()
	defer far.Close()
	err := n.lot.park(t.Context(), "peer_gone", near, func() error { return errors.New("removed") })
	if err == nil || n.lot.Count("peer_gone") != 0 {
		t.Errorf("%v, %d streams", err, n.lot.Count("peer_gone"))
	}
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("the stream is open")
	}
}

// What that asks is the record, not what was read at the admission.
func TestOnlyATrustedPeerIsNotedToPark(t *testing.T) {
	home, _ := paired(t)
	p := home.only()
	if err := home.noteParks(t.Context(), p); err != nil || !home.only().Parks {
		t.Errorf("active: %v", err)
	}
	for _, state := range []hub.PeerState{hub.PeerRevoked, hub.PeerRemoved} {
		gone := p
		gone.State = state
		home.edit(gone)
		wantCode(t, string(state), home.noteParks(t.Context(), p), hub.CodePeerRevoked)
		if home.only().Parks {
			t.Errorf("%s: it is noted", state)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	arrived := make(chan hub.PeerID)
	lot := NewLot(LotConfig{PerPeer: 2, Total: 3, Arrived: func(p hub.PeerID) { arrived <- p }})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	ended := make(chan string, 16)
	park := func(peer hub.PeerID, name string) {
		near, far := net.Pipe()
		wg.Go(func() { defer far.Close(); _ = lot.park(ctx, peer, near, func() error { return nil }); ended <- name })
		<-arrived
	}
	park("a", "a1")
	park("a", "a2")
	park("a", "a3")
	if got := <-ended; got != "a1" || lot.Count("a") != 2 {
		t.Errorf("%s gave way, %d are left", got, lot.Count("a"))
	}
	park("b", "b1")
	near, far := net.Pipe()
	defer far.Close()
	if err := lot.park(ctx, "c", near, func() error { return nil }); !hub.IsCode(err, hub.CodeRateLimited) || !lot.full("c") {
		t.Errorf("one too many in all: %v", err)
	}
	if lot.full("a") {
		t.Error("a peer with its share cannot replace its own")
	}
}

func TestWhoMayNotPark(t *testing.T) {
	home, worker := paired(t)
	home.features(hub.FeatureReverse)
	worker.features(hub.FeatureReverse)
	lot := NewLot(LotConfig{})
	worker.mux.Handle("GET "+ParkPath, worker.ParkHandler(lot, nil, func(_ hub.Peer, err error) { t.Error(err) }))
	p, err := NewParker(ParkerConfig{Links: home.links, Serve: func(context.Context, net.Conn) {}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.dial(t.Context(), home.only().ID)
	wantCode(t, "a home at its worker", err, hub.CodeOutOfScope)
	worker.features()
	_, err = p.dial(t.Context(), home.only().ID)
	wantCode(t, "a hub that does not take streams", err, hub.CodeCapabilityUnsupported)
	if stageOf(err) != StageContract {
		t.Errorf("stage of %v", err)
	}
}

// A park request needs its upgrade, and an answer that is none is an error.
func TestTheUpgradeIsChecked(t *testing.T) {
	n := newNAT(t)
	n.full()
	conn, _, err := n.worker.links.direct(t.Context(), n.worker.only())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+ParkPath+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: something\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%+v %v", resp, err)
	}
	for _, answer := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n", "nonsense\r\n\r\n"} {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			_, _ = http.ReadRequest(bufio.NewReader(far))
			_, _ = io.WriteString(far, answer)
		}()
		if _, err := askPark(t.Context(), near, time.Second); err == nil {
			t.Errorf("%q is taken for an upgrade", answer)
		}
		near.Close()
	}
}

// What the home sends right behind its answer is not lost with the reader that
// has read it ahead.
func TestBytesBehindTheUpgradeAreKept(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go func() {
		_, _ = http.ReadRequest(bufio.NewReader(far))
		_, _ = io.WriteString(far, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+ParkProtocol+"\r\n\r\nptx")
	}()
	c, err := askPark(t.Context(), near, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := make([]byte, 3)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "ptx" {
		t.Errorf("%q %v", got, err)
	}
}

// A peer that says what it was not asked loses its stream.
func TestBreachesEndTheStream(t *testing.T) {
	for name, bytes := range map[string]string{"an answer to no ping": "p", "taken before it is": "t", "noise": "x", "four answers": "pppp"} {
		near, far := net.Pipe()
		s := newParked(near)
		go func() { _, _ = io.WriteString(far, bytes) }()
		if err := s.keep(t.Context(), time.Hour); !errors.Is(err, errParkProtocol) {
			t.Errorf("%s: %v", name, err)
		}
		far.Close()
	}
	k := &Parker{cfg: ParkerConfig{Ping: time.Hour}}
	near, far := net.Pipe()
	defer far.Close()
	go func() { _, _ = far.Write([]byte("x")) }()
	if err := k.await(t.Context(), near, nil); !errors.Is(err, errParkProtocol) {
		t.Errorf("at the worker: %v", err)
	}
}

// Nothing that was started for streams is left, whatever became of them.
func TestNoGoroutineOutlivesItsStreams(t *testing.T) {
	n := newNAT(t)
	n.full()
	for range 20 {
		_ = n.hello()
		n.proxy.CutAll()
		n.parker.Renew()
		n.lot.Renew()
	}
	n.full()
	steady := runtime.NumGoroutine()
	for range 20 {
		n.eventually("it heals", func() bool { return n.hello() == nil })
		n.proxy.CutAll()
		n.full()
	}
	n.home.links.Close()
	n.full()
	n.eventually("as many goroutines as before", func() bool { return runtime.NumGoroutine() <= steady+8 })
	close(n.ending)
	n.stop()
	n.eventually("the home has let go", func() bool { return n.lot.Count(n.atHome) == 0 })
	n.lot.mu.Lock()
	defer n.lot.mu.Unlock()
	if n.lot.total != 0 || len(n.lot.streams) != 0 {
		t.Errorf("%d streams are still counted", n.lot.total)
	}
}
