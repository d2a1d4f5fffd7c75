package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// Decode reads one frame. The result shares no memory with raw.
func Decode(raw []byte) (Frame, error) {
	switch {
	case len(raw) > MaxFrame:
		return nil, ErrTooLarge
	case len(raw) < headerSize:
		return nil, ErrMalformed
	case raw[0] != Version:
		return nil, fmt.Errorf("%w: %d", ErrVersion, raw[0])
	}
	r := &reader{rest: raw[headerSize:]}
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
	rest []byte
	err  error
}

func (r *reader) frame(k Kind) (Frame, error) {
	switch k {
	case KindHello:
		return r.hello(), nil
	case KindItems:
		return Items{list(r, itemFixed, MaxItems, (*reader).item)}, nil
	case KindAcks:
		return Acks{list(r, ackFixed, MaxAcks, (*reader).ack)}, nil
	case KindWants:
		return Wants{list(r, wantFixed, MaxWants, (*reader).want)}, nil
	case KindKept:
		return Kept{list(r, wantFixed, MaxWants, (*reader).want)}, nil
	case KindCredit:
		return Credit{r.number()}, nil
	case KindPing:
		return Ping{r.number(), r.number()}, nil
	case KindPong:
		return Pong{r.number()}, nil
	case KindGoodbye:
		return Goodbye{Code: r.text(), Text: r.text()}, nil
	case KindPresence:
		return Presence{r.number(), list(r, workerFixed, MaxWorkers, (*reader).presence)}, nil
	}
	return nil, fmt.Errorf("%w: %d", ErrKind, k)
}

// Least sizes of list entries; they bound what a count can make Decode allot.
const (
	wantFixed    = 2 + 8 + 8
	featureFixed = 2
	ackFixed     = 2 + 8 + 2 + 4
	verdictFixed = 8 + 2 + 2
)

func list[T any](r *reader, least, limit int, one func(*reader) T) []T {
	n := int(r.u32())
	if n > limit || n > len(r.rest)/least {
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

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// number reads what is never below 0: a sequence, a position, a size.
func (r *reader) number() int64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	v := int64(binary.BigEndian.Uint64(b))
	if v < 0 {
		r.fail("negative number")
	}
	return v
}

func (r *reader) text() string {
	b := r.take(2)
	if b == nil {
		return ""
	}
	n := int(binary.BigEndian.Uint16(b))
	if n > MaxText {
		r.fail("text too long")
		return ""
	}
	s := string(r.take(n))
	if !utf8.ValidString(s) {
		r.fail("text is not UTF-8")
	}
	return s
}

func (r *reader) hello() Hello {
	return Hello{
		StoreID: r.text(), Epoch: r.number(), Nonce: r.text(), Contract: r.text(),
		Feed:   hub.FeedState{StoreID: r.text(), Epoch: r.number(), Position: r.number(), Items: r.number()},
		Next:   list(r, wantFixed, MaxWants, (*reader).want),
		Credit: r.number(),
		Begin:  r.number(), End: r.number(), Swept: r.number(), Acked: r.number(),
		Features: list(r, featureFixed, MaxFeatures, (*reader).text),
	}
}

func (r *reader) item() hub.Item {
	it := hub.Item{Pos: r.number(), Seq: r.number()}
	it.Dispatch = hub.DispatchID(r.text())
	it.ID = hub.MessageID(r.text())
	it.Kind = hub.ItemKind(r.text())
	n := r.u32()
	if int64(n) > int64(len(r.rest)) {
		r.fail("payload length")
		return it
	}
	payload := r.take(int(n))
	it.Payload = append([]byte{}, payload...)
	sum := r.take(sha256.Size)
	if r.err == nil && sha256.Sum256(payload) != [sha256.Size]byte(sum) {
		r.err = fmt.Errorf("%w: %s item %d", ErrDigest, it.Dispatch, it.Seq)
	}
	return it
}

func (r *reader) ack() hub.Ack {
	return hub.Ack{
		Dispatch: hub.DispatchID(r.text()), Seq: r.number(), Parked: r.text(),
		Verdicts: list(r, verdictFixed, MaxVerdicts, (*reader).verdict),
	}
}

func (r *reader) verdict() hub.ItemVerdict {
	return hub.ItemVerdict{Seq: r.number(), Verdict: hub.Verdict(r.text()), Reason: r.text()}
}

func (r *reader) want() hub.Want {
	return hub.Want{Dispatch: hub.DispatchID(r.text()), Seq: r.number(), Until: r.number()}
}

func (r *reader) presence() hub.Presence {
	p := hub.Presence{
		Dispatch: hub.DispatchID(r.text()), Process: hub.Liveness(r.text()),
		LastOutputAt: hub.Micros(r.number()), LastReportAt: hub.Micros(r.number()), WaitingFor: r.text(),
	}
	flags := r.number()
	if flags >= flagsEnd {
		r.fail("flags of a presence")
	}
	p.Lost, p.Ended = flags&flagLost != 0, flags&flagEnded != 0
	if usage := r.text(); usage != "" {
		p.Usage = []byte(usage)
	}
	return p
}
