package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	inviteCols   = "id, slot, key, role, grants, expires_at, wrong, used, used_by, joined, bound_to"
	inviteQuery  = `SELECT ` + inviteCols + ` FROM invites WHERE id = ?`
	inviteBySlot = `SELECT ` + inviteCols + ` FROM invites WHERE slot = ? ORDER BY rid DESC LIMIT 1`
	invitePage   = `SELECT ` + inviteCols + `, rid FROM invites WHERE rid < ? ORDER BY rid DESC LIMIT ?`
	openInvites  = `SELECT ` + inviteCols + ` FROM invites WHERE used = 0 AND expires_at > ? ORDER BY rid`
)

var (
	insertInvite = insertInto("invites", inviteCols)
	updateInvite = updateSet("invites", inviteCols, 1)
)

func scanInvite(s scanner, i *hub.Invite) error {
	return s.Scan(&i.ID, &i.Slot, &i.Key, &i.Role, fromJSON{&i.Grants}, &i.ExpiresAt, &i.Wrong, &i.Used, &i.UsedBy, &i.Joined, &i.BoundTo)
}

func inviteArgs(i hub.Invite) []any {
	return []any{i.ID, i.Slot, blob(i.Key), i.Role, asJSON{i.Grants}, i.ExpiresAt, i.Wrong, i.Used, i.UsedBy, i.Joined, i.BoundTo}
}

func noInvite(id hub.InviteID) error {
	return hub.Errorf(hub.CodeInviteNotFound, "there is no invite %s", id)
}

// Invite implements store.PeerReader.
func (q querier) Invite(id hub.InviteID) (hub.Invite, error) {
	i, err := must(q, scanInvite, noInvite(id), inviteQuery, id)
	return i, wrap(err, "reading %s", id)
}

// InviteBySlot implements store.PeerReader: the newest of the slot.
func (q querier) InviteBySlot(slot string) (hub.Invite, bool, error) {
	i, ok, err := one(q, scanInvite, inviteBySlot, slot)
	return i, ok, wrap(err, "reading an invite by its slot")
}

// OpenInvites implements store.PeerReader, the oldest first.
func (q querier) OpenInvites(now hub.Micros) ([]hub.Invite, error) {
	is, err := all(q, scanInvite, openInvites, now)
	return is, wrap(err, "listing open invites")
}

// InviteList implements store.PeerReader.
func (q querier) InviteList(p store.Page) ([]hub.Invite, int64, error) {
	is, next, err := paged(q, scanInvite, p.Limit, invitePage, before(p.Before))
	return is, next, wrap(err, "listing invites")
}

// PutInvite implements store.Peers.
func (tx *Tx) PutInvite(i hub.Invite) error {
	_, err := tx.exec(insertInvite, inviteArgs(i)...)
	return wrap(err, "putting %s", i.ID)
}

// SaveInvite implements store.Peers.
func (tx *Tx) SaveInvite(i hub.Invite) error {
	return wrap(tx.save(noInvite(i.ID), updateInvite, keysLast(inviteArgs(i), 1)...), "saving %s", i.ID)
}
