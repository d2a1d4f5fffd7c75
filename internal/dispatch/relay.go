package dispatch

import (
	"context"
	"errors"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Import commits relay items of one peer: many items and Dispatches in one
// transaction (several for a large batch), each queue only at its next sequence. feed is the source's
// store, its epoch, and the position behind the last item.
func (s *Service) Import(ctx context.Context, peer hub.PeerID, dir hub.Direction, feed hub.FeedState, items []hub.Item) (hub.ImportResult, error) {
	var all hub.ImportResult
	for first := true; first || len(items) > 0; first = false {
		n := portion(items)
		at := feed
		if n < len(items) {
			at.Position = items[n-1].Pos
		}
		part, err := s.importSome(ctx, peer, dir, at, items[:n], all.Wants)
		if err != nil {
			return hub.ImportResult{}, err
		}
		all.Acks, all.Wants, all.Feed = append(all.Acks, part.Acks...), part.Wants, part.Feed
		items = items[n:]
	}
	return all, nil
}

// portionBytes is how much payload one transaction imports: what follows from
// an item writes a few times its size, and a transaction writes 8 MiB at most.
// An end is small and writes the whole Task: it counts as endBytes.
const (
	portionBytes = 1 << 20
	endBytes     = 64 << 10
)

func portion(items []hub.Item) (n int) {
	for size := 0; n < len(items); n++ {
		size += len(items[n].Payload)
		if k := items[n].Kind; k == hub.ItemExit || k == hub.ItemStopped {
			size += endBytes
		}
		if n > 0 && size > portionBytes {
			break
		}
	}
	return n
}

// importSome imports in one transaction; wants are the gaps of portions before.
func (s *Service) importSome(ctx context.Context, peer hub.PeerID, dir hub.Direction, feed hub.FeedState, items []hub.Item, wants []hub.Want) (out hub.ImportResult, err error) {
	err = s.Store.Update(ctx, store.Import, func(tx store.Tx) error {
		p, err := sourceOf(tx, peer, dir)
		if err != nil {
			return err
		}
		im := newImporter(tx, p, dir, feed)
		im.wants = slices.Clone(wants)
		out, err = im.run(items)
		return err
	})
	return out, err
}

func activePeer(tx store.PeerReader, id hub.PeerID) (hub.Peer, error) {
	p, err := tx.Peer(id)
	if err == nil && !p.State.Trusted() {
		err = hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
	}
	return p, err
}

// sourceOf is the peer that items of a direction are taken from: a hub that works
// for this one sends to_home, a home sends to_worker. Roles change when the two are
// paired again.
func sourceOf(tx store.PeerReader, id hub.PeerID, dir hub.Direction) (hub.Peer, error) {
	p, err := activePeer(tx, id)
	role := hub.RoleWorker
	if dir == hub.ToWorker {
		role = hub.RoleHome
	}
	if err == nil && !p.Role.CanBe(role) {
		err = hub.Errorf(hub.CodeOutOfScope, "%s is not paired as a %s", p.Name, role)
	}
	return p, err
}

type importer struct {
	tx   store.Tx
	peer hub.Peer
	dir  hub.Direction
	feed hub.FeedState

	seen  map[hub.DispatchID]*lane
	order []*lane
	// records are as the transaction has them; see record.
	records map[hub.DispatchID]hub.Dispatch
	wants   []hub.Want
	gap     int64 // position of the first item that is neither imported nor parked
	taken   int64 // items imported
}

func newImporter(tx store.Tx, peer hub.Peer, dir hub.Direction, feed hub.FeedState) *importer {
	return &importer{tx: tx, peer: peer, dir: dir, feed: feed, seen: map[hub.DispatchID]*lane{}, records: map[hub.DispatchID]hub.Dispatch{}}
}

// lane is one Dispatch of an import: where its cursor was and is, and the ack.
type lane struct {
	key store.CursorKey
	was store.Cursor
	cur store.Cursor
	ack hub.Ack
}

func (im *importer) run(items []hub.Item) (hub.ImportResult, error) {
	for _, it := range items {
		if err := im.one(it); err != nil {
			return hub.ImportResult{}, err
		}
	}
	feed := im.feed
	switch {
	case im.gap > 0:
		feed.Position = im.gap - 1
	case len(im.wants) > 0:
		feed.Position = 0 // a gap of a portion before holds the feed back
	}
	out := hub.ImportResult{Wants: im.wants, Feed: feed.Position}
	for _, l := range im.order {
		if err := im.keep(l); err != nil {
			return out, err
		}
		out.Acks = append(out.Acks, l.ack)
	}
	return out, im.advanceFeed(feed)
}

// keep stores where a lane has come, or why it goes no further.
func (im *importer) keep(l *lane) error {
	if l.cur == l.was {
		return nil
	}
	if l.was == (store.Cursor{}) && l.cur.Seq == 0 {
		_, n, err := im.tx.ParkedCursors(l.key.Lineage, l.key.StoreID, l.key.Epoch, maxParked)
		if err != nil || n >= maxParked {
			return err // it is parked all the same; only the list is full
		}
	}
	return im.tx.SaveCursor(l.key, l.cur)
}

// maxParked bounds how many queues of one source are remembered as parked before
// their first item.
const maxParked = 1000

// advanceFeed never goes back within one epoch: items sent again for a gap
// have positions behind us.
func (im *importer) advanceFeed(feed hub.FeedState) error {
	old, err := im.tx.Feed(im.peer.ID, im.dir)
	if err != nil {
		return err
	}
	feed.Items = im.taken
	if old.StoreID == feed.StoreID && old.Epoch == feed.Epoch {
		feed.Position, feed.Items = max(old.Position, feed.Position), old.Items+im.taken
	}
	if old == feed {
		return nil
	}
	return im.tx.SetFeed(im.peer.ID, im.dir, feed)
}

func (im *importer) one(it hub.Item) error {
	l, err := im.lane(it.Dispatch)
	switch {
	case err != nil || l.ack.Conflicting():
		return err
	case it.Seq <= l.cur.Seq:
		return im.again(it, l)
	case l.ack.Parked != "":
		return nil
	case it.Seq > l.cur.Seq+1:
		im.missing(it, l.cur.Seq)
		return nil
	}
	arr, err := im.arrive(it)
	if refused, ok := errors.AsType[refusal](err); ok {
		l.ack.Parked, l.cur.Parked = refused.reason, refused.reason
		return nil
	}
	if err != nil {
		return err
	}
	verdict, err := arr.apply(im.tx)
	if err != nil {
		return err
	}
	if verdict != nil {
		l.ack.Verdicts = append(l.ack.Verdicts, *verdict)
	}
	l.ack.Seq, l.cur.Seq, l.cur.Parked = it.Seq, it.Seq, ""
	l.cur.Pos = max(l.cur.Pos, it.Pos)
	im.taken++
	if arr.mail {
		return nil
	}
	clear(im.records)
	return im.mark(it, l)
}

// mark keeps what an imported item was, unless its message says so.
func (im *importer) mark(it hub.Item, l *lane) error {
	if it.Kind == hub.ItemMessage {
		known, err := im.tx.HasMessage(it.ID)
		if err != nil || known {
			return err
		}
	}
	if l.was == (store.Cursor{}) { // a mark needs its cursor
		if err := im.tx.SaveCursor(l.key, l.cur); err != nil {
			return err
		}
		l.was = l.cur
	}
	return im.tx.PutMark(l.key, it.Seq, markOf(it))
}

// again takes an item that was imported before: its ack may have been lost, so the
// verdict on a report is said once more. One that is not what was imported as its
// sequence parks the queue until its source begins a new epoch.
func (im *importer) again(it hub.Item, l *lane) error {
	same, err := im.same(it, l)
	if err != nil {
		return err
	}
	if !same {
		return im.conflict(it, l)
	}
	if it.Kind != hub.ItemMessage {
		return nil
	}
	v, err := verdictAgain(im.tx, it)
	if v != nil {
		l.ack.Verdicts = append(l.ack.Verdicts, *v)
	}
	return err
}

func (im *importer) arrive(it hub.Item) (arrival, error) {
	if it.Kind != hub.ItemMessage && im.feed.Epoch > 1 {
		if known, err := im.tx.Marked(it.Dispatch, it.ID); err != nil || known {
			return nothing, err // it came in an epoch before
		}
	}
	if im.dir == hub.ToHome {
		d, err := im.record(it.Dispatch)
		return arriveHome(im.tx, im.peer, im.feed, it, d, err)
	}
	return arriveOwner(im.tx, im.peer, it)
}

// record is the home's record of a Dispatch, read once for the mail that comes
// together: what is no mail may change any record.
func (im *importer) record(id hub.DispatchID) (hub.Dispatch, error) {
	if d, ok := im.records[id]; ok {
		return d, nil
	}
	d, err := im.tx.Dispatch(id)
	if err == nil {
		im.records[id] = d
	}
	return d, err
}

func (im *importer) lane(d hub.DispatchID) (*lane, error) {
	if l, ok := im.seen[d]; ok {
		return l, nil
	}
	l := &lane{key: store.CursorKey{Lineage: im.peer.Lineage, StoreID: im.feed.StoreID, Epoch: im.feed.Epoch, Dispatch: d}}
	cur, err := im.tx.Cursor(l.key)
	if err != nil {
		return nil, err
	}
	l.was, l.cur, l.ack = cur, cur, hub.Ack{Dispatch: d, Seq: cur.Seq}
	if refused := (hub.Ack{Dispatch: d, Parked: cur.Parked}); refused.Conflicting() {
		l.ack = refused
	}
	im.seen[d] = l
	im.order = append(im.order, l)
	return l, nil
}

func (im *importer) missing(it hub.Item, cur int64) {
	if im.gap == 0 || it.Pos < im.gap {
		im.gap = it.Pos
	}
	for _, w := range im.wants {
		if w.Dispatch == it.Dispatch {
			return
		}
	}
	im.wants = append(im.wants, hub.Want{Dispatch: it.Dispatch, Seq: cur + 1})
}

// After returns committed items for the peer behind a feed position. It is
// peer_revoked once the pairing has ended, as every effect of a frame is.
func (s *Service) After(ctx context.Context, peer hub.PeerID, dir hub.Direction, pos int64, maxBytes int) (items []hub.Item, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if _, err := activePeer(rx, peer); err != nil {
			return err
		}
		items, err = rx.ItemsAfter(peer, dir, pos, maxBytes)
		return err
	})
	return items, err
}

