package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// LotConfig configures a Lot. Zero values mean the defaults.
type LotConfig struct {
	// Arrived is told of each stream that a peer has parked; it must not block.
	Arrived func(hub.PeerID)

	Ping    time.Duration // 15 s; a stream is dead after 2 misses
	Answer  time.Duration // 2.5 s for the peer to confirm that its stream is taken
	PerPeer int           // 8: the oldest gives way to a newer one
	Total   int           // 256 of all peers: more are refused
}

// Lot holds the streams that worker hubs have parked at this home, each for the
// peer whose key has proved itself on it. Nothing of it survives the process.
// It is safe for concurrent use.
type Lot struct {
	cfg LotConfig

	mu      sync.Mutex
	streams map[hub.PeerID][]*parked     // the newest last; guarded by mu
	total   int                          // guarded by mu
	next    map[hub.PeerID]chan struct{} // closed with the next arrival; guarded by mu
}

// NewLot makes a Lot; it starts nothing.
func NewLot(cfg LotConfig) *Lot {
	if cfg.Arrived == nil {
		cfg.Arrived = func(hub.PeerID) {}
	}
	if cfg.Ping <= 0 {
		cfg.Ping = parkPing
	}
	if cfg.Answer <= 0 {
		cfg.Answer = 2500 * time.Millisecond
	}
	if cfg.PerPeer <= 0 {
		cfg.PerPeer = 8
	}
	if cfg.Total <= 0 {
		cfg.Total = 256
	}
	return &Lot{cfg: cfg, streams: map[hub.PeerID][]*parked{}, next: map[hub.PeerID]chan struct{}{}}
}

// Count is how many streams of the peer wait to be taken.
func (l *Lot) Count(peer hub.PeerID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams[peer])
}

// Drop ends the peer's streams that wait: the peer was removed.
func (l *Lot) Drop(peer hub.PeerID) {
	l.mu.Lock()
	waiting := slices.Clone(l.streams[peer])
	l.mu.Unlock()
	for _, s := range waiting {
		s.drop()
	}
}

// Renew ends all streams that wait, after a sleep or a move of this host: their
// peers park others.
func (l *Lot) Renew() {
	l.mu.Lock()
	peers := slices.Collect(maps.Keys(l.streams))
	l.mu.Unlock()
	for _, peer := range peers {
		l.Drop(peer)
	}
}

// park keeps the stream until it is taken, which is nil, or has ended. check is
// asked whether the peer may park once Drop would find the stream.
func (l *Lot) park(ctx context.Context, peer hub.PeerID, conn net.Conn, check func() error) error {
	s := newParked(conn)
	oldest, ok := l.enter(peer, s)
	switch {
	case !ok:
		s.drop()
		return errFull()
	case oldest != nil:
		oldest.drop()
	}
	defer l.remove(peer, s)
	if err := check(); err != nil {
		s.drop()
		return errors.Join(err, s.keep(ctx, l.cfg.Ping))
	}
	l.cfg.Arrived(peer)
	return s.keep(ctx, l.cfg.Ping)
}

func errFull() error {
	e := hub.Errorf(hub.CodeRateLimited, "too many streams are parked here")
	e.AfterMS = (30 * time.Second).Milliseconds()
	return e
}

func (l *Lot) full(peer hub.PeerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fullLocked(peer)
}

func (l *Lot) fullLocked(peer hub.PeerID) bool {
	return l.total >= l.cfg.Total && len(l.streams[peer]) < l.cfg.PerPeer
}

// enter adds a stream unless the lot is full. Of too many of one peer it removes
// the oldest, which may be dead without a sign.
func (l *Lot) enter(peer hub.PeerID, s *parked) (oldest *parked, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fullLocked(peer) {
		return nil, false
	}
	if all := l.streams[peer]; len(all) >= l.cfg.PerPeer {
		oldest = all[0]
		l.removeLocked(peer, oldest)
	}
	l.streams[peer] = append(l.streams[peer], s)
	l.total++
	if next := l.next[peer]; next != nil {
		close(next)
		delete(l.next, peer)
	}
	return oldest, true
}

