package sqlite

import (
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	inSource    = `lineage = ? AND store_id = ? AND store_epoch = ?`
	cursorQuery = `SELECT seq, known, pos, parked FROM relay_cursors WHERE dispatch = ? AND ` + inSource
	setCursor   = `INSERT INTO relay_cursors (dispatch, lineage, store_id, store_epoch, seq, known, pos, parked)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (dispatch, lineage, store_id, store_epoch) DO UPDATE
		SET seq = excluded.seq, known = excluded.known, pos = excluded.pos, parked = excluded.parked
		WHERE excluded.seq >= seq AND (excluded.seq, excluded.known, excluded.pos, excluded.parked) <> (seq, known, pos, parked)`
	cursorsFrom = `SELECT dispatch, seq, known, pos, parked, rid, lineage, store_id, store_epoch
		FROM relay_cursors WHERE rid > ? ORDER BY rid LIMIT ?`
	parkedCursors = `SELECT dispatch, seq, known, pos, parked FROM relay_cursors WHERE ` + inSource + ` AND parked <> '' LIMIT ?`
	countCursors  = `SELECT COUNT(*) FROM relay_cursors WHERE ` + inSource + ` AND parked <> ''`

	cursorRow  = `(SELECT rid FROM relay_cursors WHERE dispatch = ? AND ` + inSource + `)`
	markQuery  = `SELECT item, sum FROM relay_marks WHERE cursor = ` + cursorRow + ` AND seq = ?`
	markedItem = `SELECT 1 FROM relay_marks WHERE dispatch = ? AND item = ?`
	putMark    = `INSERT INTO relay_marks (cursor, seq, dispatch, item, sum) VALUES (` + cursorRow + `, ?, ?, ?, ?)
		ON CONFLICT (cursor, seq) DO NOTHING`

	feedQuery = `SELECT store_id, store_epoch, position, items, seen FROM feed_states WHERE peer = ? AND direction = ?`
	setFeed   = `INSERT INTO feed_states (peer, direction, store_id, store_epoch, position, items, seen) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4)
		ON CONFLICT (peer, direction) DO UPDATE
		SET seen = CASE store_id WHEN excluded.store_id THEN MAX(seen, excluded.seen) ELSE excluded.seen END, store_id = excluded.store_id, store_epoch = excluded.store_epoch, position = excluded.position, items = excluded.items`
)

func scanCursor(s scanner, c *store.Cursor) error { return s.Scan(&c.Seq, &c.Known, &c.Pos, &c.Parked) }

func scanPlaced(s scanner, c *store.PlacedCursor) error {
	return s.Scan(&c.Dispatch, &c.Seq, &c.Known, &c.Pos, &c.Parked)
}

// Cursor implements store.RelayReader.
func (q querier) Cursor(k store.CursorKey) (store.Cursor, error) {
	c, _, err := one(q, scanCursor, cursorQuery, k.Dispatch, k.Lineage, k.StoreID, k.Epoch)
	return c, wrap(err, "reading the cursor of %s", k.Dispatch)
}

// CursorsFrom implements store.RelayReader. It is asked after a restore only, so
// that no index follows every import.
func (q querier) CursorsFrom(src store.SourceKey, pos, after int64, limit int) (out []store.PlacedCursor, next int64, err error) {
	seen := 0
	err = q.each(func(s scanner) (bool, error) {
		var c store.PlacedCursor
		var of store.SourceKey
		if err := s.Scan(&c.Dispatch, &c.Seq, &c.Known, &c.Pos, &c.Parked, &next, &of.Lineage, &of.StoreID, &of.Epoch); err != nil {
			return false, err
		}
		if seen++; of == src && c.Pos > pos {
			out = append(out, c)
		}
		return true, nil
	}, cursorsFrom, after, limit)
	if seen < limit {
		next = 0
	}
	return out, next, wrap(err, "looking for what the source has lost")
}

// ParkedCursors implements store.RelayReader.
func (q querier) ParkedCursors(lineage, storeID string, epoch int64, limit int) ([]store.PlacedCursor, int, error) {
	out, err := all(q, scanPlaced, parkedCursors, lineage, storeID, epoch, limit)
	if err != nil || len(out) < limit {
		return out, len(out), wrap(err, "reading what is parked")
	}
	n, _, err := one(q, func(s scanner, n *int) error { return s.Scan(n) }, countCursors, lineage, storeID, epoch)
	return out, n, wrap(err, "counting what is parked")
}

// Mark implements store.RelayReader.
func (q querier) Mark(k store.CursorKey, seq int64) (store.Mark, bool, error) {
	m, ok, err := one(q, func(s scanner, m *store.Mark) error {
		var sum []byte
		if err := s.Scan(&m.ID, &sum); err != nil {
			return err
		}
		if len(sum) != len(m.Sum) {
			return fmt.Errorf("a sum of %d bytes", len(sum))
		}
		m.Sum = [32]byte(sum)
		return nil
	}, markQuery, k.Dispatch, k.Lineage, k.StoreID, k.Epoch, seq)
	return m, ok, wrap(err, "reading what item %d of %s was", seq, k.Dispatch)
}

// Marked implements store.RelayReader.
func (q querier) Marked(d hub.DispatchID, id hub.MessageID) (bool, error) {
	_, ok, err := one(q, func(s scanner, n *int) error { return s.Scan(n) }, markedItem, d, id)
	return ok, wrap(err, "looking for the item %s", id)
}

// Feed implements store.RelayReader.
func (q querier) Feed(peer hub.PeerID, dir hub.Direction) (hub.FeedState, error) {
	f, _, err := one(q, func(s scanner, f *hub.FeedState) error {
		return s.Scan(&f.StoreID, &f.Epoch, &f.Position, &f.Items, &f.Seen)
	}, feedQuery, peer, dir)
	return f, wrap(err, "reading the feed of %s", peer)
}

// SaveCursor implements store.Relay. What was imported stays so: the statement
// changes neither what is ahead nor what is the same, and tells them apart only
// then.
func (tx *Tx) SaveCursor(k store.CursorKey, c store.Cursor) error {
	n, err := tx.exec(setCursor, k.Dispatch, k.Lineage, k.StoreID, k.Epoch, c.Seq, c.Known, c.Pos, c.Parked)
	if err != nil || n > 0 {
		return wrap(err, "advancing the cursor of %s", k.Dispatch)
	}
	have, err := tx.Cursor(k)
	if err == nil && c.Seq < have.Seq {
		err = fmt.Errorf("advancing the cursor of %s: %d is behind %d", k.Dispatch, c.Seq, have.Seq)
	}
	return err
}

// PutMark implements store.Relay.
func (tx *Tx) PutMark(k store.CursorKey, seq int64, m store.Mark) error {
	_, err := tx.exec(putMark, k.Dispatch, k.Lineage, k.StoreID, k.Epoch, seq, k.Dispatch, m.ID, m.Sum[:])
	return wrap(err, "keeping what item %d of %s was", seq, k.Dispatch)
}

// SetFeed implements store.Relay.
func (tx *Tx) SetFeed(peer hub.PeerID, dir hub.Direction, f hub.FeedState) error {
	_, err := tx.exec(setFeed, peer, dir, f.StoreID, f.Epoch, f.Position, f.Items)
	return wrap(err, "setting the feed of %s", peer)
}
