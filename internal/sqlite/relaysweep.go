package sqlite

import (
	"errors"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	queuesFrom = `SELECT q.dispatch, f.peer, f.direction, q.last_seq, q.acked_seq, q.swept_seq, q.ended_at,
		MAX(q.acked_seq - ?, CASE WHEN q.acked_bytes - q.swept_bytes <= ? THEN 0 ELSE
			(SELECT COALESCE(MAX(i.seq), 0) FROM relay_items i WHERE i.queue = q.rid AND i.seq <= q.acked_seq
				AND q.acked_bytes - i.end_bytes >= ?) END), q.rid
		FROM relay_queues q CROSS JOIN relay_feeds f WHERE q.rid > ? AND f.rid = q.feed ORDER BY q.rid LIMIT ?`
	sweptSeq   = `SELECT swept_seq FROM relay_queues WHERE rid = ?`
	newestItem = `SELECT queue, seq FROM relay_items WHERE pos = (SELECT MAX(pos) FROM relay_items)`
	sweepItems = `DELETE FROM relay_items WHERE queue = ? AND seq <= ?`
	sweptQueue = `UPDATE relay_queues SET swept_seq = ?, swept_bytes = ? WHERE rid = ?`
	sweptFeed  = `UPDATE relay_feeds SET swept_pos = MAX(swept_pos, ?) WHERE rid = ?`
	endQueue   = `UPDATE relay_queues SET ended_at = ? WHERE ` + inQueue

	raiseEpoch = `UPDATE meta SET store_epoch = MAX(store_epoch, epoch_seen) + 1,
		epoch_begin = (SELECT COALESCE(MAX(pos), 0) FROM relay_items) WHERE id = 1 RETURNING store_epoch`
	seeEpoch  = `UPDATE meta SET epoch_seen = ? WHERE id = 1 AND epoch_seen < ?`
	dropAcked = `DELETE FROM relay_items WHERE seq <= (SELECT acked_seq FROM relay_queues WHERE rid = relay_items.queue)`
	// Two steps, so that no number is given twice in between.
	renumber = `UPDATE relay_items SET
		seq = (SELECT acked_seq FROM relay_queues WHERE rid = relay_items.queue) - seq,
		end_bytes = end_bytes - (SELECT acked_bytes FROM relay_queues WHERE rid = relay_items.queue)`
	renumbered = `UPDATE relay_items SET seq = -seq WHERE seq < 0`
	restartAll = `UPDATE relay_queues SET last_seq = last_seq - acked_seq, last_bytes = last_bytes - acked_bytes,
		acked_seq = 0, acked_bytes = 0, swept_seq = 0, swept_bytes = 0, parked = ''`
	restartFeed = `UPDATE relay_feeds SET acked_pos = 0, acked_items = 0, swept_pos = 0,
		items = (SELECT COALESCE(SUM(last_seq), 0) FROM relay_queues WHERE feed = relay_feeds.rid),
		bytes = (SELECT COALESCE(SUM(last_bytes), 0) FROM relay_queues WHERE feed = relay_feeds.rid)`
)

// QueuesFrom implements store.RelayReader.
func (q querier) QueuesFrom(after int64, limit, items int, bytes int64) (out []store.KeptQueue, next int64, err error) {
	seen := 0
	err = q.each(func(s scanner) (bool, error) {
		var k store.KeptQueue
		if err := s.Scan(&k.Dispatch, &k.Peer, &k.Direction, &k.LastSeq, &k.AckedSeq, &k.SweptSeq, &k.EndedAt, &k.Surplus, &next); err != nil {
			return false, err
		}
		if seen++; k.SweptSeq < k.AckedSeq {
			out = append(out, k)
		}
		return true, nil
	}, queuesFrom, items, bytes, bytes, after, limit)
	if seen < limit {
		next = 0
	}
	return out, next, wrap(err, "looking through the queues")
}

// SweepQueue implements store.Relay. The newest item stays: its position must
// not be given twice within an epoch.
func (tx *Tx) SweepQueue(k store.QueueKey, seq int64, limit int) (int, error) {
	p, ok, err := tx.place(k)
	if err != nil || !ok {
		return 0, err
	}
	n, err := tx.sweep(p, min(seq, p.ackedSeq), int64(limit))
	return n, wrap(err, "sweeping the queue of %s", k.Dispatch)
}

func (tx *Tx) sweep(p place, seq, limit int64) (int, error) {
	number := func(s scanner, n *int64) error { return s.Scan(n) }
	from, _, err := one(tx.querier, number, sweptSeq, p.rid)
	if err != nil {
		return 0, err
	}
	type row struct{ queue, seq int64 }
	newest, _, err := one(tx.querier, func(s scanner, r *row) error { return s.Scan(&r.queue, &r.seq) }, newestItem)
	if err != nil {
		return 0, err
	}
	if seq = min(seq, from+limit); newest.queue == p.rid {
		seq = min(seq, newest.seq-1)
	}
	if seq <= from {
		return 0, nil
	}
	last, ok, err := one(tx.querier, func(s scanner, r *row) error { return s.Scan(&r.queue, &r.seq) }, itemPlace, p.rid, seq)
	if err == nil && !ok {
		err = errors.New("the last item to sweep is missing")
	}
	if err != nil {
		return 0, err
	}
	return int(seq - from), tx.swept(p, seq, last.queue, last.seq)
}

// swept drops items up to seq, which lies at pos and ends at byte end.
func (tx *Tx) swept(p place, seq, pos, end int64) error {
	_, err1 := tx.exec(sweepItems, p.rid, seq)
	_, err2 := tx.exec(sweptQueue, seq, end, p.rid)
	_, err3 := tx.exec(sweptFeed, pos, p.feed)
	return errors.Join(err1, err2, err3)
}

// EndQueue implements store.Relay.
func (tx *Tx) EndQueue(k store.QueueKey, at hub.Micros) error {
	_, err := tx.exec(endQueue, at, k.Dispatch, k.Peer, k.Direction)
	return wrap(err, "ending the queue of %s", k.Dispatch)
}

// SeeEpoch implements store.Relay.
func (tx *Tx) SeeEpoch(epoch int64) error {
	_, err := tx.exec(seeEpoch, epoch, epoch)
	return wrap(err, "noting an epoch that a peer has seen")
}

// RaiseEpoch implements store.Relay. Its work grows with the log that is kept.
func (tx *Tx) RaiseEpoch() (epoch, items int64, err error) {
	if err := tx.count(); err != nil {
		return 0, 0, err
	}
	ok, err := tx.returning([]any{&epoch}, raiseEpoch)
	if err == nil && !ok {
		err = errors.New("the store has no identity")
	}
	for _, q := range []string{dropAcked, renumber, renumbered, restartAll, restartFeed} {
		if err == nil {
			_, err = tx.exec(q)
		}
	}
	if err == nil {
		items, _, err = one(tx.querier, func(s scanner, n *int64) error { return s.Scan(n) }, `SELECT COUNT(*) FROM relay_items`)
	}
	return epoch, items, wrap(err, "raising the store's epoch")
}
