package peer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Config configures a Service. Zero durations and costs mean the defaults.
type Config struct {
	Store    store.Store
	Gate     *receipt.Gate
	Identity keystore.Source
	TokenKey []byte
	Name     string // this hub's name as suggested to peers
	Nonce    string // of this process
	Version  string
	Features []string
	// Addresses are the https:// addresses at which peers may reach this hub.
	Addresses func() []string
	Now       func() hub.Micros
	Cost      Cost
	// Ended is what else ends with a pairing, in the transaction that removes
	// the peer. nil: nothing.
	Ended func(store.Tx, hub.Peer) error
	Log   *slog.Logger // nil: none
	// Rotator is Identity where the key can be rotated. Rotated is told after it
	// was, before the request is answered; both may be nil.
	Rotator Rotator
	Rotated func(context.Context) error

	AttemptEvery time.Duration // 1 s: one pairing attempt per interval
	FailureAfter time.Duration // 300 ms: a wrong proof is answered no sooner
}

// Service keeps the registry of peers and pairs with new ones. It is safe for
// concurrent use and starts no goroutine.
type Service struct {
	cfg   Config
	reach reach

	mu       sync.Mutex
	nextTry  time.Time              // guarded by mu
	pairings int                    // guarded by mu
	refusals map[hub.PeerID]Refusal // the last of each; guarded by mu
}

// New validates cfg; it starts nothing.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Gate == nil || cfg.Identity == nil || len(cfg.TokenKey) < 32 || cfg.Nonce == "" {
		return nil, errors.New("peer: Store, Gate, Identity, TokenKey and Nonce are needed")
	}
	if cfg.Addresses == nil {
		cfg.Addresses = func() []string { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = func() hub.Micros { return hub.MicrosOf(time.Now()) }
	}
	if cfg.Ended == nil {
		cfg.Ended = func(store.Tx, hub.Peer) error { return nil }
	}
	if cfg.AttemptEvery <= 0 {
		cfg.AttemptEvery = time.Second
	}
	if cfg.FailureAfter <= 0 {
		cfg.FailureAfter = 300 * time.Millisecond
	}
	if cfg.Rotated == nil {
		cfg.Rotated = func(context.Context) error { return nil }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Cost = cfg.Cost.orDefault()
	s := &Service{cfg: cfg, refusals: map[hub.PeerID]Refusal{}}
	s.reach = s.reachDirect
	return s, nil
}

// PeerResult is the answer to Join and to what changes a peer.
type PeerResult struct {
	Peer     hub.Peer     `json:"peer"`
	Warnings []string     `json:"warnings,omitempty"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *PeerResult) Mut() *hub.Mutation { return &r.Mutation }

// Subject is the peer, which belongs to no Run.
func (r *PeerResult) Subject() (hub.RunID, string) { return "", string(r.Peer.ID) }
