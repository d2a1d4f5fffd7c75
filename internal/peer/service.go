package peer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	Identity keystore.Identity
	TokenKey []byte
	Name     string // this hub's name as suggested to peers
	Nonce    string // of this process
	Version  string
	Features []string
	// Addresses are the https:// addresses at which peers may reach this hub.
	Addresses func() []string
	Now       func() hub.Micros
	Cost      Cost

	AttemptEvery time.Duration // 1 s: one pairing attempt per interval
	FailureAfter time.Duration // 300 ms: a wrong proof is answered no sooner
}

// Service keeps the registry of peers and pairs with new ones. It is safe for
// concurrent use and starts no goroutine.
type Service struct {
	cfg   Config
	reach reach

	mu       sync.Mutex
	nextTry  time.Time // guarded by mu
	pairings int       // guarded by mu
}

// New validates cfg; it starts nothing.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Gate == nil || cfg.Identity.Cert.Leaf == nil || len(cfg.TokenKey) < 32 || cfg.Nonce == "" {
		return nil, errors.New("peer: Store, Gate, Identity, TokenKey and Nonce are needed")
	}
	if cfg.Addresses == nil {
		cfg.Addresses = func() []string { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = func() hub.Micros { return hub.MicrosOf(time.Now()) }
	}
	if cfg.AttemptEvery <= 0 {
		cfg.AttemptEvery = time.Second
	}
	if cfg.FailureAfter <= 0 {
		cfg.FailureAfter = 300 * time.Millisecond
	}
	cfg.Cost = cfg.Cost.orDefault()
	s := &Service{cfg: cfg}
	s.reach = s.reachDirect
	return s, nil
}

