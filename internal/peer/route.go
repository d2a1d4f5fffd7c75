package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
)

// route makes a connection over what there is: a stream that is parked comes
// first, else whichever is there first, a stream or a direct connection.
func (l *Links) route(ctx context.Context, p hub.Peer) (net.Conn, error) {
	if l.cfg.Lot.Count(p.ID) > 0 {
		conn, err := l.reverse(ctx, p)
		if err == nil || definite(err) {
			return conn, err
		}
	}
	return l.race(ctx, p)
}

// reverse is a connection over a parked stream.
func (l *Links) reverse(ctx context.Context, p hub.Peer) (net.Conn, error) {
	conn, _, err := l.greet(ctx, p, reverse{l.cfg.Lot, l.dial.limit()})
	return conn, err
}

// outcome is what one side of a race has come to.
type outcome struct {
	over string
	conn net.Conn
	err  error
}

// race waits for the first of both transports; the other one's attempt has
// ended when it returns. For a stream it waits only as long as the direct
// attempt takes, unless the peer is one that parks.
func (l *Links) race(ctx context.Context, p hub.Peer) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan outcome, 2)
	var both sync.WaitGroup
	both.Go(func() {
		conn, _, err := l.direct(ctx, p)
		ended <- outcome{TransportDirect, conn, err}
	})
	both.Go(func() {
		conn, err := l.reverse(ctx, p)
		ended <- outcome{TransportReverse, conn, err}
	})
	won, err := first(ended, p)
	cancel()
	both.Wait()
	close(ended)
	for late := range ended {
		if late.conn != nil {
			late.conn.Close()
		}
	}
	return won, err
}

// first is the first success, or what the failures come to.
func first(ended <-chan outcome, p hub.Peer) (net.Conn, error) {
	var direct, reverse error
	for direct == nil || reverse == nil {
		o := <-ended
		switch {
		case o.err == nil:
			return o.conn, nil
		case o.over == TransportDirect:
			if direct = o.err; decides(p, direct) {
				return nil, direct
			}
		default:
			if reverse = o.err; definite(reverse) {
				return nil, reverse
			}
		}
	}
	return nil, &LinkError{StageDial, fmt.Errorf("%s cannot be reached: %s: %w; %s: %w", p.Name, TransportReverse, reverse, TransportDirect, uncoded(direct))}
}

// decides reports whether a failed direct attempt ends the race. The addresses
// of a peer that parks are those of its own network: who answers there with
// another key is somebody else.
func decides(p hub.Peer, err error) bool {
	return !p.Parks || definite(err) && !hub.IsCode(err, hub.CodePeerChanged)
}

// uncoded keeps the words of an error whose code does not count.
func uncoded(err error) error {
	if definite(err) {
		return errors.New(err.Error())
	}
	return err
}
