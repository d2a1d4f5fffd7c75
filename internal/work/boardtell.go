package work

import (
	"container/list"

	"github.com/wavehub/wavehub/internal/hub"
)

// audience is a home with Dispatches here, and who is told of them. Its rows are
// in the order of their last change, so that telling costs what has changed.
type audience struct {
	version  int64      // of the last change
	rows     *list.List // of *row; the last one has changed last
	tellings map[*Telling]struct{}
}

// spot is where a row is in its audience; version is that of its last change.
type spot struct {
	version int64
	elem    *list.Element
}

// Telling is one subscription to the words on a home's live Dispatches. One
// goroutine uses it; End ends it.
type Telling struct {
	b     *board
	home  hub.PeerID
	woken chan struct{}
	seen  int64 // guarded by board.mu; the version up to which all is told
}

// Tell begins to tell a home of its live Dispatches here.
func (s *Service) Tell(home hub.PeerID) *Telling { return s.board.subscribe(home) }

func (b *board) subscribe(home hub.PeerID) *Telling {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &Telling{b: b, home: home, woken: make(chan struct{}, 1)}
	b.audienceOf(home).tellings[t] = struct{}{}
	return t
}

func (b *board) audienceOf(home hub.PeerID) *audience {
	h, ok := b.homes[home]
	if !ok {
		h = &audience{rows: list.New(), tellings: map[*Telling]struct{}{}}
		b.homes[home] = h
	}
	return h
}

// announce notes that the word on a row has changed, for the peers that are told
// of theirs.
func (b *board) announce(x *row) {
	if x.who.home == "" {
		return
	}
	h := b.audienceOf(x.who.home)
	h.version++
	x.version = h.version
	if x.elem == nil {
		x.elem = h.rows.PushBack(x)
	} else {
		h.rows.MoveToBack(x.elem)
	}
	b.prune(x.who.home, x)
	for t := range h.tellings {
		select {
		case t.woken <- struct{}{}:
		default:
		}
	}
}

// prune forgets a Dispatch that has ended when everybody was told.
func (b *board) prune(home hub.PeerID, x *row) {
	h := b.homes[home]
	if !x.word.Ended || x.elem == nil {
		return
	}
	for t := range h.tellings {
		if t.seen < x.version {
			return
		}
	}
	h.rows.Remove(x.elem)
	x.elem = nil
	b.dropAudience(home, h)
}

func (b *board) dropAudience(home hub.PeerID, h *audience) {
	if h.rows.Len() == 0 && len(h.tellings) == 0 {
		delete(b.homes, home)
	}
}

// Changed holds a wake-up when Next has something.
func (t *Telling) Changed() <-chan struct{} { return t.woken }

// Next returns at most limit words that were not told in their present state, the
// longest unchanged first; at first those on all live Dispatches.
func (t *Telling) Next(limit int) []hub.Presence {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	var out []hub.Presence
	var ended []*row
	for e := t.from(); e != nil && len(out) < limit; e = e.Next() {
		x := e.Value.(*row)
		out = append(out, x.word)
		t.seen = x.version
		if x.word.Ended {
			ended = append(ended, x)
		}
	}
	for _, x := range ended {
		t.b.prune(t.home, x)
	}
	return out
}

// from is the first row that has changed since.
func (t *Telling) from() (first *list.Element) {
	for e := t.b.homes[t.home].rows.Back(); e != nil && e.Value.(*row).version > t.seen; e = e.Prev() {
		first = e
	}
	return first
}

// End ends the subscription.
func (t *Telling) End() {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	h := t.b.homes[t.home]
	delete(h.tellings, t)
	for e := h.rows.Front(); e != nil; {
		x := e.Value.(*row)
		e = e.Next()
		t.b.prune(t.home, x)
	}
	t.b.dropAudience(t.home, h)
}
