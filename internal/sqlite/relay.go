package sqlite

import (
	"errors"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	feedOf  = `(SELECT rid FROM relay_feeds WHERE peer = ? AND direction = ?)`
	inQueue = `dispatch = ? AND feed = ` + feedOf

	queueQuery = `SELECT last_seq, acked_seq, last_seq - acked_seq, last_bytes - acked_bytes, parked
		FROM relay_queues WHERE ` + inQueue
	insertFeed  = `INSERT INTO relay_feeds (peer, direction) VALUES (?, ?) ON CONFLICT (peer, direction) DO NOTHING`
	insertQueue = `INSERT INTO relay_queues (feed, dispatch, last_seq, last_bytes, acked_seq, acked_bytes, parked)
		VALUES (` + feedOf + `, ?, 0, 0, 0, 0, '')`
	bumpQueue = `UPDATE relay_queues SET last_seq = last_seq + 1, last_bytes = last_bytes + ? WHERE ` + inQueue +
		` RETURNING rid, feed, last_seq, last_bytes, parked`
	insertItem = `INSERT INTO relay_items (feed, queue, seq, end_bytes, id, kind, payload)
		VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING pos`
	countFeed  = `UPDATE relay_feeds SET items = items + ?, bytes = bytes + ?, acked_items = acked_items + ?, acked_pos = MAX(acked_pos, ?) WHERE rid = ?`
	queuePlace = `SELECT rid, feed, last_seq, last_bytes, acked_seq, acked_bytes, parked FROM relay_queues WHERE ` + inQueue
	itemPlace  = `SELECT pos, end_bytes FROM relay_items WHERE queue = ? AND seq = ?`
	ackQueue   = `UPDATE relay_queues SET acked_seq = ?, acked_bytes = ? WHERE rid = ?`
	parkQueue  = `UPDATE relay_queues SET parked = ? WHERE rid = ?`

	itemCols   = `i.pos, q.dispatch, i.seq, i.id, i.kind, i.payload`
	itemsAfter = `SELECT ` + itemCols + ` FROM relay_items i CROSS JOIN relay_queues q
		WHERE i.feed = ` + feedOf + ` AND i.pos > ? AND q.rid = i.queue AND i.seq > q.acked_seq ORDER BY i.pos`
	firstOpen = `SELECT COALESCE(MIN(i.pos), 0) FROM relay_queues q CROSS JOIN relay_items i
		WHERE q.feed = ` + feedOf + ` AND q.acked_seq < q.last_seq AND i.queue = q.rid AND i.seq = q.acked_seq + 1`
	queueItems = `SELECT ` + itemCols + ` FROM relay_queues q CROSS JOIN relay_items i
		WHERE q.dispatch = ? AND q.feed = ` + feedOf + ` AND i.queue = q.rid AND i.seq >= ? ORDER BY i.seq`
)

func scanItem(s scanner, it *hub.Item) error {
	return s.Scan(&it.Pos, &it.Dispatch, &it.Seq, &it.ID, &it.Kind, &it.Payload)
}

func itemBytes(it hub.Item) int { return len(it.Payload) }

// Queue implements store.RelayReader.
func (q querier) Queue(k store.QueueKey) (store.Queue, error) {
	x, _, err := one(q, func(s scanner, x *store.Queue) error {
		return s.Scan(&x.LastSeq, &x.AckedSeq, &x.PendingItems, &x.PendingBytes, &x.Parked)
	}, queueQuery, k.Dispatch, k.Peer, k.Direction)
	return x, wrap(err, "reading the queue of %s", k.Dispatch)
}

// ItemsAfter implements store.RelayReader. A session begins at 0: it then skips
// what was acknowledged by asking the open queues, not by walking the log.
func (q querier) ItemsAfter(peer hub.PeerID, dir hub.Direction, pos int64, maxBytes int) ([]hub.Item, error) {
	if pos == 0 {
		first, _, err := one(q, func(s scanner, n *int64) error { return s.Scan(n) }, firstOpen, peer, dir)
		if err != nil || first == 0 {
			return nil, wrap(err, "finding the open queues of %s", peer)
		}
		pos = first - 1
	}
	its, err := fitting(q, scanItem, itemBytes, maxBytes, itemsAfter, peer, dir, pos)
	return its, wrap(err, "reading the log of %s", peer)
}

// QueueItems implements store.RelayReader.
func (q querier) QueueItems(k store.QueueKey, fromSeq int64, maxBytes int) ([]hub.Item, error) {
	its, err := fitting(q, scanItem, itemBytes, maxBytes, queueItems, k.Dispatch, k.Peer, k.Direction, fromSeq)
	return its, wrap(err, "reading the queue of %s", k.Dispatch)
}