// Between returns acknowledged items again, for a peer that has lost them.
func (s *Service) Between(ctx context.Context, peer hub.PeerID, dir hub.Direction, pos, until int64, maxBytes int) (items []hub.Item, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if _, err := activePeer(rx, peer); err != nil {
			return err
		}
		items, err = rx.ItemsBetween(peer, dir, pos, until, maxBytes)
		return err
	})
	return items, err
}

// Log is what this hub says of its log for the peer.
func (s *Service) Log(ctx context.Context, peer hub.PeerID, dir hub.Direction) (l hub.LogState, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		l, err = rx.Log(peer, dir)
		return err
	})
	return l, err
}

// Queue returns the items of one queue again from a sequence on.
func (s *Service) Queue(ctx context.Context, peer hub.PeerID, dir hub.Direction, d hub.DispatchID, fromSeq int64, maxBytes int) (items []hub.Item, err error) {
	k := store.QueueKey{Peer: peer, Dispatch: d, Direction: dir}
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if _, err := activePeer(rx, peer); err != nil {
			return err
		}
		items, err = rx.QueueItems(k, fromSeq, maxBytes)
		return err
	})
	return items, err
}

// Feed is how far this hub has come with the peer's log.
func (s *Service) Feed(ctx context.Context, peer hub.PeerID, dir hub.Direction) (f hub.FeedState, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		f, err = rx.Feed(peer, dir)
		return err
	})
	return f, err
}

