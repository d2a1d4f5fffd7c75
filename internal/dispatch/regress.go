package dispatch

import (
	"context"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	noticeRegressed = "relay_regressed"
	// regressPage is how many cursors one transaction looks at.
	regressPage = 500
)

// regression is what one end of a queue has lost and the other knows.
type regression struct {
	Dispatch hub.DispatchID `json:"dispatch_id"`
	Had      int64          `json:"had_seq"` // what was imported here; 0 when this hub is the source
	Has      int64          `json:"has_seq"` // what its source has of it
	Conflict bool           `json:"conflict,omitempty"`
	Here     bool           `json:"here,omitempty"` // this hub is the source
}

// finding is what the beginning of a session says about a source.
type finding uint8

const (
	sound    finding = iota
	older            // its log ends before what was imported in this epoch
	restored         // it has begun a new epoch
	lacking          // this hub has lost what it had acknowledged
)

func judge(old hub.FeedState, log hub.LogState) finding {
	switch {
	case old.StoreID != "" && old.StoreID != log.StoreID:
		return sound // another store than the one before: nothing of it is compared
	case old.StoreID != "" && log.Epoch > old.Epoch:
		return restored
	case old.StoreID != "" && (log.Epoch < old.Epoch || log.End < old.Position):
		return older
	case log.Items > old.Items || log.Swept > old.Position:
		return lacking
	}
	return sound
}

// Begin compares what a source says of its log with what was imported of it. A
// source that has lost items within an epoch would use their sequences again, so
// the queues concerned are parked before it can; one that has begun a new epoch
// starts over. Either is told to the Runs, once per Dispatch.
func (s *Service) Begin(ctx context.Context, peer hub.PeerID, dir hub.Direction, log hub.LogState) (feed hub.FeedState, acks []hub.Ack, err error) {
	old, err := s.Feed(ctx, peer, dir)
	if err != nil {
		return old, nil, err
	}
	c := comparison{dir: dir, old: old, log: log, found: judge(old, log)}
	if c.found == sound && old.StoreID == log.StoreID {
		return old, nil, nil
	}
	for more := c.found == older || c.found == restored; more; {
		if more, err = s.compare(ctx, peer, &c); err != nil {
			return old, nil, err
		}
	}
	err = s.Store.Update(ctx, store.Import, func(tx store.Tx) error {
		feed, err = c.conclude(tx, peer)
		return err
	})
	return feed, c.acks, err
}

// SeenEpoch notes that a peer knows a later epoch of this store than the store
// itself does, which was put back to before that: it is adopted into one behind.
func (s *Service) SeenEpoch(ctx context.Context, epoch int64) error {
	return s.Store.Update(ctx, store.Import, func(tx store.Tx) error { return tx.SeeEpoch(epoch) })
}

// comparison goes through the cursors of a source, page by page. What a page has
// noted is on record, so that a session that ends early has lost nothing.
type comparison struct {
	dir   hub.Direction
	old   hub.FeedState
	log   hub.LogState
	found finding
	after int64
	acks  []hub.Ack
}

// survived is the position up to which the source still has the old epoch's log.
func (c *comparison) survived() int64 {
	switch {
	case c.log.Epoch == c.old.Epoch:
		return c.log.End
	case c.log.Epoch == c.old.Epoch+1:
		return c.log.Begin
	}
	return 0 // it was restored more than once, or to before that epoch
}

func (s *Service) compare(ctx context.Context, peer hub.PeerID, c *comparison) (more bool, err error) {
	var acks []hub.Ack
	var next int64
	err = s.Store.Update(ctx, store.Import, func(tx store.Tx) error {
		p, err := activePeer(tx, peer)
		if err != nil {
			return err
		}
		acks, next, err = c.page(tx, p)
		return err
	})
	c.acks, c.after = append(c.acks, acks...), next
	return next != 0, err
}

