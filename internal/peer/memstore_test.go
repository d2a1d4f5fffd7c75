package peer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// memStore implements the ports that this package uses; the others panic. A
// failed Update leaves the state before it.
type memStore struct {
	id string

	mu       sync.Mutex
	epoch    int64
	skew     hub.Micros // added to the real time
	peers    map[hub.PeerID]hub.Peer
	invites  []hub.Invite
	receipts map[string]store.Receipt
}

func newMemStore(id string) *memStore {
	return &memStore{id: id, epoch: 1, peers: map[hub.PeerID]hub.Peer{}, receipts: map[string]store.Receipt{}}
}

func (m *memStore) now() hub.Micros {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nowLocked()
}

func (m *memStore) nowLocked() hub.Micros { return hub.MicrosOf(time.Now()) + m.skew }

func (m *memStore) advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skew += hub.Micros(d.Microseconds())
}

func (m *memStore) Update(_ context.Context, _ store.Class, fn func(store.Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	peers, receipts, invites := maps.Clone(m.peers), maps.Clone(m.receipts), slices.Clone(m.invites)
	err := fn(memTx{memRead: memRead{m}})
	if err != nil {
		m.peers, m.receipts, m.invites = peers, receipts, invites
	}
	return err
}

func (m *memStore) View(_ context.Context, fn func(store.Rx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(memRx{memRead: memRead{m}})
}

// all returns the peers.
func (m *memStore) all() []hub.Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.peers))
}

// deep hides the methods of an embedded port behind those of memRead.
type (
	deepRx struct{ store.Rx }
	deepTx struct{ store.Tx }
	memRx  struct {
		memRead
		deepRx
	}
	memTx struct {
		memRead
		deepTx
	}
	memRead struct{ m *memStore }
)

func (r memRead) Peer(id hub.PeerID) (hub.Peer, error) {
	p, ok := r.m.peers[id]
	if !ok {
		return p, hub.Errorf(hub.CodePeerNotFound, "no peer %s", id)
	}
	return p, nil
}

func (r memRead) PeerByName(name string) (hub.Peer, error) {
	for _, p := range r.m.peers {
		if p.Name == name && p.State != hub.PeerRemoved {
			return p, nil
		}
	}
	return hub.Peer{}, hub.Errorf(hub.CodePeerNotFound, "no peer %s", name)
}

func (r memRead) PeerByFingerprint(fp string) (found hub.Peer, ok bool, err error) {
	for _, p := range r.m.peers {
		if p.Fingerprint == fp && (!ok || p.State != hub.PeerRemoved) {
			found, ok = p, true
		}
	}
	return found, ok, nil
}

func (r memRead) PeersOf(lineage string) (ps []hub.Peer, err error) {
	for _, p := range r.m.peers {
		if p.Lineage == lineage {
			ps = append(ps, p)
		}
	}
	return ps, nil
}

func (r memRead) PeerList() ([]hub.Peer, error) {
	return slices.Collect(maps.Values(r.m.peers)), nil
}

func (r memRead) Invite(id hub.InviteID) (hub.Invite, error) {
	for _, i := range r.m.invites {
		if i.ID == id {
			return i, nil
		}
	}
	return hub.Invite{}, hub.Errorf(hub.CodeInviteNotFound, "no invite %s", id)
}

func (r memRead) InviteBySlot(slot string) (hub.Invite, bool, error) {
	for _, i := range slices.Backward(r.m.invites) {
		if i.Slot == slot {
			return i, true, nil
		}
	}
	return hub.Invite{}, false, nil
}

func (r memRead) OpenInvites(now hub.Micros) (open []hub.Invite, err error) {
	for _, i := range r.m.invites {
		if !i.Used && i.ExpiresAt > now {
			open = append(open, i)
		}
	}
	return open, nil
}

func (r memRead) StoreIdentity() (string, int64, error) { return r.m.id, r.m.epoch, nil }

func (r memRead) Receipt(space string, key hub.RequestID) (store.Receipt, bool, error) {
	rec, ok := r.m.receipts[space+string(key)]
	return rec, ok, nil
}

func (t memTx) PutReceipt(rec store.Receipt) error {
	t.m.receipts[rec.Space+string(rec.Key)] = rec
	return nil
}

func (t memTx) SaveReceipt(rec store.Receipt) error    { return t.PutReceipt(rec) }
func (t memTx) UnfinishedReceipts(string) (int, error) { return 0, nil }
func (r memRead) Now() hub.Micros                      { return r.m.nowLocked() }
func (t memTx) Signal(hub.Signal)                      {}

func (t memTx) PutPeer(p hub.Peer) error {
	for _, o := range t.m.peers {
		if o.State != hub.PeerRemoved && (o.Fingerprint == p.Fingerprint || o.Name == p.Name) {
			return errors.New("unique")
		}
	}
	t.m.peers[p.ID] = p
	return nil
}

func (t memTx) SavePeer(p hub.Peer) error {
	if _, err := t.Peer(p.ID); err != nil {
		return err
	}
	t.m.peers[p.ID] = p
	return nil
}

func (t memTx) PutInvite(i hub.Invite) error {
	t.m.invites = append(t.m.invites, i)
	return nil
}

func (t memTx) SaveInvite(i hub.Invite) error {
	for at, o := range t.m.invites {
		if o.ID == i.ID {
			t.m.invites[at] = i
			return nil
		}
	}
	return hub.Errorf(hub.CodeInviteNotFound, "no invite %s", i.ID)
}
