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
		p, err := activePeer(tx, peer)
		if err != nil {
			return err
		}
		im := importer{tx: tx, peer: p, dir: dir, feed: feed, seen: map[hub.DispatchID]*hub.Ack{}, wants: slices.Clone(wants)}
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

type importer struct {
	tx   store.Tx
	peer hub.Peer
	dir  hub.Direction
	feed hub.FeedState

	seen  map[hub.DispatchID]*hub.Ack
	order []hub.DispatchID
	wants []hub.Want
	gap   int64 // position of the first item that is neither imported nor parked
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
	for _, d := range im.order {
		out.Acks = append(out.Acks, *im.seen[d])
	}
	return out, im.advanceFeed(feed)
}

// advanceFeed never goes back within one epoch: items sent again for a gap
// have positions behind us.
func (im *importer) advanceFeed(feed hub.FeedState) error {
	old, err := im.tx.Feed(im.peer.ID, im.dir)
	if err != nil {
		return err
	}
	if old.StoreID == feed.StoreID && old.Epoch == feed.Epoch && old.Position >= feed.Position {
		return nil
	}
	return im.tx.SetFeed(im.peer.ID, im.dir, feed)
}

func (im *importer) one(it hub.Item) error {
	key := store.CursorKey{Lineage: im.peer.Lineage, StoreID: im.feed.StoreID, Epoch: im.feed.Epoch, Dispatch: it.Dispatch}
	cur, err := im.tx.Cursor(key)
	if err != nil {
		return err
	}
	ack := im.ack(it.Dispatch, cur)
	if it.Seq <= cur {
		return im.again(it, ack)
	}
	if ack.Parked != "" {
		return nil
	}
	if it.Seq > cur+1 {
		im.missing(it, cur)
		return nil
	}
	arr, err := im.arrive(it)
	if refused, ok := errors.AsType[refusal](err); ok {
		ack.Parked = refused.reason
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
		ack.Verdicts = append(ack.Verdicts, *verdict)
	}
	ack.Seq = it.Seq
	return im.tx.Advance(key, it.Seq)
}

// again says the verdict on a report once more: its ack may have been lost.
func (im *importer) again(it hub.Item, ack *hub.Ack) error {
	if it.Kind != hub.ItemMessage {
		return nil
	}
	v, err := verdictAgain(im.tx, it)
	if v != nil {
		ack.Verdicts = append(ack.Verdicts, *v)
	}
	return err
}

func (im *importer) arrive(it hub.Item) (arrival, error) {
	if im.dir == hub.ToHome {
		return arriveHome(im.tx, im.peer, im.feed, it)
	}
	return arriveOwner(im.tx, im.peer, it)
}

func (im *importer) ack(d hub.DispatchID, cur int64) *hub.Ack {
	if a, ok := im.seen[d]; ok {
		return a
	}
	a := &hub.Ack{Dispatch: d, Seq: cur}
	im.seen[d] = a
	im.order = append(im.order, d)
	return a
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
	if err != nil {
		return err
	}
	if err := tx.AckQueue(k, ack.Seq); err != nil {
		return err
	}
	if q.Parked != ack.Parked {
		if err := tx.ParkQueue(k, ack.Parked); err != nil {
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