func (c *comparison) page(tx store.Tx, p hub.Peer) (acks []hub.Ack, next int64, err error) {
	src := store.SourceKey{Lineage: p.Lineage, StoreID: c.log.StoreID, Epoch: c.old.Epoch}
	cs, next, err := tx.CursorsFrom(src, c.survived(), c.after, regressPage)
	if err != nil {
		return nil, 0, err
	}
	var lost []regression
	for _, cur := range cs {
		fresh, err := c.note(tx, src, cur)
		if err != nil {
			return nil, 0, err
		}
		if fresh {
			lost = append(lost, regression{Dispatch: cur.Dispatch, Had: cur.Seq, Conflict: c.found == older})
		}
		if c.found == older {
			acks = append(acks, hub.Ack{Dispatch: cur.Dispatch, Parked: lostReason})
		}
	}
	return acks, next, tellRegressed(tx, p, lost)
}

// lostReason parks a queue before its source has used a sequence again.
const lostReason = hub.ParkedConflict + ": the source has lost items that were imported"

// note marks a cursor whose source has lost something; fresh says that it was not
// marked before. Of a source that is behind, it is the cursor that new items
// would meet.
func (c *comparison) note(tx store.Relay, src store.SourceKey, cur store.PlacedCursor) (fresh bool, err error) {
	key := store.CursorKey{Lineage: src.Lineage, StoreID: src.StoreID, Epoch: src.Epoch, Dispatch: cur.Dispatch}
	at, reason := cur.Cursor, noticeRegressed
	if c.found == older {
		reason, key.Epoch = lostReason, c.log.Epoch
		if at, err = tx.Cursor(key); err != nil {
			return false, err
		}
	}
	told := hub.Ack{Parked: at.Parked}.Conflicting()
	if at.Parked == reason || told && c.found == older {
		return false, nil
	}
	at.Parked = reason
	return !told, tx.SaveCursor(key, at)
}

// conclude makes the source's present state the one to compare with. A position of
// 0 has it send again what was acknowledged, until that has all come.
func (c *comparison) conclude(tx store.Tx, peer hub.PeerID) (to hub.FeedState, err error) {
	p, err := activePeer(tx, peer)
	if err != nil {
		return to, err
	}
	to = hub.FeedState{StoreID: c.log.StoreID, Epoch: c.log.Epoch, Items: c.log.Items}
	if c.found == older {
		to.Position, to.Items = c.log.End, max(c.old.Items, c.log.Items)
	}
	if c.found == lacking && c.log.Swept > c.old.Position {
		if err := tellForgotten(tx, p, c.dir); err != nil {
			return to, err
		}
	}
	return to, tx.SetFeed(peer, c.dir, to)
}

// Skip goes on at the first item that a source still has of each queue. What is
// passed over was lost here after it was acknowledged, and is kept nowhere.
func (s *Service) Skip(ctx context.Context, peer hub.PeerID, dir hub.Direction, feed hub.FeedState, from []hub.Want) (acks []hub.Ack, err error) {
	err = s.Store.Update(ctx, store.Import, func(tx store.Tx) error {
		p, err := sourceOf(tx, peer, dir)
		if err != nil {
			return err
		}
		im := newImporter(tx, p, dir, feed)
		acks, err = im.skipAll(from)
		return err
	})
	return acks, err
}

