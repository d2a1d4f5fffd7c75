package storetest

import (
	"context"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// relayModel compares the queues of one peer with slices under random
// operations: also what is parked, swept, and numbered anew in a new epoch.
func relayModel(f *fixture) {
	rapid.Check(f, func(t *rapid.T) {
		l := &relayLog{f: f, peer: hub.NewPeerID(), of: map[hub.DispatchID]*modelQueue{}}
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": l.enqueue, "enqueue more": l.enqueue, "ack": l.ack, "park": l.park, "sweep": l.sweep, "raise": l.raise, "": l.check,
		})
	})
}

type relayLog struct {
	f    *fixture
	peer hub.PeerID
	all  []hub.Item // what is kept, in the order of the log
	of   map[hub.DispatchID]*modelQueue

	ackedPos, sweptPos int64
}

// modelQueue is one queue; its items are in relayLog.all.
type modelQueue struct {
	last, acked int64
	parked      string
}

func (l *relayLog) key(t *rapid.T) (store.QueueKey, *modelQueue) {
	d := rapid.SampledFrom([]hub.DispatchID{"a", "b", "c"}).Draw(t, "dispatch")
	if l.of[d] == nil {
		l.of[d] = &modelQueue{}
	}
	return store.QueueKey{Peer: l.peer, Dispatch: d, Direction: hub.ToHome}, l.of[d]
}

func (l *relayLog) update(t *rapid.T, fn func(store.Tx) error) {
	if err := l.f.s.Update(context.Background(), store.Import, fn); err != nil {
		t.Fatal(err)
	}
}

// items are the kept ones that fit.
func (l *relayLog) items(fit func(hub.Item) bool) (out []hub.Item) {
	for _, it := range l.all {
		if fit(it) {
			out = append(out, it)
		}
	}
	return out
}

func (l *relayLog) waits(it hub.Item) bool { return it.Seq > l.of[it.Dispatch].acked }

func (l *relayLog) enqueue(t *rapid.T) {
	k, q := l.key(t)
	payload := rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "payload")
	var it hub.Item
	l.update(t, func(tx store.Tx) (err error) {
		it, err = tx.Enqueue(k, hub.Item{Kind: hub.ItemMessage, Payload: payload})
		return err
	})
	if q.last++; it.Seq != q.last || len(l.all) > 0 && it.Pos <= l.all[len(l.all)-1].Pos {
		t.Fatalf("item %d at %d, want %d", it.Seq, it.Pos, q.last)
	}
	l.all = append(l.all, it)
}

func (l *relayLog) ack(t *rapid.T) {
	k, q := l.key(t)
	seq := rapid.Int64Range(0, q.last+1).Draw(t, "seq")
	err := l.f.s.Update(context.Background(), store.Import, func(tx store.Tx) error { return tx.AckQueue(k, seq) })
	if (err != nil) != (seq > q.last) {
		t.Fatalf("ack %d of %d: %v", seq, q.last, err)
	}
	if err != nil || seq <= q.acked {
		return
	}
	q.acked = seq
	for _, it := range l.items(func(it hub.Item) bool { return it.Dispatch == k.Dispatch && it.Seq == seq }) {
		l.ackedPos = max(l.ackedPos, it.Pos)
	}
}

func (l *relayLog) park(t *rapid.T) {
	k, q := l.key(t)
	if q.last == 0 {
		t.Skip("there is no queue")
	}
	q.parked = rapid.SampledFrom([]string{"", "one reason", "another"}).Draw(t, "reason")
	l.update(t, func(tx store.Tx) error { return tx.ParkQueue(k, q.parked) })
}

func (l *relayLog) sweep(t *rapid.T) {
	k, q := l.key(t)
	upto, limit := rapid.Int64Range(0, q.last+1).Draw(t, "upto"), rapid.IntRange(1, 5).Draw(t, "limit")
	gone := 0
	l.all = l.items(func(it hub.Item) bool {
		newest := it.Pos == l.all[len(l.all)-1].Pos
		if it.Dispatch != k.Dispatch || it.Seq > min(upto, q.acked) || gone == limit || newest {
			return true
		}
		gone++
		l.sweptPos = max(l.sweptPos, it.Pos)
		return false
	})
	var n int
	l.update(t, func(tx store.Tx) (err error) { n, err = tx.SweepQueue(k, upto, limit); return err })
	if n != gone {
		t.Fatalf("%d swept, want %d", n, gone)
	}
}

