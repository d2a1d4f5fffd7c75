package storetest

import (
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

var queueA = store.QueueKey{Peer: "p", Dispatch: "a", Direction: hub.ToHome}

func (f *fixture) enqueue(k store.QueueKey, payload string) (it hub.Item) {
	f.Helper()
	f.update(func(tx store.Tx) (err error) {
		it, err = tx.Enqueue(k, hub.Item{Kind: hub.ItemMessage, Payload: []byte(payload)})
		return err
	})
	return it
}

func queues(f *fixture) {
	f.view(func(rx store.Rx) error { return same(f, store.Queue{})(rx.Queue(queueA)) })
	back := store.QueueKey{Peer: "p", Dispatch: "a", Direction: hub.ToWorker}
	one, other, two := f.enqueue(queueA, "123"), f.enqueue(back, "x"), f.enqueue(queueA, "12345")
	equal(f, []int64{1, 1, 2}, []int64{one.Seq, other.Seq, two.Seq})
	if one.ID == "" || one.ID == two.ID || !(one.Pos < other.Pos && other.Pos < two.Pos) || one.Dispatch != "a" {
		f.Errorf("items %+v %+v %+v", one, other, two)
	}
	equal(f, []hub.Signal{{Topic: hub.TopicRelay, Key: "p"}, {Topic: hub.TopicRelay, Key: "p"}, {Topic: hub.TopicRelay, Key: "p"}}, f.published())
	f.queueIs(store.Queue{LastSeq: 2, PendingItems: 2, PendingBytes: 8})
	f.refused(hub.CodeInvalidArgument, func(tx store.Tx) error { return tx.AckQueue(queueA, 3) })
	f.update(func(tx store.Tx) error { return tx.AckQueue(queueA, 1) })
	f.queueIs(store.Queue{LastSeq: 2, AckedSeq: 1, PendingItems: 1, PendingBytes: 5})
	f.update(func(tx store.Tx) error { return first(tx.AckQueue(queueA, 0), tx.AckQueue(queueA, 1)) })
	f.queueIs(store.Queue{LastSeq: 2, AckedSeq: 1, PendingItems: 1, PendingBytes: 5})
	f.update(func(tx store.Tx) error { return first(tx.AckQueue(queueA, 2), tx.ParkQueue(queueA, "poisoned")) })
	f.queueIs(store.Queue{LastSeq: 2, AckedSeq: 2, Parked: "poisoned"})
	f.update(func(tx store.Tx) error { return tx.ParkQueue(queueA, "") })
	f.queueIs(store.Queue{LastSeq: 2, AckedSeq: 2})
	none := store.QueueKey{Peer: "p", Dispatch: "none", Direction: hub.ToHome}
	f.update(func(tx store.Tx) error { return tx.AckQueue(none, 0) })
	f.refused(hub.CodeInvalidArgument, func(tx store.Tx) error { return tx.AckQueue(none, 1) })
	f.refused(hub.CodeDispatchNotFound, func(tx store.Tx) error { return tx.ParkQueue(none, "x") })
}

func (f *fixture) queueIs(want store.Queue) {
	f.Helper()
	f.view(func(rx store.Rx) error { return same(f, want)(rx.Queue(queueA)) })
}

func queueReads(f *fixture) {
	body := strings.Repeat("x", 100)
	b := store.QueueKey{Peer: "p", Dispatch: "b", Direction: hub.ToHome}
	a1, b1, a2, a3 := f.enqueue(queueA, body), f.enqueue(b, body), f.enqueue(queueA, body), f.enqueue(queueA, body)
	f.enqueue(store.QueueKey{Peer: "p", Dispatch: "a", Direction: hub.ToWorker}, body)
	f.enqueue(store.QueueKey{Peer: "q", Dispatch: "a", Direction: hub.ToHome}, body)
	f.view(func(rx store.Rx) error {
		return first(
			same(f, []hub.Item{a1, b1, a2, a3})(rx.ItemsAfter("p", hub.ToHome, 0, 1<<20)),
			same(f, []hub.Item{a1, b1})(rx.ItemsAfter("p", hub.ToHome, 0, 299)),
			same(f, []hub.Item{a1})(rx.ItemsAfter("p", hub.ToHome, 0, 0)),
			same(f, []hub.Item{a2, a3})(rx.ItemsAfter("p", hub.ToHome, b1.Pos, 1<<20)),
			same(f, []hub.Item(nil))(rx.ItemsAfter("p", hub.ToHome, a3.Pos, 1<<20)),
			same(f, []hub.Item(nil))(rx.ItemsAfter("none", hub.ToHome, 0, 1<<20)),
		)
	})
	f.update(func(tx store.Tx) error { return tx.AckQueue(queueA, 2) })
	f.view(func(rx store.Rx) error {
		return first(
			same(f, []hub.Item{b1, a3})(rx.ItemsAfter("p", hub.ToHome, 0, 1<<20)),
			same(f, []hub.Item{a1, a2, a3})(rx.QueueItems(queueA, 1, 1<<20)),
			same(f, []hub.Item{a2, a3})(rx.QueueItems(queueA, 2, 200)),
			same(f, []hub.Item{a2})(rx.QueueItems(queueA, 2, 1)),
			same(f, []hub.Item(nil))(rx.QueueItems(queueA, 4, 1<<20)),
		)
	})
	kept := hub.Item{ID: "msg_kept", Kind: hub.ItemFence, Dispatch: "ignored"}
	f.update(func(tx store.Tx) (err error) { kept, err = tx.Enqueue(queueA, kept); return err })
	equal(f, hub.Item{Pos: kept.Pos, Dispatch: "a", Seq: 4, ID: "msg_kept", Kind: hub.ItemFence}, kept)
	f.view(func(rx store.Rx) error { return same(f, []hub.Item{kept})(rx.QueueItems(queueA, 4, 1<<20)) })
}

func cursors(f *fixture) {
	k := store.CursorKey{Lineage: "l", StoreID: "s", Epoch: 1, Dispatch: "d"}
	other := k
	other.Epoch = 2
	f.view(func(rx store.Rx) error { return same(f, int64(0))(rx.Cursor(k)) })
	f.update(func(tx store.Tx) error {
		return first(tx.Advance(k, 3), tx.Advance(other, 1), tx.Advance(k, 7), tx.Advance(k, 7))
	})
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.Advance(k, 6) })
	f.view(func(rx store.Rx) error {
		return first(same(f, int64(7))(rx.Cursor(k)), same(f, int64(1))(rx.Cursor(other)))
	})

	a, b := hub.FeedState{StoreID: "s", Epoch: 1, Position: 9}, hub.FeedState{StoreID: "s2", Epoch: 2, Position: 4}
	f.update(func(tx store.Tx) error { return tx.SetFeed("p", hub.ToHome, a) })
	f.view(func(rx store.Rx) error {
		return first(same(f, a)(rx.Feed("p", hub.ToHome)), same(f, hub.FeedState{})(rx.Feed("p", hub.ToWorker)))
	})
	f.update(func(tx store.Tx) error { return tx.SetFeed("p", hub.ToHome, b) })
	f.view(func(rx store.Rx) error { return same(f, b)(rx.Feed("p", hub.ToHome)) })
}