func (im *importer) skipAll(from []hub.Want) (acks []hub.Ack, err error) {
	for _, w := range from {
		l, err := im.lane(w.Dispatch)
		if err == nil && !l.ack.Conflicting() && w.Seq > l.cur.Seq+1 {
			err = im.skip(l, w.Seq)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, l := range im.order {
		if err := im.keep(l); err != nil {
			return nil, err
		}
		acks = append(acks, l.ack)
	}
	return acks, im.advanceFeed(hub.FeedState{StoreID: im.feed.StoreID, Epoch: im.feed.Epoch})
}

func (im *importer) skip(l *lane, to int64) error {
	if known, err := im.knows(l.key.Dispatch); err != nil || !known {
		l.ack = hub.Ack{Dispatch: l.key.Dispatch, Parked: hub.ParkedUnknown}
		l.cur.Parked = hub.ParkedUnknown
		return err
	}
	had := l.cur.Seq
	im.taken += to - 1 - had
	l.cur.Seq, l.cur.Known, l.cur.Parked = to-1, to-1, ""
	l.ack.Seq = to - 1
	return im.tellHome(regression{Dispatch: l.key.Dispatch, Had: had, Has: to})
}

// knows reports whether the Dispatch is one that the peer may send items of.
func (im *importer) knows(id hub.DispatchID) (bool, error) {
	if im.dir == hub.ToWorker {
		_, ok, err := im.tx.Attachment(im.peer.ID, id)
		return ok, err
	}
	d, err := im.tx.Dispatch(id)
	if hub.IsCode(err, hub.CodeDispatchNotFound) {
		return false, nil
	}
	ours := d.Server.PeerID == im.peer.ID && d.Pin.Lineage == im.peer.Lineage && d.Pin.StoreID == im.feed.StoreID
	return err == nil && ours, err
}

// regressedNotice is the payload of a relay_regressed notice.
type regressedNotice struct {
	Kind       string       `json:"kind"`
	Peer       hub.PeerID   `json:"peer_id"`
	Name       string       `json:"name"`
	Count      int          `json:"dispatches"`
	Dispatches []regression `json:"queues"` // the first ones
}

// tellRegressed makes one notice for each Run that has Dispatches among the lost.
// A Run whose Dispatches have all ended finds it in the history.
func tellRegressed(tx store.Tx, p hub.Peer, lost []regression) error {
	of := map[hub.RunID][]regression{}
	var runs []hub.RunID
	live := map[hub.RunID]bool{}
	for _, r := range lost {
		d, err := tx.Dispatch(r.Dispatch)
		if hub.IsCode(err, hub.CodeDispatchNotFound) || err == nil && d.Server.PeerID != p.ID {
			continue // this hub is its owner: the Run is elsewhere
		}
		if err != nil {
			return err
		}
		if of[d.Run] == nil {
			runs = append(runs, d.Run)
		}
		of[d.Run] = append(of[d.Run], r)
		live[d.Run] = live[d.Run] || !d.State.Final()
	}
	for _, r := range runs {
		n := regressed(p, of[r])
		n.history = !live[r]
		if err := postNotice(tx, r, n); err != nil {
			return err
		}
	}
	return nil
}

func regressed(p hub.Peer, lost []regression) notice {
	n := notice{
		subject: fmt.Sprintf("%s has lost what it had sent", p.Name),
		body: "Its store is older than what came from it. Nothing that was imported is lost here, and other Dispatches flow; " +
			"look at these workers before you rely on what their hub says of them.",
		payload: regressedNotice{
			Kind: noticeRegressed, Peer: p.ID, Name: p.Name, Count: len(lost), Dispatches: lost[:min(len(lost), shownDispatches)],
		},
	}
	switch r := lost[0]; {
	case r.Here:
		n.subject = "This hub has lost what it had sent to " + p.Name
		n.body = "Its store was put back by hand. What is queued for these Dispatches is held: stop the hub and run " +
			"wavehub restore --adopt on it. Stop and abandon work meanwhile."
	case r.Conflict:
		n.body = "Its store was put back by hand, so nothing more is taken from these Dispatches: stop the hub there and run " +
			"wavehub restore --adopt on it. Stop and abandon work meanwhile, and nothing that was imported is lost."
	case r.Has > r.Had:
		n.subject = fmt.Sprintf("Items from %s are lost", p.Name)
		n.body = "This hub's store is older than what it had acknowledged, and the other hub keeps the items in between no more. " +
			"What comes behind them is taken; see wavehub worker show for what these workers came to."
	}
	return n
}

// tellForgotten tells every Run with live Dispatches at the peer that some of
// their items may be missing: which ones nobody knows any more.
func tellForgotten(tx store.Tx, p hub.Peer, dir hub.Direction) error {
	if dir != hub.ToHome {
		return nil
	}
	ids, err := liveThere(tx, p.ID)
	if err != nil {
		return err
	}
	for _, run := range ids.runs {
		var lost []regression
		for _, d := range ids.of[run] {
			lost = append(lost, regression{Dispatch: d, Has: 1})
		}
		if err := postNotice(tx, run, regressed(p, lost)); err != nil {
			return err
		}
	}
	return nil
}