// Acked commits the peer's acks of our queues, with its verdicts on reports.
func (s *Service) Acked(ctx context.Context, peer hub.PeerID, dir hub.Direction, acks []hub.Ack) error {
	return s.Store.Update(ctx, store.Import, func(tx store.Tx) error {
		if _, err := activePeer(tx, peer); err != nil {
			return err
		}
		for _, ack := range acks {
			k := store.QueueKey{Peer: peer, Dispatch: ack.Dispatch, Direction: dir}
			if err := acked(tx, k, ack); err != nil {
				return err
			}
		}
		return nil
	})
}

func acked(tx store.Tx, k store.QueueKey, ack hub.Ack) error {
	q, err := tx.Queue(k)
	if err != nil || q.LastSeq == 0 && ack.Seq == 0 {
		return err // it refuses a queue that this hub does not have
	}
	if err := tx.AckQueue(k, ack.Seq); err != nil {
		return err
	}
	if q.Parked != ack.Parked {
		if err := parked(tx, k, ack); err != nil {
			return err
		}
	}
	for _, v := range ack.Verdicts {
		if err := verdict(tx, k, v); err != nil {
			return err
		}
	}
	return nil
}

// verdict stores the receiver's word on a message; the home's moves the
// capability.
func verdict(tx store.Tx, k store.QueueKey, v hub.ItemVerdict) error {
	items, err := tx.QueueItems(k, v.Seq, 1)
	if err != nil || len(items) == 0 || items[0].Seq != v.Seq || items[0].Kind != hub.ItemMessage {
		return err
	}
	id := items[0].ID
	if err := tx.SetVerdict(id, v.Verdict, v.Reason); err != nil {
		return err
	}
	if k.Direction == hub.ToWorker {
		return nil
	}
	tx.Signal(hub.Signal{Topic: hub.TopicVerdict, Key: string(id)})
	a, ok, err := tx.Attachment(k.Peer, k.Dispatch)
	if err != nil || !ok {
		return err
	}
	a.Capability = capabilityAfter(a, v.Verdict)
	if v.Verdict == hub.VerdictStale { // the home has ended it meanwhile
		if err := fenceHold(tx, k.Peer, k.Dispatch); err != nil {
			return err
		}
	}
	switch {
	case a.Capability == hub.CapSettled:
		return endSession(tx, a, string(hub.CapSettled))
	case v.Verdict == hub.VerdictStale && hub.DispatchState(v.Reason).Final():
		return endSession(tx, a, v.Reason)
	}
	return tx.SaveAttachment(a)
}

func capabilityAfter(a hub.Attachment, v hub.Verdict) hub.CapabilityState {
	switch v {
	case hub.VerdictAccepted, hub.VerdictDuplicate:
		return hub.CapSettled
	case hub.VerdictStale:
		if a.Capability != hub.CapSettled {
			return hub.CapFenced
		}
	case hub.VerdictRejected:
		if a.Capability == hub.CapReported {
			return hub.CapActive
		}
	case hub.VerdictNone:
	}
	return a.Capability
}
