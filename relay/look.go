package relay

import "context"

// glance is what the last look at a peer has found.
type glance struct {
	received int64
	asked    bool
}

// look sees whether anything has come of the peer since the last look. If not, it
// is asked for a sign of life, and if that does not come either the keeper of
// the session is told: the network may be back while TCP still waits, for as long
// again as it was away, to repeat what it has lost. The session goes on.
func (s *sender) look(ctx context.Context) error {
	now := s.received()
	switch {
	case now != s.glance.received || !s.reading.Load():
		s.glance = glance{received: now}
	case !s.glance.asked:
		s.glance.asked = true
		return s.write(ctx, s.pingOf(0))
	default:
		s.silent()
	}
	return nil
}

// received grows with what comes of the peer: with each byte if the connection
// counts them, so that a frame on a slow line is no silence, else with each frame.
func (l *link) received() int64 {
	if c, ok := l.conn.(interface{ Received() int64 }); ok {
		return c.Received()
	}
	return l.doubt.heard.Load()
}
