package peer

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// fill keeps one stream parked until ctx ends: one that is taken is replaced at
// once, one that fails later and later.
func (k *Parker) fill(ctx context.Context, h *parking, s *spot) {
	for ctx.Err() == nil {
		own, renew := context.WithCancelCause(ctx)
		k.mu.Lock()
		s.renew = renew
		k.mu.Unlock()
		err := k.park(own, h, s)
		cause := context.Cause(own)
		renew(nil)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !errors.Is(cause, errRenewed) {
			k.note(h, func(st *ParkState) { st.fail(err) })
		}
		s.pace.Rest(ctx)
	}
}

func (st *ParkState) fail(err error) {
	st.LastError, st.Code, st.Stage = err.Error(), hub.CodeOf(err), StageHello
	if le, ok := errors.AsType[*LinkError](err); ok {
		st.Stage = le.At
	}
}

// park parks one stream and returns nil when the home has taken it.
func (k *Parker) park(ctx context.Context, h *parking, s *spot) error {
	conn, err := k.dial(ctx, h.peer)
	if err != nil {
		return err
	}
	k.note(h, func(st *ParkState) { *st = ParkState{Parked: st.Parked + 1} })
	err = k.await(ctx, conn, s)
	k.note(h, func(st *ParkState) { st.Parked-- })
	if err != nil {
		conn.Close()
		return &LinkError{StageHello, err}
	}
	s.pace.Reset()
	k.cfg.Serve(ctx, carried{conn, TransportReverse})
	return nil
}

// dial connects to the home, as to any peer, and has it keep the connection.
func (k *Parker) dial(ctx context.Context, id hub.PeerID) (net.Conn, error) {
	l := k.cfg.Links
	p, err := l.trusted(ctx, id)
	if err != nil {
		return nil, err
	}
	conn, hello, err := l.direct(ctx, p)
	if err != nil {
		return nil, err
	}
	if !hello.Has(hub.FeatureReverse) {
		conn.Close()
		return nil, &LinkError{StageContract, hub.Errorf(hub.CodeCapabilityUnsupported, "%s does not offer %s", p.Name, hub.FeatureReverse)}
	}
	stream, err := askPark(ctx, conn, l.dial.limit())
	if err != nil {
		conn.Close()
		return nil, &LinkError{StageHello, err}
	}
	return stream, nil
}

// await answers the home until it takes the stream.
func (k *Parker) await(ctx context.Context, conn net.Conn, s *spot) error {
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errUnparked) {
			_ = writeByte(conn, byteLeft, time.Second) // if the home is there it waits for no more
		}
		conn.Close()
	})
	defer stop()
	for {
		b, err := readByte(conn, patience(k.cfg.Ping))
		if err != nil {
			return err
		}
		if b != bytePing && b != byteTaken {
			return errParkProtocol
		}
		if err := writeByte(conn, b, k.cfg.Ping); err != nil {
			return err
		}
		if b == bytePing {
			s.pace.Reset() // it has lived for a while
			continue
		}
		if !stop() {
			return context.Cause(ctx)
		}
		return conn.SetDeadline(time.Time{})
	}
}
