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
	seven := store.Cursor{Seq: 7, Known: 2, Pos: 40}
	f.view(func(rx store.Rx) error { return same(f, store.Cursor{})(rx.Cursor(k)) })
	f.update(func(tx store.Tx) error {
		return first(tx.SaveCursor(k, store.Cursor{Seq: 3}), tx.SaveCursor(other, store.Cursor{Seq: 1, Parked: "why"}), tx.SaveCursor(k, seven), tx.SaveCursor(k, seven))
	})
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.SaveCursor(k, store.Cursor{Seq: 6}) })
	f.view(func(rx store.Rx) error {
		return first(same(f, seven)(rx.Cursor(k)), same(f, store.Cursor{Seq: 1, Parked: "why"})(rx.Cursor(other)))
	})
	f.placed(k, seven)
	f.marks(k, other)

	a, b := hub.FeedState{StoreID: "s", Epoch: 1, Position: 9, Items: 3, Seen: 1}, hub.FeedState{StoreID: "s2", Epoch: 5, Position: 4, Seen: 5}
	f.update(func(tx store.Tx) error { return tx.SetFeed("p", hub.ToHome, a) })
	f.view(func(rx store.Rx) error {
		return first(same(f, a)(rx.Feed("p", hub.ToHome)), same(f, hub.FeedState{})(rx.Feed("p", hub.ToWorker)))
	})
	f.update(func(tx store.Tx) error { return tx.SetFeed("p", hub.ToHome, b) })
	f.view(func(rx store.Rx) error { return same(f, b)(rx.Feed("p", hub.ToHome)) })
	b.Epoch, b.Position = 3, 0 // its files were put back; what was seen stays
	f.update(func(tx store.Tx) error { return tx.SetFeed("p", hub.ToHome, b) })
	f.view(func(rx store.Rx) error { return same(f, b)(rx.Feed("p", hub.ToHome)) })
}

// placed looks for cursors by their source.
func (f *fixture) placed(k store.CursorKey, at store.Cursor) {
	f.Helper()
	src := store.SourceKey{Lineage: k.Lineage, StoreID: k.StoreID, Epoch: k.Epoch}
	f.view(func(rx store.Rx) error {
		cs, next, err := rx.CursorsFrom(src, at.Pos-1, 0, 10)
		equal(f, []store.PlacedCursor{{Dispatch: k.Dispatch, Cursor: at}}, cs)
		equal(f, int64(0), next)
		past, _, err2 := rx.CursorsFrom(src, at.Pos, 0, 10)
		equal(f, 0, len(past))
		_, more, err3 := rx.CursorsFrom(src, 0, 0, 1)
		_, end, err4 := rx.CursorsFrom(src, 0, more, 10)
		equal(f, []bool{true, false}, []bool{more != 0, end != 0})
		ps, n, err5 := rx.ParkedCursors(k.Lineage, k.StoreID, k.Epoch+1, 1)
		equal(f, []store.PlacedCursor{{Dispatch: k.Dispatch, Cursor: store.Cursor{Seq: 1, Parked: "why"}}}, ps)
		equal(f, 1, n)
		return first(err, err2, err3, err4, err5)
	})
}

// marks keeps what sequences were, once each.
func (f *fixture) marks(k, other store.CursorKey) {
	f.Helper()
	one, two := store.Mark{ID: "msg_1", Sum: [32]byte{1}}, store.Mark{ID: "msg_2", Sum: [32]byte{2}}
	f.update(func(tx store.Tx) error { return first(tx.PutMark(k, 5, one), tx.PutMark(k, 5, two)) })
	f.view(func(rx store.Rx) error {
		got, ok, err := rx.Mark(k, 5)
		equal(f, []any{one, true}, []any{got, ok})
		_, ok, err2 := rx.Mark(other, 5)
		_, ok2, err3 := rx.Mark(k, 4)
		equal(f, []bool{false, false}, []bool{ok, ok2})
		return first(err, err2, err3, same(f, true)(rx.Marked(k.Dispatch, "msg_1")), same(f, false)(rx.Marked(k.Dispatch, "msg_2")))
	})
}
