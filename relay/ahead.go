package relay

import (
	"cmp"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// What of one Dispatch is kept while an item before it is missing, and of how
// many Dispatches. What does not fit is dropped and comes again.
const (
	aheadItems = 64
	aheadBytes = 1 << 20
	aheadOf    = wire.MaxWants
)

// ahead keeps items that came before the one they follow. Their credit is not
// given back, and they take half of the window at most, so that the missing ones
// have room. It is the applier's.
type ahead struct {
	room  int64 // bytes for all of it
	bytes int64
	of    map[hub.DispatchID]*waiting
}

// waiting is one Dispatch's part: items in order, all behind next. last is the
// highest sequence that came, kept or dropped.
type waiting struct {
	next, last int64
	items      []hub.Item
	bytes      int64
}

func newAhead(window int64) *ahead {
	return &ahead{room: window / 2, of: map[hub.DispatchID]*waiting{}}
}

func itemSize(it hub.Item) int64 { return int64(wire.ItemSize(it)) }

// join adds what was kept behind the items to them, in the order of the log. The
// importer leaves again what still lies behind a gap.
func (a *ahead) join(items []hub.Item) []hub.Item {
	joined := map[hub.DispatchID]bool{}
	for _, it := range items {
		w, ok := a.of[it.Dispatch]
		if ok && it.Seq == w.next && !joined[it.Dispatch] {
			joined[it.Dispatch] = true
			items = append(items[:len(items):len(items)], a.take(w)...)
		}
	}
	byPos := func(x, y hub.Item) int { return cmp.Compare(x.Pos, y.Pos) }
	if !slices.IsSortedFunc(items, byPos) {
		items = slices.Clone(items)
		slices.SortStableFunc(items, byPos)
	}
	return items
}

func (a *ahead) take(w *waiting) []hub.Item {
	items := w.items
	a.bytes -= w.bytes
	w.items, w.bytes = nil, 0
	return items
}

// settle keeps the items that an import left behind a gap, drops what is done or
// parked, and says what is missing: never what is kept.
func (a *ahead) settle(items []hub.Item, acks []hub.Ack, wants []hub.Want) []hub.Want {
	gap := make(map[hub.DispatchID]bool, len(wants))
	for _, w := range wants {
		gap[w.Dispatch] = true
	}
	var out []hub.Want
	at := make(map[hub.DispatchID]int64, len(acks))
	for _, k := range acks {
		switch w, ok := a.of[k.Dispatch]; {
		case !ok && !gap[k.Dispatch]:
			continue
		case k.Parked != "":
			a.forget(k.Dispatch)
			continue
		case !ok && len(a.of) >= aheadOf:
			out = append(out, hub.Want{Dispatch: k.Dispatch, Seq: k.Seq + 1})
			continue
		case !ok:
			a.of[k.Dispatch] = &waiting{}
		case w.next <= k.Seq:
			a.passed(w, k.Seq)
		}
		a.of[k.Dispatch].next = k.Seq + 1
		at[k.Dispatch] = k.Seq
	}
	for _, it := range items {
		if seq, ok := at[it.Dispatch]; ok && it.Seq > seq+1 {
			a.keep(a.of[it.Dispatch], it)
		}
	}
	for d := range at {
		if w, open := a.missing(d); open {
			out = append(out, w)
		}
	}
	return out
}

// missing is what comes next of a Dispatch, up to what is kept of it.
func (a *ahead) missing(d hub.DispatchID) (hub.Want, bool) {
	w := a.of[d]
	until := w.last
	if len(w.items) > 0 {
		until = w.items[0].Seq - 1
	}
	if until < w.next {
		a.forget(d)
		return hub.Want{}, false
	}
	return hub.Want{Dispatch: d, Seq: w.next, Until: until}, true
}

// keep puts an item in its place; what is over the bounds goes, the furthest
// first.
func (a *ahead) keep(w *waiting, it hub.Item) {
	w.last = max(w.last, it.Seq)
	i, have := slices.BinarySearchFunc(w.items, it.Seq, func(x hub.Item, seq int64) int { return cmp.Compare(x.Seq, seq) })
	if have {
		return
	}
	w.items = slices.Insert(w.items, i, it)
	w.bytes += itemSize(it)
	a.bytes += itemSize(it)
	for n := len(w.items); n > 0 && (n > aheadItems || w.bytes > aheadBytes || a.bytes > a.room); n = len(w.items) {
		w.bytes -= itemSize(w.items[n-1])
		a.bytes -= itemSize(w.items[n-1])
		w.items = w.items[:n-1]
	}
}

// passed drops what a cursor has passed.
func (a *ahead) passed(w *waiting, seq int64) {
	n := 0
	for ; n < len(w.items) && w.items[n].Seq <= seq; n++ {
		w.bytes -= itemSize(w.items[n])
		a.bytes -= itemSize(w.items[n])
	}
	w.items = w.items[n:]
}

func (a *ahead) forget(d hub.DispatchID) {
	if w, ok := a.of[d]; ok {
		a.bytes -= w.bytes
		delete(a.of, d)
	}
}

// release takes out what is kept of Dispatches of which the missing items will
// not come: their cursors have been set to the acks.
func (a *ahead) release(acks []hub.Ack) (items []hub.Item) {
	for _, k := range acks {
		w, ok := a.of[k.Dispatch]
		if !ok {
			continue
		}
		w.next = k.Seq + 1
		if k.Parked == "" && len(w.items) > 0 && w.items[0].Seq <= w.next {
			items = append(items, a.take(w)...)
		}
	}
	return items
}

// after says, once queues have gone on behind lost items, which are parked instead
// and what comes next of the others that nothing is kept of.
func (a *ahead) after(acks []hub.Ack) (parks []hub.Ack, wants []hub.Want) {
	for _, k := range acks {
		w, ok := a.of[k.Dispatch]
		switch {
		case k.Parked != "":
			a.forget(k.Dispatch)
			parks = append(parks, k)
		case !ok:
			wants = append(wants, hub.Want{Dispatch: k.Dispatch, Seq: k.Seq + 1})
		case w.last > k.Seq:
			if next, open := a.missing(k.Dispatch); open {
				wants = append(wants, next)
			}
		default:
			a.forget(k.Dispatch)
		}
	}
	return parks, wants
}