func (l *Lot) remove(peer hub.PeerID, s *parked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(peer, s)
}

func (l *Lot) removeLocked(peer hub.PeerID, s *parked) {
	all := l.streams[peer]
	i := slices.Index(all, s)
	if i < 0 {
		return
	}
	l.total--
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(l.streams, peer)
		return
	}
	l.streams[peer] = all
}

// pop removes the newest stream; without one it returns what is closed with the
// next arrival.
func (l *Lot) pop(peer hub.PeerID) (*parked, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := l.streams[peer]; len(all) > 0 {
		s := all[len(all)-1]
		l.removeLocked(peer, s)
		return s, nil
	}
	if l.next[peer] == nil {
		l.next[peer] = make(chan struct{})
	}
	return nil, l.next[peer]
}

// take returns a stream of the peer that lives, waiting for one until ctx ends.
// The stream is the caller's from then on.
func (l *Lot) take(ctx context.Context, p hub.Peer) (net.Conn, error) {
	for ctx.Err() == nil {
		s, next := l.pop(p.ID)
		if s != nil {
			if conn, ok := s.claim(ctx, l.cfg.Answer); ok {
				return conn, nil
			}
			continue
		}
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
	return nil, &LinkError{StageDial, fmt.Errorf("%s has no stream parked here", p.Name)}
}

// ParkHandler serves /peer/v1/park: it keeps the streams of worker hubs in lot
// until ending is closed. A request lasts as long as its stream is parked; lost
// is told why one ended that nobody has taken.
func (s *Service) ParkHandler(lot *Lot, ending <-chan struct{}, lost func(hub.Peer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := s.mayPark(r, lot)
		if err != nil {
			writeProblem(w, err)
			return
		}
		conn, err := takePark(w, r)
		if err != nil {
			return // takePark has answered
		}
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		defer whenClosed(ending, stop)()
		err = lot.park(ctx, p.ID, conn, func() error { return s.noteParks(ctx, p) })
		if errors.Is(err, errLeft) {
			err = errors.Join(err, s.setParks(ctx, p.ID, false))
		}
		if err != nil {
			lost(p, err)
		}
	})
}

// mayPark is the peer of a request to park a stream.
func (s *Service) mayPark(r *http.Request, lot *Lot) (hub.Peer, error) {
	p, err := s.Admit(r.Context(), KeyOf(r.TLS))
	switch {
	case err != nil:
		return p, err
	case !p.Role.CanBe(hub.RoleWorker):
		return p, hub.Errorf(hub.CodeOutOfScope, "%s runs no workers for this hub", p.Name)
	case lot.full(p.ID):
		return p, errFull()
	}
	return p, nil
}

// noteParks notes that the peer parks, if it is still trusted.
func (s *Service) noteParks(ctx context.Context, p hub.Peer) error {
	now, err := s.Get(ctx, p.ID)
	switch {
	case err != nil:
		return err
	case !lapse(now, s.cfg.Now()).State.Trusted():
		return hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, now.State)
	case now.Fingerprint != p.Fingerprint:
		return changed(now.Fingerprint, p.Fingerprint)
	case now.Parks:
		return nil
	}
	return s.setParks(ctx, p.ID, true)
}

// setParks notes whether a connection to the peer may wait for a stream.
func (s *Service) setParks(ctx context.Context, id hub.PeerID, parks bool) error {
	return s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		p, err := tx.Peer(id)
		if err != nil || p.Parks == parks {
			return err
		}
		p.Parks = parks
		return tx.SavePeer(p)
	})
}

// whenClosed calls fn once c is closed, unless the returned function comes
// first; that waits until fn cannot be called any more.
func whenClosed(c <-chan struct{}, fn func()) (forget func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-c:
			fn()
		case <-done:
		}
	})
	return func() { close(done); wg.Wait() }
}
