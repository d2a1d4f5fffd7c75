package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// Encode appends the encoding of f to dst. It refuses what Decode would
// refuse: a frame beyond the limits, or text that is not UTF-8.
func Encode(dst []byte, f Frame) ([]byte, error) {
	w := &writer{buf: append(dst, Version, byte(f.Kind())), base: len(dst)}
	f.put(w)
	switch {
	case w.err != nil:
		return dst, w.err
	case w.size()+digestSize > MaxFrame:
		return dst, ErrTooLarge
	}
	return binary.BigEndian.AppendUint32(w.buf, digest(w.buf[w.base:])), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func digest(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// writer keeps the first error.
type writer struct {
	buf  []byte
	base int // where the frame begins
	err  error
}

func (w *writer) size() int { return len(w.buf) - w.base }

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func putList[T any](w *writer, list []T, limit int, one func(*writer, T)) {
	if len(list) > limit {
		w.fail(fmt.Errorf("%w: %d entries, at most %d", ErrMalformed, len(list), limit))
		return
	}
	w.number(int64(len(list)))
	for _, x := range list {
		if w.err != nil {
			return
		}
		one(w, x)
		if w.size() > MaxFrame {
			w.fail(ErrTooLarge)
		}
	}
}

// number writes a number that is never below 0.
func (w *writer) number(v int64) {
	if v < 0 {
		w.fail(fmt.Errorf("%w: negative number", ErrMalformed))
	}
	w.buf = binary.AppendUvarint(w.buf, uint64(v))
}

// step writes a number that is never below 0 as its difference to another one.
func (w *writer) step(v, from int64) {
	if v < 0 {
		w.fail(fmt.Errorf("%w: negative number", ErrMalformed))
		return
	}
	w.buf = binary.AppendVarint(w.buf, v-from)
}

func (w *writer) text(s string) { w.textAfter(0, s) }

// textAfter writes a text with shift added to its length.
func (w *writer) textAfter(shift int, s string) {
	if len(s) > MaxText || !utf8.ValidString(s) {
		w.fail(fmt.Errorf("%w: text of %d bytes", ErrMalformed, len(s)))
		return
	}
	w.buf = binary.AppendUvarint(w.buf, uint64(len(s)+shift))
	w.buf = append(w.buf, s...)
}

func (w *writer) id(prefix, s string) {
	b, ok := hub.ParseID(prefix, s)
	if !ok {
		w.textAfter(1, s)
		return
	}
	w.buf = append(append(w.buf, 0), b[:]...)
}

func (w *writer) dispatch(d hub.DispatchID) { w.id(hub.PrefixDispatch, string(d)) }

// putWord writes one of the words that have a byte, or a text. The flag is added
// to the first byte.
func putWord[T ~string](w *writer, words []T, s T, flag byte) {
	code := byte(slices.Index(words, s) + 1)
	w.buf = append(w.buf, code|flag)
	if code == 0 {
		w.text(string(s))
	}
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
	w.number(f.Feed.Seen)
	putList(w, f.Next, MaxWants, putWant)
	w.number(f.Credit)
	w.number(f.Begin)
	w.number(f.End)
	w.number(f.Swept)
	w.number(f.Acked)
	putList(w, f.Features, MaxFeatures, (*writer).text)
}

func (f Acks) put(w *writer) {
	verdicts := 0
	for _, a := range f.Acks {
		verdicts += len(a.Verdicts)
	}
	if verdicts > MaxVerdicts {
		w.fail(fmt.Errorf("%w: %d verdicts, at most %d", ErrMalformed, verdicts, MaxVerdicts))
	}
	putList(w, f.Acks, MaxAcks, putAck)
}

func putAck(w *writer, a hub.Ack) {
	w.dispatch(a.Dispatch)
	w.number(a.Seq)
	w.text(a.Parked)
	putList(w, a.Verdicts, MaxVerdicts, putVerdict)
}

func putVerdict(w *writer, v hub.ItemVerdict) {
	w.number(v.Seq)
	if v.Reason == "" {
		putWord(w, verdictWords, v.Verdict, 0)
		return
	}
	putWord(w, verdictWords, v.Verdict, flagReason)
	w.text(v.Reason)
}

func (f Wants) put(w *writer) { putList(w, f.Wants, MaxWants, putWant) }
func (f Kept) put(w *writer)  { putList(w, f.From, MaxWants, putWant) }

func putWant(w *writer, x hub.Want) {
	w.dispatch(x.Dispatch)
	w.number(x.Seq)
	w.number(x.Until)
}

func (f Credit) put(w *writer)  { w.number(f.Bytes) }
func (f Ping) put(w *writer)    { w.number(f.IntervalMS); w.number(f.PresenceSeq) }
func (f Pong) put(w *writer)    { w.number(f.IntervalMS) }
func (f Goodbye) put(w *writer) { w.text(f.Code); w.text(f.Text) }

func (f Presence) put(w *writer) {
	w.number(f.Seq)
	putList(w, f.Workers, MaxWorkers, putPresence)
}

func putPresence(w *writer, p hub.Presence) {
	w.dispatch(p.Dispatch)
	w.text(string(p.Process))
	w.number(int64(p.LastOutputAt))
	w.number(int64(p.LastReportAt))
	w.text(p.WaitingFor)
	flags := byte(0)
	if p.Lost {
		flags |= flagLost
	}
	if p.Ended {
		flags |= flagEnded
	}
	w.buf = append(w.buf, flags)
	w.text(string(p.Usage))
}
