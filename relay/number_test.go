package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/wavehub/wavehub/relay/wire"
)

// played is a connection on which frames have come.
type played [][]byte

func (p *played) ReadFrame(context.Context) ([]byte, error) {
	if len(*p) == 0 {
		return nil, io.EOF
	}
	f := (*p)[0]
	*p = (*p)[1:]
	return f, nil
}
func (p *played) WriteFrame(context.Context, []byte) error { return nil }
func (p *played) Close() error                             { return nil }

func numberedFrame(t *testing.T, n uint64, f wire.Frame) []byte {
	t.Helper()
	raw, err := wire.Encode(make([]byte, numberSize), f)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(raw, n)
	return raw
}

func TestInbound(t *testing.T) {
	const ping = 1 << 32 // added to the number of one
	upTo := func(from, to uint64) (ns []uint64) {
		for n := from; n <= to; n++ {
			ns = append(ns, n)
		}
		return ns
	}
	for name, c := range map[string]struct {
		come, want []uint64
		lost       bool
	}{
		"in order":           {come: []uint64{1, 2, 3 + ping, 4}, want: upTo(1, 4)},
		"twice":              {come: []uint64{1, 1, 2, 1, 3, 2, 3}, want: upTo(1, 3)},
		"early and twice":    {come: []uint64{3, 3, 2, 1}, want: upTo(1, 3)},
		"backwards":          {come: []uint64{4, 3, 2, 1}, want: upTo(1, 4)},
		"lost before a ping": {come: []uint64{1, 3, 4 + ping}, want: upTo(1, 1), lost: true},
		"a ping overtakes":   {come: []uint64{2 + ping, 1}, lost: true},
		"64 wait":            {come: append(upTo(2, 65), 1), want: upTo(1, 65)},
		"65 wait":            {come: append(upTo(2, 66), 1), lost: true},
		"none is 0":          {come: []uint64{0, 1}, want: upTo(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var p played
			for _, n := range c.come {
				f := wire.Frame(wire.Credit{Bytes: int64(n)})
				if n >= ping {
					n -= ping
					f = wire.Ping{IntervalMS: int64(n)}
				}
				p = append(p, numberedFrame(t, n, f))
			}
			got, err := all(t, newInbound(&p))
			if lost := !errors.Is(err, io.EOF); !slices.Equal(got, c.want) || lost != c.lost {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// all reads to the end; the frames hold their own numbers.
func all(t *testing.T, a *inbound) (got []uint64, err error) {
	t.Helper()
	for {
		raw, err := a.frame(t.Context())
		if err != nil {
			return got, err
		}
		f, err := wire.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case wire.Credit:
			got = append(got, uint64(f.Bytes))
		case wire.Ping:
			got = append(got, uint64(f.IntervalMS))
		}
	}
}

func TestInboundAreBounded(t *testing.T) {
	big := make([]byte, numberSize+earlyBytes/2)
	var p played
	for n := range uint64(3) {
		big := slices.Clone(big)
		binary.BigEndian.PutUint64(big, n+2)
		p = append(p, big)
	}
	if _, err := newInbound(&p).frame(t.Context()); errors.Is(err, io.EOF) {
		t.Error("more than 1 MiB waited for a frame")
	}
	if _, err := newInbound(&played{{1}}).frame(t.Context()); errors.Is(err, io.EOF) {
		t.Error("a frame without a number was taken")
	}
}
