package peer

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

var errLeft = errors.New("the peer parks no more")

// parked is one stream that a peer has parked here. keep reads it, its helper
// writes it, and one taker may claim it.
type parked struct {
	conn  net.Conn
	wish  chan struct{} // closed by the one that takes the stream
	taken chan struct{} // closed when the peer has confirmed that
	gone  chan struct{} // closed when keep has ended
}

func newParked(conn net.Conn) *parked {
	return &parked{conn: conn, wish: make(chan struct{}), taken: make(chan struct{}), gone: make(chan struct{})}
}

// keep pings until the stream is taken, which is nil, or has ended; ctx ends
// it. It closes the connection unless it was taken.
func (s *parked) keep(ctx context.Context, ping time.Duration) error {
	defer close(s.gone)
	stop := context.AfterFunc(ctx, s.drop)
	defer stop()
	work, cancel := context.WithCancel(ctx)
	pings := make(chan struct{}, 3) // sent and not answered: more than may be missed
	var wg sync.WaitGroup
	wg.Go(func() { s.write(work, ping, pings) })
	err := s.read(ping, pings)
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = s.conn.SetDeadline(time.Time{})
	}
	if err != nil {
		s.drop()
	}
	cancel()
	wg.Wait()
	if err == nil {
		close(s.taken)
	}
	return err
}

// drop ends the stream, and with it keep.
func (s *parked) drop() { _ = s.conn.Close() } // nobody waits for what is in it

// read takes the answers: one for each byte that was sent.
func (s *parked) read(ping time.Duration, pings <-chan struct{}) error {
	for {
		b, err := readByte(s.conn, patience(ping))
		if err != nil {
			return err
		}
		switch {
		case b == byteLeft:
			return errLeft
		case b == byteTaken && s.wanted():
			return nil
		case b == bytePing:
			select {
			case <-pings:
				continue
			default:
			}
		}
		return errParkProtocol
	}
}

func (s *parked) wanted() bool {
	select {
	case <-s.wish:
		return true
	default:
		return false
	}
}

// write sends pings, and as the last byte that the stream is taken.
func (s *parked) write(ctx context.Context, ping time.Duration, pings chan<- struct{}) {
	tick := time.NewTicker(ping)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wish:
			if writeByte(s.conn, byteTaken, ping) != nil {
				s.drop()
			}
			return
		case <-tick.C:
			select {
			case pings <- struct{}{}:
			default:
				continue // the reader's limit is about to end this
			}
			if writeByte(s.conn, bytePing, ping) != nil {
				s.drop()
				return
			}
		}
	}
}

// claim takes the stream; one that does not answer within limit is dropped.
// Only the one that has removed it from the Lot may call it.
func (s *parked) claim(ctx context.Context, limit time.Duration) (net.Conn, bool) {
	close(s.wish)
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-s.gone:
	case <-late.C:
	case <-ctx.Done():
	}
	select {
	case <-s.taken:
		return s.conn, true
	default:
		s.drop()
		return nil, false
	}
}
