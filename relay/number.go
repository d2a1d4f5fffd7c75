package relay

import (
	"context"
	"encoding/binary"

	"github.com/wavehub/wavehub/relay/wire"
)

// numberSize is the length of the number in front of each frame, in bytes.
const numberSize = 8

// Bounds of what waits for frames that it has overtaken.
const (
	earlyFrames = 64
	earlyBytes  = 1 << 20
)

// inbound gives the frames of a session in the order of their numbers, which
// count from 1, and each once. A frame that has overtaken others waits for
// them. Those that are missing behind a ping, or behind more than may wait, are
// lost, and with them the session: an ack without the verdict before it, or a
// missing grant, would be a fault for ever. Only the reader uses it.
type inbound struct {
	conn  Conn
	next  uint64            // the number that is due
	early map[uint64][]byte // frames beyond it
	bytes int               // of them
}

func newInbound(conn Conn) *inbound {
	return &inbound{conn: conn, next: 1, early: map[uint64][]byte{}}
}

// frame returns the next frame.
func (a *inbound) frame(ctx context.Context) ([]byte, error) {
	for {
		if f, ok := a.early[a.next]; ok {
			delete(a.early, a.next)
			a.bytes -= len(f)
			a.next++
			return f, nil
		}
		raw, err := a.conn.ReadFrame(ctx)
		if err != nil {
			return nil, err
		}
		if err := a.take(raw); err != nil {
			return nil, err
		}
	}
}

// take keeps a frame until it is due.
func (a *inbound) take(raw []byte) error {
	if len(raw) < numberSize {
		return protocolf("a frame of %d bytes", len(raw))
	}
	n, f := binary.BigEndian.Uint64(raw), raw[numberSize:]
	if _, twice := a.early[n]; twice || n < a.next {
		return nil
	}
	a.early[n] = f
	a.bytes += len(f)
	if n > a.next && (len(a.early) > earlyFrames || a.bytes > earlyBytes || wire.IsPing(f)) {
		return protocolf("frame %d is lost", a.next)
	}
	return nil
}
