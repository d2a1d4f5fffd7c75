package work

import (
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// Bounds of what one peer can make this hub remember.
const (
	maxWords      = 1 << 16
	maxWordsUsage = 8 << 20 // bytes of usage of all
)

// hearsay is what the owners of this home's Dispatches said of them last. It is
// memory: empty after a restart, it settles nothing. Safe for concurrent use; the
// zero value is ready.
type hearsay struct {
	mu    sync.Mutex
	peers map[hub.PeerID]*witness // guarded by mu
}

// witness is one peer.
type witness struct {
	up      bool
	linkAt  hub.Micros // since when the link is up or not, 0 if it never was
	current bool       // what it said is of the link that is up
	vouched hub.Micros
	words   map[hub.DispatchID]word
	usage   int // bytes of it in words
}

// word is what an owner said of a Dispatch, and when this hub heard it.
type word struct {
	hub.Presence
	at hub.Micros
}

func (h *hearsay) of(peer hub.PeerID) *witness {
	w, ok := h.peers[peer]
	if !ok {
		w = &witness{words: map[hub.DispatchID]word{}}
		if h.peers == nil {
			h.peers = map[hub.PeerID]*witness{}
		}
		h.peers[peer] = w
	}
	return w
}

// Hear takes what a peer says of Dispatches that it runs for this hub: of one of
// another peer it is never looked at. first says that it replaces all before.
func (s *Service) Hear(peer hub.PeerID, words []hub.Presence, first bool) {
	s.hearsay.mu.Lock()
	defer s.hearsay.mu.Unlock()
	w, now := s.hearsay.of(peer), hub.MicrosOf(time.Now())
	if first {
		clear(w.words)
		w.usage, w.current = 0, true
	}
	for _, p := range words {
		w.hear(word{p, now})
	}
}

func (w *witness) hear(x word) {
	w.usage -= len(w.words[x.Dispatch].Usage)
	delete(w.words, x.Dispatch)
	if x.Ended || len(w.words) >= maxWords {
		return
	}
	if w.usage += len(x.Usage); w.usage > maxWordsUsage {
		w.usage -= len(x.Usage)
		x.Usage = nil
	}
	w.words[x.Dispatch] = x
}

// Vouched notes that all that the peer said is so still.
func (s *Service) Vouched(peer hub.PeerID) {
	s.hearsay.mu.Lock()
	defer s.hearsay.mu.Unlock()
	s.hearsay.of(peer).vouched = hub.MicrosOf(time.Now())
}

// LinkChanged notes that the link to a peer has come up or gone down. What was
// said before counts as of then, until the peer says it anew.
func (s *Service) LinkChanged(peer hub.PeerID, up bool) {
	s.hearsay.mu.Lock()
	defer s.hearsay.mu.Unlock()
	if w := s.hearsay.of(peer); w.linkAt == 0 || w.up != up {
		w.up, w.linkAt, w.current = up, hub.MicrosOf(time.Now()), false
	}
}

// about is what is remembered of the link to a peer and of one Dispatch there: the
// zero word if its owner said nothing. A word is vouched for at its at; now says
// that it holds at this moment.
func (h *hearsay) about(peer hub.PeerID, id hub.DispatchID) (linkAt hub.Micros, x word, now bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, ok := h.peers[peer]
	if !ok {
		return 0, word{}, false
	}
	if x, ok = w.words[id]; ok {
		x.at = max(x.at, w.vouched)
	}
	return w.linkAt, x, ok && w.up && w.current
}
