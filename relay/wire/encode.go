package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// Encode appends the encoding of f to dst. It refuses what Decode would
// refuse: a frame beyond the limits, or text that is not UTF-8.
func Encode(dst []byte, f Frame) ([]byte, error) {
	w := &writer{buf: append(dst, Version, byte(f.Kind()))}
	f.put(w)
	switch {
	case w.err != nil:
		return dst, w.err
	case len(w.buf)-len(dst) > MaxFrame:
		return dst, ErrTooLarge
	}
	return w.buf, nil
}

type writer struct {
	buf []byte
	err error
}

// number writes a number that is never below 0.
func (w *writer) number(v int64) {
	if v < 0 {
		w.err = fmt.Errorf("%w: negative number", ErrMalformed)
	}
	w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(v))
}

func (w *writer) text(s string) {
	if len(s) > MaxText || !utf8.ValidString(s) {
		w.err = fmt.Errorf("%w: text of %d bytes", ErrMalformed, len(s))
		return
	}
	w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *writer) count(n, limit int) {
	if n > limit {
		w.err = fmt.Errorf("%w: %d entries, at most %d", ErrMalformed, n, limit)
		return
	}
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(n))
}

func (f Hello) put(w *writer) {
	w.text(f.StoreID)
	w.number(f.Epoch)
	w.text(f.Nonce)
	w.text(f.Contract)
	w.text(f.Feed.StoreID)
	w.number(f.Feed.Epoch)
	w.number(f.Feed.Position)
	w.number(f.Feed.Items)
	putWants(w, f.Next)
	w.number(f.Credit)
	w.number(f.Begin)
	w.number(f.End)
	w.number(f.Swept)
	w.number(f.Acked)
	w.count(len(f.Features), MaxFeatures)
	for _, x := range f.Features {
		w.text(x)
	}
}

func (f Items) put(w *writer) {
	w.count(len(f.Items), MaxItems)
	for _, it := range f.Items {
		if w.err != nil {
			return
		}
		putItem(w, it)
	}
}

func putItem(w *writer, it hub.Item) {
	w.number(it.Pos)
	w.number(it.Seq)
	w.text(string(it.Dispatch))
	w.text(string(it.ID))
	w.text(string(it.Kind))
	if len(it.Payload) > MaxFrame {
		w.err = ErrTooLarge
		return
	}
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(it.Payload)))
	w.buf = append(w.buf, it.Payload...)
	sum := sha256.Sum256(it.Payload)
	w.buf = append(w.buf, sum[:]...)
}

func (f Acks) put(w *writer) {
	w.count(len(f.Acks), MaxAcks)
	for _, a := range f.Acks {
		w.text(string(a.Dispatch))
		w.number(a.Seq)
		w.text(a.Parked)
		w.count(len(a.Verdicts), MaxVerdicts)
		for _, v := range a.Verdicts {
			w.number(v.Seq)
			w.text(string(v.Verdict))
			w.text(v.Reason)
		}
	}
}

func (f Wants) put(w *writer) { putWants(w, f.Wants) }
func (f Kept) put(w *writer)  { putWants(w, f.From) }

func putWants(w *writer, wants []hub.Want) {
	w.count(len(wants), MaxWants)
	for _, x := range wants {
		w.text(string(x.Dispatch))
		w.number(x.Seq)
		w.number(x.Until)
	}
}

func (f Credit) put(w *writer)  { w.number(f.Bytes) }
func (f Ping) put(w *writer)    { w.number(f.IntervalMS); w.number(f.PresenceSeq) }
func (f Pong) put(w *writer)    { w.number(f.IntervalMS) }
func (f Goodbye) put(w *writer) { w.text(f.Code); w.text(f.Text) }

func (f Presence) put(w *writer) {
	w.number(f.Seq)
	w.count(len(f.Workers), MaxWorkers)
	for _, p := range f.Workers {
		putPresence(w, p)
	}
}

// The flags of a presence.
const (
	flagLost = 1 << iota
	flagEnded
	flagsEnd
)

func putPresence(w *writer, p hub.Presence) {
	w.text(string(p.Dispatch))
	w.text(string(p.Process))
	w.number(int64(p.LastOutputAt))
	w.number(int64(p.LastReportAt))
	w.text(p.WaitingFor)
	flags := int64(0)
	if p.Lost {
		flags |= flagLost
	}
	if p.Ended {
		flags |= flagEnded
	}
	w.number(flags)
	w.text(string(p.Usage))
}
