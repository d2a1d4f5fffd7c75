package relay

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/backoff"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// The states of a link.
const (
	LinkUp         = "up"
	LinkDown       = "down"
	LinkConnecting = "connecting"
)

// LinkState is what is known of the link to a peer. Transport is that of the
// live connection, "" without one. Stage, Code and LastError are of the last
// failure; LastError may hold the peer's words.
type LinkState struct {
	State       string     `json:"state"`
	Transport   string     `json:"transport"`
	Stage       string     `json:"stage"`
	Code        hub.Code   `json:"code"`
	LastError   string     `json:"last_error"`
	ConnectedAt hub.Micros `json:"connected_at"`
}

// HomeConfig configures a Home. Zero durations mean the defaults.
type HomeConfig struct {
	Session *Session
	Links   Links
	// Changed is told of every change of a link's state, in order per peer; it
	// must not block. May be nil.
	Changed func(hub.PeerID, LinkState)

	BackoffMin time.Duration // 500 ms
	BackoffMax time.Duration // 30 s
	Steady     time.Duration // 10 s: a link that lasted as long starts over at BackoffMin
}

// Home keeps one relay connection to each of its peers, dialled from here,
// with one goroutine per peer. It is safe for concurrent use.
type Home struct {
	cfg     HomeConfig
	changed chan struct{} // holds one wake-up of Run
	twins   processes

	mu      sync.Mutex
	pulls   map[hub.PeerID]*pull // guarded by mu
	leaving map[hub.PeerID]*pull // those removed whose goroutines have not ended; guarded by mu
}

// pull is one peer; state, running and stop are guarded by Home.mu. ended is closed
// when it has told of its last state.
type pull struct {
	peer    hub.PeerID
	pace    *backoff.Pace
	state   LinkState
	running bool
	stop    context.CancelCauseFunc
	before  *pull         // of the same peer, removed: this one begins when it has ended
	ended   chan struct{} // closed by the goroutine
}

// NewHome validates cfg; it starts nothing.
func NewHome(cfg HomeConfig) (*Home, error) {
	if cfg.Session == nil || cfg.Links == nil {
		return nil, errors.New("relay: a Home needs Session and Links")
	}
	if cfg.Changed == nil {
		cfg.Changed = func(hub.PeerID, LinkState) {}
	}
	orDuration(&cfg.BackoffMin, 500*time.Millisecond)
	orDuration(&cfg.BackoffMax, 30*time.Second)
	orDuration(&cfg.Steady, 10*time.Second)
	return &Home{cfg: cfg, changed: make(chan struct{}, 1), pulls: map[hub.PeerID]*pull{}, leaving: map[hub.PeerID]*pull{}}, nil
}

// Run keeps the links until ctx ends; it returns when all have ended. It is
// called once.
func (h *Home) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		h.start(ctx, &wg)
		select {
		case <-h.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (h *Home) start(ctx context.Context, wg *sync.WaitGroup) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.pulls {
		if p.running {
			continue
		}
		own, stop := context.WithCancelCause(ctx)
		p.running, p.stop = true, stop
		wg.Go(func() {
			defer h.left(p)
			defer stop(nil)
			if p.before != nil {
				<-p.before.ended
				p.before = nil
			}
			h.pull(own, p)
		})
	}
}

// left notes that the goroutine of a pull has ended.
func (h *Home) left(p *pull) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leaving[p.peer] == p {
		delete(h.leaving, p.peer)
	}
	close(p.ended)
}

// Add begins to keep a link to the peer; one that is kept is kicked.
func (h *Home) Add(peer hub.PeerID) {
	h.mu.Lock()
	_, known := h.pulls[peer]
	if !known {
		h.pulls[peer] = &pull{
			peer: peer, pace: backoff.New(h.cfg.BackoffMin, h.cfg.BackoffMax), stop: func(error) {}, state: LinkState{State: LinkConnecting},
			before: h.leaving[peer], ended: make(chan struct{}),
		}
	}
	h.mu.Unlock()
	if known {
		h.Kick(peer)
		return
	}
	poke(h.changed)
}

// Remove ends the peer's session at once, with a goodbye that says it is
// revoked, and dials no more.
func (h *Home) Remove(peer hub.PeerID) {
	h.mu.Lock()
	p, ok := h.pulls[peer]
	delete(h.pulls, peer)
	h.twins.forget(peer)
	if ok && p.running {
		h.leaving[peer] = p
	}
	h.mu.Unlock()
	if ok {
		h.stopOf(p)(errRevoked)
	}
}

var errRevoked = hub.Errorf(hub.CodePeerRevoked, "the peer was removed")

