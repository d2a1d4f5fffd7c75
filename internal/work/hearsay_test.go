package work

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/signal"
)

// A home with one peer, which runs one Dispatch for it.
type atHome struct {
	*Service
	up  bool
	d   hub.Dispatch
	bus signal.Bus
}

const thatPeer = hub.PeerID("peer_that")

func newAtHome() *atHome {
	h := &atHome{d: hub.Dispatch{ID: hub.NewDispatchID(), State: hub.Ready, Server: hub.Server{PeerID: thatPeer, Name: "that"}}}
	h.Service = New(Config{LinkUp: func(hub.PeerID) bool { return h.up }, Bus: &h.bus})
	return h
}

func (h *atHome) link(up bool) {
	h.up = up
	h.LinkChanged(thatPeer, up)
}

func (h *atHome) says(lost bool) []hub.Presence {
	return []hub.Presence{{Dispatch: h.d.ID, Process: hub.Live, WaitingFor: "none", LastOutputAt: 7, Lost: lost}}
}

func (h *atHome) known(t *testing.T) hub.Observation {
	t.Helper()
	o, ok := h.Known(h.d)
	if !ok {
		t.Fatal("nothing is known")
	}
	return o
}

// Acceptance W11: lost contact is unverifiable; only the owner says exited.
func TestLastWordHoldsWhileTheLinkIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAtHome()
		if o := h.known(t); o.Link != "down" || o.LinkAt != 0 || o.Process != hub.Unverifiable || o.ProcessAt != 0 {
			t.Errorf("before all it is %+v", o)
		}
		h.link(true)
		up := hub.MicrosOf(time.Now())
		h.Hear(thatPeer, h.says(false), true)
		<-time.After(time.Hour)
		h.Vouched(thatPeer)
		vouched := hub.MicrosOf(time.Now())
		<-time.After(10 * time.Second)
		if o := h.known(t); o.Link != "up" || o.LinkAt != up || o.Process != hub.Live || o.ProcessAt != vouched || o.LastOutputAt != 7 || o.Attachment != "present" {
			t.Errorf("vouched for it is %+v", o)
		}
		h.link(false)
		down := hub.MicrosOf(time.Now())
		<-time.After(time.Hour)
		h.link(false) // another try that failed
		if o := h.known(t); o.Link != "down" || o.LinkAt != down || o.Process != hub.Unverifiable || o.LastProcess != hub.Live || o.ProcessAt != vouched || o.LastOutputAt != 7 {
			t.Errorf("with the link down it is %+v", o)
		}
		h.link(true) // and it has said nothing yet
		if o := h.known(t); o.Link != "up" || o.Process != hub.Unverifiable || o.ProcessAt != vouched {
			t.Errorf("at link-up it is %+v", o)
		}
		h.Hear(thatPeer, h.says(true), true)
		if o := h.known(t); o.Process != hub.Live || !o.Lost || o.ProcessAt != hub.MicrosOf(time.Now()) {
			t.Errorf("told again it is %+v", o)
		}
		h.Hear(thatPeer, nil, true)
		if o := h.known(t); o.Process != hub.Unverifiable || o.ProcessAt != 0 {
			t.Errorf("of what its owner does not name is known %+v", o)
		}
	})
}

func TestForeignWordsAreNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAtHome()
		h.link(true)
		h.LinkChanged("peer_liar", true)
		h.Hear("peer_liar", h.says(true), true)
		if o := h.known(t); o.Process != hub.Unverifiable || o.Lost {
			t.Errorf("a liar's word counts: %+v", o)
		}
	})
}

func TestMemoryOfAPeerIsBounded(t *testing.T) {
	h := newAtHome()
	big := []byte(`{"a":"` + strings.Repeat("x", hub.MaxUsageBytes-8) + `"}`)
	for range maxWords/512 + 1 {
		ps := make([]hub.Presence, 512)
		for i := range ps {
			ps[i] = hub.Presence{Dispatch: hub.NewDispatchID(), Process: hub.Live, Usage: big}
		}
		h.Hear(thatPeer, ps, false)
	}
	w := h.hearsay.peers[thatPeer]
	if len(w.words) != maxWords || w.usage > maxWordsUsage || w.usage < maxWordsUsage-len(big) {
		t.Errorf("%d words with %d bytes of usage are kept", len(w.words), w.usage)
	}
	var all []hub.Presence
	for id := range w.words {
		all = append(all, hub.Presence{Dispatch: id, Ended: true})
	}
	h.Hear(thatPeer, all, false)
	if len(w.words) != 0 || w.usage != 0 {
		t.Errorf("%d words with %d bytes of usage are kept of what has ended", len(w.words), w.usage)
	}
}

func TestNothingIsKnownOfWhatIsFinal(t *testing.T) {
	h := newAtHome()
	h.d.State = hub.Succeeded
	h.Hear(thatPeer, h.says(false), true)
	if o, ok := h.Known(h.d); ok {
		t.Errorf("known: %+v", o)
	}
}