func (l *relayLog) raise(t *rapid.T) {
	var epoch, was int64
	l.update(t, func(tx store.Tx) (err error) {
		if _, was, err = tx.StoreIdentity(); err != nil {
			return err
		}
		epoch, _, err = tx.RaiseEpoch()
		return err
	})
	if epoch != was+1 {
		t.Fatalf("epoch %d after %d", epoch, was)
	}
	l.all, l.ackedPos, l.sweptPos = l.items(l.waits), 0, 0
	for i, it := range l.all {
		l.all[i].Seq -= l.of[it.Dispatch].acked
	}
	for _, q := range l.of {
		*q = modelQueue{last: q.last - q.acked}
	}
}

func (l *relayLog) check(t *rapid.T) {
	k, q := l.key(t)
	pos, limit := int64(0), rapid.IntRange(0, 120).Draw(t, "max")
	if len(l.all) > 0 {
		pos = rapid.SampledFrom(l.all).Draw(t, "pos").Pos
	}
	until := pos + rapid.Int64Range(0, 10).Draw(t, "until")
	mine := l.items(func(it hub.Item) bool { return it.Dispatch == k.Dispatch })
	open := l.items(func(it hub.Item) bool { return it.Pos > pos && l.waits(it) })
	again := l.items(func(it hub.Item) bool { return it.Pos > pos && it.Pos <= until && !l.waits(it) })
	want := store.Queue{LastSeq: q.last, AckedSeq: q.acked, Parked: q.parked}
	for _, it := range mine {
		if l.waits(it) {
			want.PendingItems++
			want.PendingBytes += int64(len(it.Payload))
		}
	}
	err := l.f.s.View(context.Background(), func(rx store.Rx) error {
		gotQ, err1 := rx.Queue(k)
		gotMine, err2 := rx.QueueItems(k, 1, 1<<20)
		gotOpen, err3 := rx.ItemsAfter(l.peer, hub.ToHome, pos, limit)
		gotAgain, err4 := rx.ItemsBetween(l.peer, hub.ToHome, pos, until, limit)
		if d := cmp.Diff([]any{want, mine, upTo(open, limit), upTo(again, limit)}, []any{gotQ, gotMine, gotOpen, gotAgain}); d != "" {
			t.Fatal(d)
		}
		return first(err1, err2, err3, err4, l.checkLog(t, rx))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkLog compares what is counted of the whole log.
func (l *relayLog) checkLog(t *rapid.T, rx store.Rx) error {
	var items, parked int
	var bytes, acked int64
	for _, it := range l.items(func(it hub.Item) bool { return l.waits(it) && l.of[it.Dispatch].parked == "" }) {
		items++
		bytes += int64(len(it.Payload))
	}
	for _, q := range l.of {
		acked += q.acked
		if q.parked != "" {
			parked++
		}
	}
	gotItems, gotBytes, err1 := rx.Backlog(l.peer, hub.ToHome)
	log, err2 := rx.Log(l.peer, hub.ToHome)
	qs, n, err3 := rx.ParkedQueues(l.peer, 2)
	got := []any{gotItems, gotBytes, n, len(qs), log.Acked, log.Items, log.Swept}
	if d := cmp.Diff([]any{items, bytes, parked, min(parked, 2), l.ackedPos, acked, l.sweptPos}, got); d != "" {
		t.Fatal(d)
	}
	if len(l.all) > 0 && log.End != l.all[len(l.all)-1].Pos {
		t.Fatalf("the log ends at %d, want %d", log.End, l.all[len(l.all)-1].Pos)
	}
	return first(err1, err2, err3)
}

func upTo(items []hub.Item, max int) []hub.Item {
	sum := 0
	for i, it := range items {
		if sum += len(it.Payload); sum > max && i > 0 {
			return items[:i]
		}
	}
	return items
}