func (h *Home) stopOf(p *pull) context.CancelCauseFunc {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.stop
}

// Kick dials now instead of at the end of a backoff, and starts the backoff
// over: for a command that names the peer. A live link is left alone.
func (h *Home) Kick(peer hub.PeerID) {
	if p := h.waiting(peer); p != nil {
		p.pace.Kick()
	}
}

// KickAll kicks every peer: after a wake-up or a change of address.
func (h *Home) KickAll() {
	h.mu.Lock()
	peers := slices.Collect(maps.Keys(h.pulls))
	h.mu.Unlock()
	for _, peer := range peers {
		h.Kick(peer)
	}
}

// Contact is a sign of life of the peer: a kick, unless one has counted during
// the longest backoff and no link has come of it.
func (h *Home) Contact(peer hub.PeerID) {
	if p := h.waiting(peer); p != nil {
		p.pace.Contact()
	}
}

// waiting returns the peer's pull if it is kept and its link is not up.
func (h *Home) waiting(peer hub.PeerID) *pull {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.pulls[peer]; ok && p.state.State != LinkUp {
		return p
	}
	return nil
}

// State returns the peer's link; down for a peer that is not kept.
func (h *Home) State(peer hub.PeerID) LinkState {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.pulls[peer]; ok {
		return p.state
	}
	return LinkState{State: LinkDown}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pull dials, speaks, and waits, until its peer is removed or Run ends.
func (h *Home) pull(ctx context.Context, p *pull) {
	var next Conn
	for ctx.Err() == nil {
		var lasted time.Duration
		var err error
		lasted, next, err = h.connect(ctx, p, next)
		if ctx.Err() != nil {
			break
		}
		if lasted >= h.cfg.Steady {
			p.pace.Reset()
		}
		h.set(p, LinkState{State: LinkDown, Stage: stageOf(err), Code: codeOf(err), LastError: err.Error()})
		if next == nil {
			p.pace.Rest(ctx)
		}
	}
	if next != nil {
		next.Close()
	}
	h.set(p, LinkState{State: LinkDown})
}

// connect is one attempt, on conn if there is one: it returns when the session
// has ended, with how long it was up and with the connection that is to take its
// place, if any.
func (h *Home) connect(ctx context.Context, p *pull, conn Conn) (lasted time.Duration, next Conn, err error) {
	h.change(p, func(s *LinkState) { s.State = LinkConnecting })
	if conn == nil {
		if conn, err = h.cfg.Links.Open(ctx, p.peer); err != nil {
			return 0, nil, err
		}
	}
	own, end := context.WithCancelCause(ctx)
	defer end(nil)
	silent := make(chan struct{}, 1)
	var replacing sync.WaitGroup
	replacing.Go(func() { next = h.replace(own, end, p.peer, silent) })
	var since time.Time
	nonce := ""
	up := func(theirs wire.Hello) {
		nonce = theirs.Nonce
		if h.twins.outlived(p.peer, nonce) {
			end(errTwinOf)
			return
		}
		h.twins.hear(p.peer, nonce)
		since = time.Now()
		h.set(p, LinkState{State: LinkUp, Transport: transportOf(conn), ConnectedAt: hub.MicrosOf(since)})
	}
	err = h.cfg.Session.run(own, conn, hub.RoleHome, p.peer, watch{up, func() { poke(silent) }})
	end(nil)
	replacing.Wait()
	if !since.IsZero() {
		h.twins.hear(p.peer, nonce)
		lasted = time.Since(since)
	}
	return lasted, next, err
}

// replace ends a session whose peer is silent once another connection to the peer
// could be made, and returns that; nil if the session has ended before.
func (h *Home) replace(ctx context.Context, end context.CancelCauseFunc, peer hub.PeerID, silent <-chan struct{}) Conn {
	for {
		select {
		case <-silent:
		case <-ctx.Done():
			return nil
		}
		limit, cancel := context.WithTimeout(ctx, h.cfg.Session.cfg.Look)
		conn, err := h.cfg.Links.Open(limit, peer)
		cancel()
		if err == nil {
			end(errReplaced)
			return conn
		}
		// The session still stands: if the peer is gone, it ends by its own clock.
	}
}

// transportOf is what a connection says that it runs over.
func transportOf(conn Conn) string {
	if t, ok := conn.(interface{ Transport() string }); ok {
		return t.Transport()
	}
	return ""
}

func (h *Home) set(p *pull, s LinkState) { h.change(p, func(old *LinkState) { *old = s }) }

func (h *Home) change(p *pull, f func(*LinkState)) {
	h.mu.Lock()
	f(&p.state)
	s := p.state
	h.mu.Unlock()
	h.cfg.Changed(p.peer, s)
}
