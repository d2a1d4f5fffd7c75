package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// Decode reads one frame. The result shares no memory with raw.
func Decode(raw []byte) (Frame, error) {
	body := len(raw) - digestSize
	switch {
	case len(raw) > MaxFrame:
		return nil, ErrTooLarge
	case body < headerSize:
		return nil, ErrMalformed
	case raw[0] != Version:
		return nil, fmt.Errorf("%w: %d", ErrVersion, raw[0])
	case digest(raw[:body]) != binary.BigEndian.Uint32(raw[body:]):
		return nil, ErrDigest
	}
	r := &reader{rest: raw[headerSize:body]}
	f, err := r.frame(Kind(raw[1]))
	switch {
	case err != nil:
		return nil, err
	case r.err != nil:
		return nil, r.err
	case len(r.rest) != 0:
		return nil, fmt.Errorf("%w: %d trailing bytes", ErrMalformed, len(r.rest))
	}
	return f, nil
}

// IsPing reports whether raw is a ping, as far as its header says.
func IsPing(raw []byte) bool {
	return len(raw) >= headerSize && raw[0] == Version && Kind(raw[1]) == KindPing
}

// reader yields zero values once it has failed.
type reader struct {
	rest     []byte
	verdicts int // read so far
	err      error
}

func (r *reader) frame(k Kind) (Frame, error) {
	switch k {
	case KindHello:
		return r.hello(), nil
	case KindItems:
		return Items{r.items()}, nil
	case KindAcks:
		return Acks{list(r, ackLeast, MaxAcks, (*reader).ack)}, nil
	case KindWants:
		return Wants{list(r, wantLeast, MaxWants, (*reader).want)}, nil
	case KindKept:
		return Kept{list(r, wantLeast, MaxWants, (*reader).want)}, nil
	case KindCredit:
		return Credit{r.number()}, nil
	case KindPing:
		return Ping{r.number(), r.number()}, nil
	case KindPong:
		return Pong{r.number()}, nil
	case KindGoodbye:
		return Goodbye{Code: r.text(), Text: r.text()}, nil
	case KindPresence:
		return Presence{r.number(), list(r, workerLeast, MaxWorkers, (*reader).presence)}, nil
	}
	return nil, fmt.Errorf("%w: %d", ErrKind, k)
}

// Least sizes of list entries; with the limits of the counts they bound what a
// count can make Decode allot.
const (
	itemLeast    = 6
	wantLeast    = 3
	featureLeast = 1
	ackLeast     = 4
	verdictLeast = 2
	workerLeast  = 7
)

func list[T any](r *reader, least, limit int, one func(*reader) T) []T {
	n := r.number()
	if n > int64(min(limit, len(r.rest)/least)) {
		r.fail("count")
	}
	if r.err != nil || n == 0 {
		return nil
	}
	out := make([]T, 0, n)
	for range n {
		out = append(out, one(r))
		if r.err != nil {
			return nil
		}
	}
	return out
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMalformed, what)
	}
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n > len(r.rest) {
		r.fail("cut short")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// varint reads any number in its shortest form.
func (r *reader) varint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if r.err != nil || n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.fail("number")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// number reads what is never below 0: a sequence, a position, a size.
func (r *reader) number() int64 {
	v := int64(r.varint())
	if v < 0 {
		r.fail("negative number")
		return 0
	}
	return v
}

// step reads such a number as its difference to another one.
func (r *reader) step(from int64) int64 {
	u := r.varint()
	v := from + (int64(u>>1) ^ -int64(u&1))
	if v < 0 {
		r.fail("negative number")
		return 0
	}
	return v
}

func (r *reader) text() string { return r.textOf(r.number()) }

// textOf reads a text of n bytes.
func (r *reader) textOf(n int64) string {
	if n > MaxText {
		r.fail("text too long")
		return ""
	}
	s := string(r.take(int(n)))
	if !utf8.ValidString(s) {
		r.fail("text is not UTF-8")
	}
	return s
}

func (r *reader) id(prefix string) string {
	n := r.number()
	if n == 0 {
		if b := r.take(16); b != nil {
			return hub.FormatID(prefix, [16]byte(b))
		}
		return ""
	}
	s := r.textOf(n - 1)
	if hub.ValidID(prefix, s) {
		r.fail("an id as a text")
	}
	return s
}

func (r *reader) dispatch() hub.DispatchID { return hub.DispatchID(r.id(hub.PrefixDispatch)) }

// word reads the rest of what putWord has written, whose first byte, without the
// flag, is code.
func word[T ~string](r *reader, words []T, code byte) T {
	switch {
	case int(code) > len(words):
		r.fail("word")
		return ""
	case code > 0:
		return words[code-1]
	}
	s := T(r.text())
	if slices.Contains(words, s) {
		r.fail("a known word as a text")
	}
	return s
}

func (r *reader) hello() Hello {
	return Hello{
		StoreID: r.text(), Epoch: r.number(), Nonce: r.text(), Contract: r.text(),
		Feed:   hub.FeedState{StoreID: r.text(), Epoch: r.number(), Position: r.number(), Items: r.number(), Seen: r.number()},
		Next:   list(r, wantLeast, MaxWants, (*reader).want),
		Credit: r.number(),
		Begin:  r.number(), End: r.number(), Swept: r.number(), Acked: r.number(),
		Features: list(r, featureLeast, MaxFeatures, (*reader).text),
	}
}

func (r *reader) ack() hub.Ack {
	a := hub.Ack{Dispatch: r.dispatch(), Seq: r.number(), Parked: r.text()}
	a.Verdicts = list(r, verdictLeast, MaxVerdicts-r.verdicts, (*reader).verdict)
	r.verdicts += len(a.Verdicts)
	return a
}

func (r *reader) verdict() hub.ItemVerdict {
	v := hub.ItemVerdict{Seq: r.number()}
	code := r.byte()
	v.Verdict = word(r, verdictWords, code&^flagReason)
	if code&flagReason == 0 {
		return v
	}
	if v.Reason = r.text(); v.Reason == "" {
		r.fail("a reason of no bytes")
	}
	return v
}

func (r *reader) want() hub.Want {
	return hub.Want{Dispatch: r.dispatch(), Seq: r.number(), Until: r.number()}
}

func (r *reader) presence() hub.Presence {
	p := hub.Presence{
		Dispatch: r.dispatch(), Process: hub.Liveness(r.text()),
		LastOutputAt: hub.Micros(r.number()), LastReportAt: hub.Micros(r.number()), WaitingFor: r.text(),
	}
	flags := r.byte()
	if flags >= flagsEnd {
		r.fail("flags of a presence")
	}
	p.Lost, p.Ended = flags&flagLost != 0, flags&flagEnded != 0
	if usage := r.text(); usage != "" {
		p.Usage = []byte(usage)
	}
	return p
}
