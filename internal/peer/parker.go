package peer

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/backoff"
	"github.com/wavehub/wavehub/internal/hub"
)

// ParkerConfig configures a Parker. Zero values mean the defaults.
type ParkerConfig struct {
	Links *Links
	// Serve takes over a stream that a home has taken and wants to use: it
	// serves the peer API on it, as on a connection to this hub's listener. It
	// returns once it has the stream; if ctx ends first it closes it.
	Serve func(ctx context.Context, conn net.Conn)

	Streams    int           // 4 per home
	Ping       time.Duration // 15 s: how often the homes ping
	BackoffMin time.Duration // 500 ms
	BackoffMax time.Duration // 30 s
}

// Parker keeps streams parked at the homes that cannot dial this hub, a
// goroutine for each stream. It is safe for concurrent use.
type Parker struct {
	cfg     ParkerConfig
	changed chan struct{} // holds one wake-up of Run

	mu    sync.Mutex
	homes map[hub.PeerID]*parking // guarded by mu
}

// ParkState is what is known of the streams at one home. Stage, Code and
// LastError are of the last failure, until a stream is parked again.
type ParkState struct {
	Parked           int
	Stage, LastError string
	Code             hub.Code
}

// parking is one home; state, running and end are guarded by Parker.mu.
type parking struct {
	peer    hub.PeerID
	spots   []*spot
	state   ParkState
	running bool
	end     context.CancelCauseFunc
}

// spot is one of the streams at a home. renew, guarded by Parker.mu, ends the
// present one.
type spot struct {
	pace  *backoff.Pace
	renew context.CancelCauseFunc
}

// Why the stream of a spot is ended from here.
var (
	errRenewed  = errors.New("the stream was replaced")
	errUnparked = errors.New("the peer gets no streams any more")
)

// NewParker validates cfg; it starts nothing.
func NewParker(cfg ParkerConfig) (*Parker, error) {
	if cfg.Links == nil || cfg.Serve == nil {
		return nil, errors.New("peer: a Parker needs Links and Serve")
	}
	if cfg.Streams <= 0 {
		cfg.Streams = 4
	}
	for d, def := range map[*time.Duration]time.Duration{
		&cfg.Ping: parkPing, &cfg.BackoffMin: 500 * time.Millisecond, &cfg.BackoffMax: 30 * time.Second,
	} {
		if *d <= 0 {
			*d = def
		}
	}
	return &Parker{cfg: cfg, changed: make(chan struct{}, 1), homes: map[hub.PeerID]*parking{}}, nil
}

// Run keeps the streams until ctx ends; it returns when all its goroutines have
// ended. Streams that were taken stay. It is called once.
func (k *Parker) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		k.start(ctx, &wg)
		select {
		case <-k.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *Parker) start(ctx context.Context, wg *sync.WaitGroup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.homes {
		if h.running {
			continue
		}
		own, end := context.WithCancelCause(ctx)
		h.running, h.end = true, end
		for _, s := range h.spots {
			wg.Go(func() { k.fill(own, h, s) })
		}
	}
}

// Add begins to keep streams parked at the home; one that gets them is kicked.
func (k *Parker) Add(peer hub.PeerID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, known := k.homes[peer]; known {
		h.each((*backoff.Pace).Kick)
		return
	}
	h := &parking{peer: peer, end: func(error) {}}
	for range k.cfg.Streams {
		h.spots = append(h.spots, &spot{pace: backoff.New(k.cfg.BackoffMin, k.cfg.BackoffMax), renew: func(error) {}})
	}
	k.homes[peer] = h
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Remove ends the streams that are parked at the home, and tells it that no
// more come.
func (k *Parker) Remove(peer hub.PeerID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, ok := k.homes[peer]; ok {
		delete(k.homes, peer)
		h.end(errUnparked)
	}
}

// Kick has the streams that are missing at the home dialled now: for a command
// that names it.
func (k *Parker) Kick(peer hub.PeerID) { k.each(peer, (*backoff.Pace).Kick) }

// Contact is a sign of life of the home; see backoff.Pace.
func (k *Parker) Contact(peer hub.PeerID) { k.each(peer, (*backoff.Pace).Contact) }

func (k *Parker) each(peer hub.PeerID, f func(*backoff.Pace)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, ok := k.homes[peer]; ok {
		h.each(f)
	}
}

func (h *parking) each(f func(*backoff.Pace)) {
	for _, s := range h.spots {
		f(s.pace)
	}
}

// Renew replaces all parked streams, after a sleep or a move of this host: they
// may be dead without a sign.
func (k *Parker) Renew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.homes {
		h.renew()
	}
}

// RenewAt replaces the streams that are parked at one home, and begins those
// attempts anew that are under way: for a home that does not answer.
func (k *Parker) RenewAt(peer hub.PeerID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, ok := k.homes[peer]; ok {
		h.renew()
	}
}

func (h *parking) renew() {
	for _, s := range h.spots {
		s.pace.Kick()
		s.renew(errRenewed)
	}
}

// State returns what is known of the streams at a home.
func (k *Parker) State(peer hub.PeerID) ParkState {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, ok := k.homes[peer]; ok {
		return h.state
	}
	return ParkState{}
}

func (k *Parker) note(h *parking, f func(*ParkState)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(&h.state)
}
