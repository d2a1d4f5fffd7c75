package work

import (
	"encoding/json"
	"maps"
	"slices"
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
// another peer it is never looked at. first says that it replaces all before. What a
// home acts on is published where it has changed.
func (s *Service) Hear(peer hub.PeerID, words []hub.Presence, first bool) {
	for _, id := range s.hearsay.hear(peer, words, first) {
		s.saidAnew(id)
	}
}

// saidAnew publishes that the word on a Dispatch of which this hub is the home has
// changed. It is a hint: a peer may give it of any Dispatch.
func (s *Service) saidAnew(id hub.DispatchID) {
	s.Bus.Publish(string(hub.TopicPresence), string(id))
}

// hear returns the Dispatches whose word tells something else now.
func (h *hearsay) hear(peer hub.PeerID, words []hub.Presence, first bool) (changed []hub.DispatchID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, now := h.of(peer), hub.MicrosOf(time.Now())
	before := w.words
	if first {
		w.words, w.usage, w.current = map[hub.DispatchID]word{}, 0, true
	}
	for _, p := range words {
		was := before[p.Dispatch].OrUnsaid()
		w.hear(word{p, now})
		if was.Tells(w.words[p.Dispatch].OrUnsaid()) {
			changed = append(changed, p.Dispatch)
		}
	}
	if !first {
		return changed
	}
	for id, was := range before { // what it does not name any more
		if _, named := w.words[id]; !named && was.Tells(hub.Presence{}.OrUnsaid()) {
			changed = append(changed, id)
		}
	}
	return changed
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
// said before counts as of then, until the peer says it anew: that is published for
// each Dispatch of which it has said something.
func (s *Service) LinkChanged(peer hub.PeerID, up bool) {
	for _, id := range s.hearsay.linkChanged(peer, up) {
		s.saidAnew(id)
	}
}

func (h *hearsay) linkChanged(peer hub.PeerID, up bool) []hub.DispatchID {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.of(peer)
	if w.linkAt != 0 && w.up == up {
		return nil
	}
	w.up, w.linkAt, w.current = up, hub.MicrosOf(time.Now()), false
	return slices.Collect(maps.Keys(w.words))
}

// heardUsage is what the owner of another hub's Dispatch said last that it used.
func (s *Service) heardUsage(d hub.Dispatch) json.RawMessage {
	if d.Local() {
		return nil
	}
	_, x, _ := s.hearsay.about(d.Server.PeerID, d.ID)
	return x.Usage
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
