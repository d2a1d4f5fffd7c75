package relay

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// Presence is the latest word on live workers: what this hub says of those that
// it runs for a peer, and what it hears of those that run there for it. It is
// called concurrently, keeps all in memory and waits for nobody.
type Presence interface {
	// Tell begins a subscription of the peer's.
	Tell(peer hub.PeerID) Telling
	// Hear takes a peer's words; first says that they replace all before. What
	// they name is the peer's claim.
	Hear(peer hub.PeerID, words []hub.Presence, first bool)
	// Vouched notes that all that was heard of the peer is so still.
	Vouched(peer hub.PeerID)
}

// Telling is one subscription. One goroutine uses it.
type Telling interface {
	// Changed holds a wake-up when Next has something; it is never closed.
	Changed() <-chan struct{}
	// Next returns at most limit words, each in its latest state: at first those
	// on all live Dispatches, then what has changed since; none when all is told.
	Next(limit int) []hub.Presence
	End()
}

const (
	presenceBatch = 512 // words that are taken at once
	presenceBytes = 64 << 10
	// vouchRounds bounds how many frames go before a ping that is due.
	vouchRounds = 4
)

// teller is the sender's half of presence; nil where none is told.
type teller struct {
	Telling
	seq  int64          // of the last frame
	left []hub.Presence // taken and not sent
	more bool           // there may be more to take
}

// teller begins to tell if this hub is the owner and both sides can.
func (l *link) newTeller() *teller {
	if !l.presence || l.send != hub.ToHome {
		return nil
	}
	return &teller{Telling: l.cfg.Presence.Tell(l.peer), more: true}
}

func (t *teller) end() {
	if t != nil {
		t.End()
	}
}

// woken is nil, and so never ready, where none is told.
func (t *teller) woken() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.Changed()
}

// frame is the next frame; the first one of a session may be empty.
func (t *teller) frame() (f wire.Presence, ok bool) {
	if t == nil || !t.more {
		return f, false
	}
	if len(t.left) == 0 {
		t.left = t.Next(presenceBatch)
	}
	if t.more = len(t.left) > 0; !t.more && t.seq > 0 {
		return f, false
	}
	n, size := 0, 0
	for n < len(t.left) && (n == 0 || size+wire.PresenceSize(t.left[n]) <= presenceBytes) {
		t.left[n] = fit(t.left[n])
		size += wire.PresenceSize(t.left[n])
		n++
	}
	t.seq++
	f = wire.Presence{Seq: t.seq, Workers: t.left[:n:n]}
	t.left = t.left[n:]
	return f, true
}

// fit leaves usage away that no frame can hold.
func fit(p hub.Presence) hub.Presence {
	if len(p.Usage) > wire.MaxText || !utf8.Valid(p.Usage) {
		p.Usage = nil
	}
	return p
}

// tell sends one frame of presence, and reports whether there may be more.
func (s *sender) tell(ctx context.Context) (more bool, err error) {
	f, ok := s.teller.frame()
	if !ok {
		return false, nil
	}
	return true, s.write(ctx, f)
}

// vouch tells what is not told yet and returns what a ping may vouch for: 0 when
// there is too much to tell, of which the next ping will.
func (s *sender) vouch(ctx context.Context) (int64, error) {
	if s.teller == nil {
		return 0, nil
	}
	s.teller.more = true
	for range vouchRounds {
		if more, err := s.tell(ctx); err != nil || !more {
			return s.teller.seq, err
		}
	}
	return 0, nil
}

// hear takes a frame of presence. A frame that came before is passed over; one
// that is missing cannot be on a stream, and would be missing for ever.
func (l *link) hear(f wire.Presence) error {
	if !l.presence || l.recv != hub.ToHome {
		return protocolf("presence that was not agreed on")
	}
	for i, p := range f.Workers {
		if err := checkDispatch(p.Dispatch); err != nil {
			return err
		}
		f.Workers[i] = p.Clean()
	}
	switch {
	case f.Seq <= l.heard:
		return nil
	case f.Seq > l.heard+1:
		return protocolf("presence %d came after %d", f.Seq, l.heard)
	}
	l.heard = f.Seq
	l.cfg.Presence.Hear(l.peer, f.Workers, f.Seq == 1)
	return nil
}

// vouched takes the word of a ping.
func (l *link) vouched(seq int64) error {
	switch {
	case seq == 0:
		return nil
	case !l.presence || l.recv != hub.ToHome:
		return protocolf("a ping vouches for presence that was not agreed on")
	case seq > l.heard:
		return protocolf("a ping vouches for presence %d, the last was %d", seq, l.heard)
	case seq == l.heard:
		l.cfg.Presence.Vouched(l.peer)
	}
	return nil
}

// features are what this hub can do on a relay beyond the contract.
func (c *Config) features() []string {
	if c.Presence == nil {
		return nil
	}
	return []string{hub.FeaturePresence}
}

// agreed reports whether both sides of a session can do it.
func agreed(feature string, ours, theirs wire.Hello) bool {
	return slices.Contains(ours.Features, feature) && slices.Contains(theirs.Features, feature)
}
