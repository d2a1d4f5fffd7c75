package relay

import (
	"errors"
	"sync/atomic"
	"time"
)

// Wake pings the peers of all live sessions at once, after a sleep of this
// host: a session whose peer then stays silent for Config.Proof ends.
func (s *Session) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.live {
		poke(l.doubt.raised)
	}
}

// enter lets Wake find the link; the function takes that back.
func (s *Session) enter(l *link) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[l] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.live, l)
	}
}

// doubt asks one session for a sign of life. due and seen are the sender's.
type doubt struct {
	raised chan struct{} // holds one
	heard  atomic.Int64  // frames that came, counted by the reader
	due    <-chan time.Time
	seen   int64
}

func newDoubt() *doubt { return &doubt{raised: make(chan struct{}, 1)} }

var errSleptThrough = errors.New("the peer did not answer after this host had slept")

// begin has the answer due within limit.
func (d *doubt) begin(limit time.Duration) {
	d.seen, d.due = d.heard.Load(), time.After(limit)
}

// settle judges once the answer is due.
func (d *doubt) settle() error {
	d.due = nil
	if d.heard.Load() == d.seen {
		return errSleptThrough
	}
	return nil
}
