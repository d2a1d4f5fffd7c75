package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	itemsBetween = `SELECT ` + itemCols + ` FROM relay_items i CROSS JOIN relay_queues q
		WHERE i.feed = ` + feedOf + ` AND i.pos > ? AND i.pos <= ? AND q.rid = i.queue AND i.seq <= q.acked_seq ORDER BY i.pos`
	logEnd = `SELECT store_id, store_epoch, epoch_begin, (SELECT COALESCE(MAX(pos), 0) FROM relay_items)
		FROM meta WHERE id = 1`
	feedPlace    = `SELECT acked_pos, acked_items, swept_pos FROM relay_feeds WHERE peer = ? AND direction = ?`
	backlogQuery = `SELECT items, bytes FROM relay_feeds WHERE peer = ? AND direction = ?`
	parkedIn     = ` FROM relay_queues WHERE feed = ` + feedOf + ` AND parked <> ''`
	parkedQueues = `SELECT dispatch, last_seq - acked_seq, parked` + parkedIn + ` LIMIT ?`
	countParked  = `SELECT COUNT(*)` + parkedIn
)

// ItemsBetween implements store.RelayReader.
func (q querier) ItemsBetween(peer hub.PeerID, dir hub.Direction, pos, until int64, maxBytes int) ([]hub.Item, error) {
	its, err := fitting(q, scanItem, itemBytes, maxBytes, itemsBetween, peer, dir, pos, until)
	return its, wrap(err, "reading the log of %s again", peer)
}

// Log implements store.RelayReader.
func (q querier) Log(peer hub.PeerID, dir hub.Direction) (hub.LogState, error) {
	l, _, err := one(q, func(s scanner, l *hub.LogState) error {
		return s.Scan(&l.StoreID, &l.Epoch, &l.Begin, &l.End)
	}, logEnd)
	if err != nil {
		return l, wrap(err, "reading the end of the log")
	}
	_, _, err = one(q, func(s scanner, _ *struct{}) error { return s.Scan(&l.Acked, &l.Items, &l.Swept) }, feedPlace, peer, dir)
	return l, wrap(err, "reading the log of %s", peer)
}

// Backlog implements store.RelayReader.
func (q querier) Backlog(peer hub.PeerID, dir hub.Direction) (items int, bytes int64, err error) {
	_, _, err = one(q, func(s scanner, _ *struct{}) error { return s.Scan(&items, &bytes) }, backlogQuery, peer, dir)
	return items, bytes, wrap(err, "reading what waits for %s", peer)
}

// ParkedQueues implements store.RelayReader.
func (q querier) ParkedQueues(peer hub.PeerID, limit int) (out []store.ParkedQueue, total int, err error) {
	for _, dir := range []hub.Direction{hub.ToHome, hub.ToWorker} {
		some, err := all(q, func(s scanner, p *store.ParkedQueue) error {
			p.Peer, p.Direction = peer, dir
			return s.Scan(&p.Dispatch, &p.Pending, &p.Reason)
		}, parkedQueues, peer, dir, limit-len(out))
		if err != nil {
			return nil, 0, wrap(err, "reading the parked queues of %s", peer)
		}
		n, _, err := one(q, func(s scanner, n *int) error { return s.Scan(n) }, countParked, peer, dir)
		if err != nil {
			return nil, 0, wrap(err, "counting the parked queues of %s", peer)
		}
		out, total = append(out, some...), total+n
	}
	return out, total, nil
}