// PeerResult is the answer to Join.
type PeerResult struct {
	Peer     hub.Peer     `json:"peer"`
	Warnings []string     `json:"warnings,omitempty"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *PeerResult) Mut() *hub.Mutation { return &r.Mutation }

// Get returns one peer; peer_not_found if there is none.
func (s *Service) Get(ctx context.Context, id hub.PeerID) (p hub.Peer, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { p, err = rx.Peer(id); return err })
	return p, err
}

// Find returns the peer of an id or, among those not removed, of a name.
func (s *Service) Find(ctx context.Context, idOrName string) (p hub.Peer, err error) {
	if hub.ValidID(hub.PrefixPeer, idOrName) {
		return s.Get(ctx, hub.PeerID(idOrName))
	}
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { p, err = rx.PeerByName(idOrName); return err })
	return p, err
}

// List returns all peers, the newest first.
func (s *Service) List(ctx context.Context) (ps []hub.Peer, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { ps, err = rx.PeerList(); return err })
	return ps, err
}

// ByFingerprint returns the peer whose present key it is, in whatever state. A
// pending one whose window has passed counts as revoked.
func (s *Service) ByFingerprint(ctx context.Context, fp string) (p hub.Peer, ok bool, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { p, ok, err = rx.PeerByFingerprint(fp); return err })
	return s.lapse(p), ok, err
}

func (s *Service) lapse(p hub.Peer) hub.Peer {
	if p.State == hub.PeerPending && p.ConfirmUntil < s.cfg.Now() {
		p.State = hub.PeerRevoked
	}
	return p
}

// Admit returns the peer that a connection with this key stands for, on any
// route but pairing. It completes a pairing whose fifth message was lost: that
// the peer comes with a pinned connection proves that it has accepted.
func (s *Service) Admit(ctx context.Context, fp string) (hub.Peer, error) {
	p, ok, err := s.ByFingerprint(ctx, fp)
	switch {
	case err != nil:
		return p, err
	case !ok:
		return p, hub.Errorf(hub.CodeInvalidToken, "the key is not paired")
	case p.State == hub.PeerActive:
		return p, nil
	case p.State == hub.PeerPending:
		return s.confirm(ctx, p.ID)
	}
	return p, hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
}

// confirm makes a pending peer active; an active one stays so.
func (s *Service) confirm(ctx context.Context, id hub.PeerID) (p hub.Peer, err error) {
	err = s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		if p, err = tx.Peer(id); err != nil || p.State == hub.PeerActive {
			return err
		}
		if s.lapse(p).State != hub.PeerPending {
			return hub.Errorf(hub.CodePeerRevoked, "%s is no longer pending", p.Name)
		}
		p.State, p.ConfirmUntil = hub.PeerActive, 0
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(id)})
		return tx.SavePeer(p)
	})
	return p, err
}

// InviteOpen reports whether an unknown key may try to pair now.
func (s *Service) InviteOpen(ctx context.Context) bool {
	open, err := s.openInvites(ctx)
	return err == nil && len(open) > 0
}

func (s *Service) openInvites(ctx context.Context) (open []hub.Invite, err error) {
	now := s.cfg.Now()
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { open, err = rx.OpenInvites(now); return err })
	return open, err
}

// Hello is what this hub says of itself on a link.
func (s *Service) Hello(ctx context.Context) (hub.Hello, error) {
	id, epoch, err := s.self(ctx)
	return hub.Hello{
		HubID: s.cfg.Identity.HubID, StoreID: id, StoreEpoch: epoch, Nonce: s.cfg.Nonce,
		Version: s.cfg.Version, Contracts: []string{hub.ContractFederation}, Features: orEmpty(s.cfg.Features),
	}, err
}

func (s *Service) self(ctx context.Context) (id string, epoch int64, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { id, epoch, err = rx.StoreIdentity(); return err })
	return id, epoch, err
}

// SawHello judges a peer's hello against its record, before any effect: other
// lineage → peer_changed, other store → peer_store_changed, no federation/1 →
// capability_unsupported. A new epoch of the same store is noted.
func (s *Service) SawHello(ctx context.Context, id hub.PeerID, h hub.Hello) error {
	p, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	if h.HubID != p.Lineage {
		return changed(p.Lineage, h.HubID)
	}
	if !h.Offers(hub.ContractFederation) {
		return hub.Errorf(hub.CodeCapabilityUnsupported, "%s does not offer %s", p.Name, hub.ContractFederation)
	}
	return s.SawStore(ctx, id, h.StoreID, h.StoreEpoch)
}

// SawStore is SawHello for the store alone, as a relay's hello says it.
func (s *Service) SawStore(ctx context.Context, id hub.PeerID, storeID string, epoch int64) error {
	p, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case !trusted(s.lapse(p)):
		return hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
	case p.StoreID != storeID:
		e := hub.Errorf(hub.CodePeerStoreChanged, "%s answers with the store %s, paired was %s", p.Name, storeID, p.StoreID)
		e.Hint = "its data directory was replaced; nothing was sent. Pair anew to use the new one"
		return e
	case p.StoreEpoch == epoch:
		return nil
	}
	return s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		p, err := tx.Peer(id)
		if err != nil || p.StoreID != storeID {
			return err
		}
		p.StoreEpoch = epoch
		return tx.SavePeer(p)
	})
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return hub.Invalid("name", "must be a-z, 0-9, '.', '_' or '-', start with a letter or digit, at most 63 characters")
	}
	return nil
}

func taken(name string) error {
	e := hub.Errorf(hub.CodeNameTaken, "a peer named %s exists", name)
	e.Field = "name"
	return e
}

// tidyName makes a name of what a peer suggests.
func tidyName(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	s = strings.TrimLeft(s, "._-")
	if s = s[:min(len(s), 48)]; s == "" {
		return "peer"
	}
	return s
}

// checkGrants fills in the defaults of a side that serves; a side that does
// not gives nothing.
func checkGrants(g hub.Grants, serves bool) (hub.Grants, error) {
	if !serves {
		if len(g.Repos) > 0 || len(g.Verbs) > 0 || g.MaxWorkers != 0 {
			return g, hub.Invalid("grants", "only the worker's side grants; serve, or leave them away")
		}
		return hub.Grants{Verbs: []string{}, Repos: []string{}}, nil
	}
	if g.Verbs == nil {
		g.Verbs = []string{hub.GrantStart, hub.GrantRead, hub.GrantProxy}
	}
	for _, v := range g.Verbs {
		if v != hub.GrantStart && v != hub.GrantRead && v != hub.GrantProxy {
			return g, hub.Invalid("grants", "%q is not start, read or proxy", v)
		}
	}
	for _, r := range g.Repos {
		if !absolute(r) {
			return g, hub.Invalid("allow_repos", "%q must be an absolute path", r)
		}
	}
	if g.MaxWorkers < 0 {
		return g, hub.Invalid("max_workers", "must be 0 (no limit) or more")
	}
	g.Repos = orEmpty(g.Repos)
	return g, nil
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return slices.Clone(s)
}

// enroll stores a pairing: a new peer, or the same key paired again, which
// keeps its id.
func enroll(tx store.Peers, p hub.Peer) (hub.Peer, error) {
	other, err := tx.PeerByName(p.Name)
	switch {
	case err == nil && other.Fingerprint != p.Fingerprint:
		return p, taken(p.Name)
	case err != nil && !hub.IsCode(err, hub.CodePeerNotFound):
		return p, err
	}
	old, known, err := tx.PeerByFingerprint(p.Fingerprint)
	switch {
	case err != nil:
		return p, err
	case known:
		p.ID, p.CreatedAt = old.ID, old.CreatedAt
		return p, tx.SavePeer(p)
	}
	return p, tx.PutPeer(p)
}

// freeName returns want, or want with the first number that is free.
func freeName(tx store.PeerReader, want, fingerprint string) (string, error) {
	name := want
	for n := 2; n < 1000; n++ {
		p, err := tx.PeerByName(name)
		switch {
		case hub.IsCode(err, hub.CodePeerNotFound) || err == nil && p.Fingerprint == fingerprint:
			return name, nil
		case err != nil:
			return "", err
		}
		name = fmt.Sprintf("%s-%d", want, n)
	}
	return "", taken(want)
}
