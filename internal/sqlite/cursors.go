package sqlite

import (
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	cursorQuery = `SELECT seq FROM relay_cursors
		WHERE dispatch = ? AND lineage = ? AND store_id = ? AND store_epoch = ?`
	setCursor = `INSERT INTO relay_cursors (dispatch, lineage, store_id, store_epoch, seq) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (dispatch, lineage, store_id, store_epoch) DO UPDATE SET seq = excluded.seq`
	feedQuery = `SELECT store_id, store_epoch, position FROM feed_states WHERE peer = ? AND direction = ?`
	setFeed   = `INSERT INTO feed_states (peer, direction, store_id, store_epoch, position) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (peer, direction) DO UPDATE
		SET store_id = excluded.store_id, store_epoch = excluded.store_epoch, position = excluded.position`
)

// Cursor implements store.RelayReader.
func (q querier) Cursor(k store.CursorKey) (int64, error) {
	n, _, err := one(q, func(s scanner, n *int64) error { return s.Scan(n) },
		cursorQuery, k.Dispatch, k.Lineage, k.StoreID, k.Epoch)
	return n, wrap(err, "reading the cursor of %s", k.Dispatch)
}

// Feed implements store.RelayReader.
func (q querier) Feed(peer hub.PeerID, dir hub.Direction) (hub.FeedState, error) {
	f, _, err := one(q, func(s scanner, f *hub.FeedState) error {
		return s.Scan(&f.StoreID, &f.Epoch, &f.Position)
	}, feedQuery, peer, dir)
	return f, wrap(err, "reading the feed of %s", peer)
}

// Advance implements store.Relay. A cursor never goes back.
func (tx *Tx) Advance(k store.CursorKey, seq int64) error {
	have, err := tx.Cursor(k)
	if err == nil {
		err = checkAdvance(k, have, seq)
	}
	if err != nil {
		return err
	}
	_, err = tx.exec(setCursor, k.Dispatch, k.Lineage, k.StoreID, k.Epoch, seq)
	return wrap(err, "advancing the cursor of %s", k.Dispatch)
}

// SetFeed implements store.Relay.
func (tx *Tx) SetFeed(peer hub.PeerID, dir hub.Direction, f hub.FeedState) error {
	_, err := tx.exec(setFeed, peer, dir, f.StoreID, f.Epoch, f.Position)
	return wrap(err, "setting the feed of %s", peer)
}

// checkAdvance refuses a cursor that would go back: what was imported stays so.
func checkAdvance(k store.CursorKey, from, to int64) error {
	if to < from {
		return fmt.Errorf("advancing the cursor of %s: %d is behind %d", k.Dispatch, to, from)
	}
	return nil
}
