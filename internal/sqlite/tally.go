package sqlite

import "github.com/wavehub/wavehub/internal/hub"

// tally is what a closure has changed of the counts of a feed: of what waits, of
// what is acknowledged, and the newest position of that. It is written once,
// before the closure's savepoint is released or the counts are read.
type tally struct{ feed, items, bytes, acked, pos int64 }

// tally adds to the counts of a feed.
func (tx *Tx) tally(t tally) {
	for i := range tx.tallies {
		if have := &tx.tallies[i]; have.feed == t.feed {
			have.items, have.bytes, have.acked = have.items+t.items, have.bytes+t.bytes, have.acked+t.acked
			have.pos = max(have.pos, t.pos)
			return
		}
	}
	tx.tallies = append(tx.tallies, t)
}

// count writes the tallies.
func (tx *Tx) count() error {
	for _, t := range tx.tallies {
		if _, err := tx.exec(countFeed, t.items, t.bytes, t.acked, t.pos, t.feed); err != nil {
			return wrap(err, "counting what waits")
		}
	}
	tx.tallies = nil
	return nil
}

// Log implements store.RelayReader.
func (tx *Tx) Log(peer hub.PeerID, dir hub.Direction) (hub.LogState, error) {
	if err := tx.count(); err != nil {
		return hub.LogState{}, err
	}
	return tx.querier.Log(peer, dir)
}

// Backlog implements store.RelayReader.
func (tx *Tx) Backlog(peer hub.PeerID, dir hub.Direction) (items int, bytes int64, err error) {
	if err := tx.count(); err != nil {
		return 0, 0, err
	}
	return tx.querier.Backlog(peer, dir)
}
