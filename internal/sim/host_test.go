package sim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/relay"
	"github.com/wavehub/wavehub/relay/wire"
)

var errDown = errors.New("the hub is down")

// host is one machine: its store outlives its processes.
type host struct {
	name string
	dir  string
	id   string // of its store
	dial func(ctx context.Context, peer hub.PeerID) (relay.Conn, error)

	skew atomic.Int64 // of its wall clock, in microseconds

	mu    sync.Mutex
	now   *process // nil while the hub is down; guarded by mu
	boots int      // guarded by mu

	copied  *copied // of its files, nil before the first one
	pending bool    // its files were put back and are not adopted yet
}

// clock is the wall clock of the host.
func (h *host) clock() hub.Micros { return hub.MicrosOf(time.Now()) + hub.Micros(h.skew.Load()) }

// process is one life of a hub.
type process struct {
	store    *sqlite.Store
	bus      *signal.Bus
	runs     *run.Service
	mail     *mail.Service
	dispatch *dispatch.Service
	desk     *relay.Desk
	home     *relay.Home
	id       string
	epoch    int64

	ctx   context.Context
	stop  context.CancelFunc
	mu    sync.Mutex
	ended bool // guarded by mu
	wg    sync.WaitGroup
}

// Go runs f unless the process has ended.
func (p *process) Go(f func(context.Context)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.wg.Go(func() { f(p.ctx) })
	return true
}

func (p *process) Store() (string, int64) { return p.id, p.epoch }

// source is the process as the relay sees it.
type source struct {
	*dispatch.Service
	p *process
}

func (s source) Store() (string, int64) { return s.p.id, s.p.epoch }

// Subscribe wakes a sender; process is the relay's Feed.
func (p *process) Subscribe(id hub.PeerID) (<-chan struct{}, func()) {
	return p.bus.Subscribe(string(hub.TopicRelay), string(id))
}

type tokens struct{}

func (tokens) Consumer(r hub.RunID, g int64) string {
	return keystore.DeriveToken([]byte("k"), "whc_", "consumer", string(r), g)
}
func (tokens) Sum(s string) string { return keystore.TokenSum(s) }

// up is the running process, nil while there is none.
func (h *host) up() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *host) path() string { return filepath.Join(h.dir, "hub.db") }

// boot starts the hub from its store.
func (h *host) boot() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil {
		return nil
	}
	p := &process{bus: &signal.Bus{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	st, err := sqlite.Open(p.ctx, sqlite.Config{Path: h.path(), Now: h.clock, Publish: func(ss []hub.Signal) {
		for _, s := range ss {
			p.bus.Publish(string(s.Topic), s.Key)
		}
	}})
	if err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	p.store = st
	if err := h.assemble(p); err != nil {
		return errors.Join(err, st.Close())
	}
	h.boots++
	h.now = p
	return nil
}

func (h *host) assemble(p *process) error {
	err := p.store.View(p.ctx, func(rx store.Rx) (err error) {
		p.id, p.epoch, err = rx.StoreIdentity()
		return err
	})
	if err != nil {
		return err
	}
	h.id = p.id
	p.runs = &run.Service{Store: p.store, Tokens: tokens{}}
	p.mail = &mail.Service{Store: p.store, Access: dispatch.Access{}, Bus: p.bus, Draining: make(chan struct{})}
	p.dispatch = &dispatch.Service{Store: p.store}
	session, err := relay.NewSession(relay.Config{
		Source: source{p.dispatch, p}, Importer: p.dispatch, Feed: p, Nonce: fmt.Sprintf("%s-%d", h.name, h.boots),
		Check: h.check(p), Ping: 40 * time.Millisecond, Hello: 200 * time.Millisecond, Grace: 5 * time.Millisecond, Again: 10 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if p.desk, err = relay.NewDesk(session); err != nil {
		return err
	}
	p.home, err = relay.NewHome(relay.HomeConfig{
		Session: session, Links: links{h}, BackoffMin: time.Millisecond, BackoffMax: 20 * time.Millisecond, Steady: 50 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	p.Go(func(ctx context.Context) { _ = p.home.Run(ctx) })
	p.Go(p.carryOut)
	return h.follow(p)
}

// follow pulls from all worker hubs that the store knows.
func (h *host) follow(p *process) error {
	return p.store.View(p.ctx, func(rx store.Rx) error {
		peers, err := rx.PeerList()
		for _, x := range peers {
			if x.Role.CanBe(hub.RoleWorker) {
				p.home.Add(x.ID)
			}
		}
		return err
	})
}

// check notes a new epoch of a known store, as the registry of peers does.
func (h *host) check(p *process) func(context.Context, hub.PeerID, wire.Hello) error {
	return func(ctx context.Context, id hub.PeerID, theirs wire.Hello) error {
		err := p.store.Update(ctx, store.Settle, func(tx store.Tx) error {
			x, err := tx.Peer(id)
			switch {
			case err != nil:
				return err
			case x.StoreID != theirs.StoreID:
				return hub.Errorf(hub.CodePeerStoreChanged, "%s answers with another store", x.Name)
			case x.StoreEpoch == theirs.Epoch:
				return nil
			}
			x.StoreEpoch = theirs.Epoch
			return tx.SavePeer(x)
		})
		if err == nil && theirs.Feed.StoreID == p.id && theirs.Feed.Seen > p.epoch {
			err = p.dispatch.SeenEpoch(ctx, theirs.Feed.Seen)
		}
		return err
	}
}

// links dials from the host.
type links struct{ h *host }

func (l links) Open(ctx context.Context, peer hub.PeerID) (relay.Conn, error) {
	return l.h.dial(ctx, peer)
}

// crash ends the process without a word: cut comes first, so that no goodbye
// leaves.
func (h *host) crash(cut func()) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.now
	if p == nil {
		return nil
	}
	h.now = nil
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	cut()
	p.stop()
	p.wg.Wait()
	return p.store.Close()
}

// carryOut stops the workers whose homes ordered it, as package work does.
func (p *process) carryOut(ctx context.Context) {
	woken, cancel := p.bus.Subscribe(string(hub.TopicFence), "")
	defer cancel()
	for ctx.Err() == nil {
		if err := p.fences(ctx); err != nil && ctx.Err() == nil {
			panic(err)
		}
		select {
		case <-woken:
		case <-ctx.Done():
		}
	}
}

func (p *process) fences(ctx context.Context) error {
	return p.store.Update(ctx, store.Settle, func(tx store.Tx) error {
		open, err := tx.OpenAttachments()
		for _, a := range open {
			if err != nil {
				return err
			}
			if a.Fence != nil && !a.Fenced {
				err = dispatch.Stopped(tx, a.Home, a.Dispatch, hub.StopEvidence{Proved: true, Action: hub.ActionEnded})
			}
		}
		return err
	})
}
