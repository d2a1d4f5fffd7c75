package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
)

const (
	peerCols = "id, name, lineage, fingerprint, addresses, role, grants, state, store_id, store_epoch, " +
		"created_at, confirm_until, condition, proofs, knows, contracts, features, reverse, parks"
	peerQuery       = `SELECT ` + peerCols + ` FROM peers WHERE id = ?`
	peerByName      = `SELECT ` + peerCols + ` FROM peers WHERE name = ? AND state <> 'removed'`
	peerFingerprint = `SELECT ` + peerCols + ` FROM peers WHERE fingerprint = ? AND state <> 'removed'`
	peerRemoved     = `SELECT ` + peerCols + ` FROM peers WHERE fingerprint = ? ORDER BY rid DESC LIMIT 1`
	peersOf         = `SELECT ` + peerCols + ` FROM peers WHERE lineage = ? ORDER BY rid DESC`
	peerList        = `SELECT ` + peerCols + ` FROM peers ORDER BY rid DESC`
)

var (
	insertPeer = insertInto("peers", peerCols)
	updatePeer = updateSet("peers", peerCols, 1)
)

func scanPeer(s scanner, p *hub.Peer) error {
	return s.Scan(&p.ID, &p.Name, &p.Lineage, &p.Fingerprint, fromJSON{&p.Addresses}, &p.Role, fromJSON{&p.Grants},
		&p.State, &p.StoreID, &p.StoreEpoch, &p.CreatedAt, &p.ConfirmUntil, &p.Condition,
		&p.Proofs, &p.Knows, fromJSON{&p.Contracts}, fromJSON{&p.Features}, &p.Reverse, &p.Parks)
}

func peerArgs(p hub.Peer) []any {
	return []any{p.ID, p.Name, p.Lineage, p.Fingerprint, asJSON{p.Addresses}, p.Role, asJSON{p.Grants},
		p.State, p.StoreID, p.StoreEpoch, p.CreatedAt, p.ConfirmUntil, p.Condition,
		blob(p.Proofs), p.Knows, asJSON{p.Contracts}, asJSON{p.Features}, p.Reverse, p.Parks}
}

func noPeer(what string) error { return hub.Errorf(hub.CodePeerNotFound, "there is no peer %s", what) }

// Peer implements store.PeerReader.
func (q querier) Peer(id hub.PeerID) (hub.Peer, error) {
	p, err := must(q, scanPeer, noPeer(string(id)), peerQuery, id)
	return p, wrap(err, "reading %s", id)
}

// PeerByName implements store.PeerReader.
func (q querier) PeerByName(name string) (hub.Peer, error) {
	p, err := must(q, scanPeer, noPeer(name), peerByName, name)
	return p, wrap(err, "reading peer %s", name)
}

// PeerByFingerprint implements store.PeerReader.
func (q querier) PeerByFingerprint(fp string) (hub.Peer, bool, error) {
	p, ok, err := one(q, scanPeer, peerFingerprint, fp)
	if err == nil && !ok {
		p, ok, err = one(q, scanPeer, peerRemoved, fp)
	}
	return p, ok, wrap(err, "reading a peer by its key")
}

// PeersOf implements store.PeerReader.
func (q querier) PeersOf(lineage string) ([]hub.Peer, error) {
	ps, err := all(q, scanPeer, peersOf, lineage)
	return ps, wrap(err, "reading the pairings of a hub")
}

// PeerList implements store.PeerReader: all of them, the newest first.
func (q querier) PeerList() ([]hub.Peer, error) {
	ps, err := all(q, scanPeer, peerList)
	return ps, wrap(err, "listing peers")
}

// PutPeer implements store.Peers.
func (tx *Tx) PutPeer(p hub.Peer) error {
	_, err := tx.exec(insertPeer, peerArgs(p)...)
	return wrap(tx.peerName(p, err), "putting %s", p.ID)
}

// SavePeer implements store.Peers.
func (tx *Tx) SavePeer(p hub.Peer) error {
	err := tx.save(noPeer(string(p.ID)), updatePeer, keysLast(peerArgs(p), 1)...)
	return wrap(tx.peerName(p, err), "saving %s", p.ID)
}

// peerName turns a refused write into name_taken if the name is why.
func (tx *Tx) peerName(p hub.Peer, err error) error {
	if !tx.unique(err) || p.State == hub.PeerRemoved {
		return err
	}
	other, lookErr := tx.PeerByName(p.Name)
	switch {
	case hub.IsCode(lookErr, hub.CodePeerNotFound) || lookErr == nil && other.ID == p.ID:
		return err
	case lookErr != nil:
		return lookErr
	default:
		return nameTaken("peer", p.Name, string(other.ID))
	}
}

func nameTaken(kind, name, by string) error {
	e := hub.Errorf(hub.CodeNameTaken, "a %s named %s exists: %s", kind, name, by)
	e.Field = "name"
	return e
}
