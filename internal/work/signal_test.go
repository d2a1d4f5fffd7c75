package work

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// told takes what was published since it was called last.
func (s *stand) published() []hub.DispatchID {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.said
	s.said = nil
	return out
}

func ours() attempt { return attempt{"", hub.NewDispatchID()} }

func wantSaid(t *testing.T, when string, got []hub.DispatchID, want ...hub.DispatchID) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d words were published of %d", when, len(got), len(want))
	}
}

// A worker of this hub's own that gets lost is told of by the sweep that finds it, and
// so is its coming back; what nobody acts on is not told.
func TestOwnWordsArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who := newStand(), ours()
		s.put(who, record{terminal: term, liveness: 30 * time.Second})
		wantSaid(t, "begun", s.published())
		s.proved(term, 1)
		s.pass(time.Minute)
		s.unproven(term)
		s.pass(25 * time.Second)
		wantSaid(t, "silent for a while", s.published())
		s.pass(2 * sweepEvery)
		wantSaid(t, "lost", s.published(), who.id)
		s.pass(time.Hour)
		wantSaid(t, "lost for an hour", s.published())
		s.proved(term, 2)
		wantSaid(t, "seen again", s.published(), who.id)
		s.put(who, record{terminal: term, liveness: 30 * time.Second, waiting: hub.WaitsForPermission})
		wantSaid(t, "it waits", s.published(), who.id)
		s.put(who, record{terminal: term, liveness: 30 * time.Second, waiting: hub.WaitsForPermission, usage: []byte(`{"tokens":1}`), reportAt: 9})
		wantSaid(t, "it used something", s.published(), who.id)
		s.put(who, record{terminal: term, liveness: 30 * time.Second, waiting: hub.WaitsForPermission, usage: []byte(`{"tokens":1}`), reportAt: 10})
		s.proved(term, 3)
		wantSaid(t, "it has written and reported", s.published())
		s.end(who, true)
		wantSaid(t, "ended", s.published())
	})
}

// Another home's Dispatches are told of by the relay and not here.
func TestForeignWordsAreNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who := newStand(), fresh()
		s.put(who, record{terminal: term, waiting: hub.WaitsForPrompt})
		s.proved(term, 1)
		wantSaid(t, "another home's", s.published())
	})
}

func TestIdleWorkersPublishNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand()
		for i := range 10_000 {
			at := hub.TerminalID(fmt.Sprint("term_", i))
			s.put(ours(), record{terminal: at, liveness: 90 * time.Second})
			s.proved(at, 1)
		}
		wantSaid(t, "begun", s.published())
		s.pass(time.Hour)
		wantSaid(t, "after an hour", s.published())
	})
}

// What peers say is published where it changes; what they repeat, and what nobody acts
// on, is not. A link that goes or comes is news of each Dispatch there.
func TestHearsayIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAtHome()
		woken, take, cancel := h.bus.Gather(string(hub.TopicPresence))
		defer cancel()
		published := func() (ids []hub.DispatchID) {
			select {
			case <-woken:
			default:
			}
			for _, key := range take() {
				ids = append(ids, hub.DispatchID(key))
			}
			return ids
		}
		h.link(true)
		wantSaid(t, "link-up before a word", published())
		h.Hear(thatPeer, h.says(false), true)
		wantSaid(t, "its first word", published(), h.d.ID)
		h.Hear(thatPeer, h.says(false), false)
		h.Hear(thatPeer, h.says(false), true)
		h.Vouched(thatPeer)
		wantSaid(t, "the same again", published())
		quiet := h.says(false)
		quiet[0].LastOutputAt, quiet[0].LastReportAt = 99, 98
		h.Hear(thatPeer, quiet, false)
		wantSaid(t, "it has written", published())
		h.Hear(thatPeer, h.says(true), false)
		wantSaid(t, "lost", published(), h.d.ID)
		h.link(false)
		wantSaid(t, "link-down", published(), h.d.ID)
		h.link(false)
		wantSaid(t, "another try that failed", published())
		h.link(true)
		wantSaid(t, "link-up", published(), h.d.ID)
		h.Hear(thatPeer, nil, true)
		wantSaid(t, "named no more", published(), h.d.ID)
		h.Hear(thatPeer, []hub.Presence{{Dispatch: h.d.ID, WaitingFor: hub.WaitsForUnknown, Ended: true}}, false)
		wantSaid(t, "ended, and nothing was known", published())
	})
}
