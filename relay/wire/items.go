package wire

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// lanes are the Dispatches that the items of a frame have named so far, in that
// order, each with the sequence of its last item there.
type lanes struct {
	at  map[hub.DispatchID]int
	of  []lane
	pos int64 // of the last item
}

type lane struct {
	dispatch hub.DispatchID
	seq      int64
}

func newLanes() *lanes { return &lanes{at: map[hub.DispatchID]int{}} }

func (l *lanes) open(d hub.DispatchID) *lane {
	l.at[d] = len(l.of)
	l.of = append(l.of, lane{dispatch: d})
	return &l.of[len(l.of)-1]
}

func (f Items) put(w *writer) {
	most := digestSize
	for i := 0; i < len(f.Items) && most < MaxFrame; i++ {
		most += ItemSize(f.Items[i])
	}
	w.buf = slices.Grow(w.buf, min(most, MaxFrame))
	putList(w, f.Items, MaxItems, newLanes().put)
}

func (l *lanes) put(w *writer, it hub.Item) {
	on := l.name(w, it.Dispatch)
	w.step(it.Pos, l.pos)
	w.step(it.Seq, on.seq)
	l.pos, on.seq = it.Pos, it.Seq
	putWord(w, kindWords, it.Kind, 0)
	w.id(hub.PrefixMessage, string(it.ID))
	if len(it.Payload) > MaxFrame {
		w.fail(ErrTooLarge)
		return
	}
	w.buf = binary.AppendUvarint(w.buf, uint64(len(it.Payload)))
	w.buf = append(w.buf, it.Payload...)
}

func (l *lanes) name(w *writer, d hub.DispatchID) *lane {
	if i, ok := l.at[d]; ok {
		w.number(int64(i + 1))
		return &l.of[i]
	}
	w.number(0)
	w.dispatch(d)
	return l.open(d)
}

func (r *reader) items() []hub.Item {
	l := newLanes()
	return list(r, itemLeast, MaxItems, l.take)
}

func (l *lanes) take(r *reader) hub.Item {
	on := l.named(r)
	l.pos = r.step(l.pos)
	on.seq = r.step(on.seq)
	it := hub.Item{Dispatch: on.dispatch, Pos: l.pos, Seq: on.seq}
	it.Kind = word(r, kindWords, r.byte())
	it.ID = hub.MessageID(r.id(hub.PrefixMessage))
	it.Payload = r.payload()
	return it
}

func (l *lanes) named(r *reader) *lane {
	i := r.number()
	switch {
	case i > int64(len(l.of)):
		r.fail("place of a Dispatch")
		return &lane{}
	case i > 0:
		return &l.of[i-1]
	}
	d := r.dispatch()
	if _, twice := l.at[d]; twice {
		r.fail("a Dispatch is named twice")
	}
	return l.open(d)
}

// payload is never nil.
func (r *reader) payload() []byte {
	n := r.number()
	if n > int64(len(r.rest)) {
		r.fail("payload length")
		return nil
	}
	if n == 0 {
		return []byte{}
	}
	return bytes.Clone(r.take(int(n)))
}