// Enqueue implements store.Relay.
func (tx *Tx) Enqueue(k store.QueueKey, it hub.Item) (hub.Item, error) {
	it.Dispatch = k.Dispatch
	if it.ID == "" {
		it.ID = hub.NewMessageID()
	}
	if err := tx.enqueue(k, &it); err != nil {
		return hub.Item{}, wrap(err, "queueing for %s", k.Dispatch)
	}
	tx.Signal(hub.Signal{Topic: hub.TopicRelay, Key: string(k.Peer)})
	return it, nil
}

func (tx *Tx) enqueue(k store.QueueKey, it *hub.Item) error {
	var queue, feed, endBytes int64
	var parked string
	bump := func() (bool, error) {
		return tx.returning([]any{&queue, &feed, &it.Seq, &endBytes, &parked}, bumpQueue, len(it.Payload), k.Dispatch, k.Peer, k.Direction)
	}
	ok, err := bump()
	if err == nil && !ok {
		if err = tx.makeQueue(k); err == nil {
			ok, err = bump()
		}
	}
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New("the queue was not made")
	}
	if _, err = tx.returning([]any{&it.Pos}, insertItem, feed, queue, it.Seq, endBytes, it.ID, it.Kind, blob(it.Payload)); err != nil || parked != "" {
		return err
	}
	tx.tally(tally{feed: feed, items: 1, bytes: int64(len(it.Payload))})
	return nil
}

func (tx *Tx) makeQueue(k store.QueueKey) error {
	if _, err := tx.exec(insertFeed, k.Peer, k.Direction); err != nil {
		return err
	}
	_, err := tx.exec(insertQueue, k.Peer, k.Direction, k.Dispatch)
	return err
}

// place is a queue's row.
type place struct {
	rid, feed                                int64
	lastSeq, lastBytes, ackedSeq, ackedBytes int64
	parked                                   string
}

func (q querier) place(k store.QueueKey) (place, bool, error) {
	p, ok, err := one(q, func(s scanner, p *place) error {
		return s.Scan(&p.rid, &p.feed, &p.lastSeq, &p.lastBytes, &p.ackedSeq, &p.ackedBytes, &p.parked)
	}, queuePlace, k.Dispatch, k.Peer, k.Direction)
	return p, ok, wrap(err, "reading the queue of %s", k.Dispatch)
}

// AckQueue implements store.Relay.
func (tx *Tx) AckQueue(k store.QueueKey, seq int64) error {
	p, _, err := tx.place(k)
	switch {
	case err != nil:
		return err
	case seq > p.lastSeq:
		return hub.Invalid("seq", "%d is acknowledged, but the queue of %s ends at %d", seq, k.Dispatch, p.lastSeq)
	case seq <= p.ackedSeq:
		return nil
	}
	return wrap(tx.ack(p, seq), "acknowledging the queue of %s", k.Dispatch)
}

func (tx *Tx) ack(p place, seq int64) error {
	var pos, end int64
	_, ok, err := one(tx.querier, func(s scanner, _ *struct{}) error { return s.Scan(&pos, &end) }, itemPlace, p.rid, seq)
	if err == nil && !ok {
		err = errors.New("the item that was acknowledged is missing")
	}
	if err != nil {
		return err
	}
	t := tally{feed: p.feed, acked: seq - p.ackedSeq, pos: pos}
	if p.parked == "" { // else it is not counted
		t.items, t.bytes = -t.acked, p.ackedBytes-end
	}
	if _, err = tx.exec(ackQueue, seq, end, p.rid); err != nil {
		return err
	}
	tx.tally(t)
	return nil
}

// ParkQueue implements store.Relay. What waits in a parked queue does not count
// as the peer's backlog.
func (tx *Tx) ParkQueue(k store.QueueKey, reason string) error {
	p, ok, err := tx.place(k)
	if err == nil && !ok {
		err = hub.Errorf(hub.CodeDispatchNotFound, "there is no queue of %s", k.Dispatch)
	}
	if err != nil || p.parked == reason {
		return err
	}
	if _, err := tx.exec(parkQueue, reason, p.rid); err != nil {
		return wrap(err, "parking the queue of %s", k.Dispatch)
	}
	items, bytes := p.lastSeq-p.ackedSeq, p.lastBytes-p.ackedBytes
	switch {
	case p.parked == "":
		items, bytes = -items, -bytes
	case reason != "":
		return nil
	}
	tx.tally(tally{feed: p.feed, items: items, bytes: bytes})
	return nil
}
