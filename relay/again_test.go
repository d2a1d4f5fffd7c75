package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wavehub/wavehub/internal/hub"
)

// slowLinks opens nothing, and only when it is let go on.
type slowLinks struct {
	mu    sync.Mutex
	opens int // guarded by mu
	goOn  chan struct{}
}

func (s *slowLinks) Open(context.Context, hub.PeerID) (Conn, error) {
	s.mu.Lock()
	s.opens++
	s.mu.Unlock()
	<-s.goOn
	return nil, errors.New("nobody is there")
}

func (s *slowLinks) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opens
}

// A peer that is removed and added again gets its new link when the old one has
// ended, so that the last word on its state is the new one's.
func TestALinkBeginsAnewWhenTheOldOneHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel("store-home")
		session, err := NewSession(Config{Source: m, Importer: m, Feed: m, Nonce: "n"})
		if err != nil {
			t.Fatal(err)
		}
		links := &slowLinks{goOn: make(chan struct{})}
		var mu sync.Mutex
		var states []string // guarded by mu
		h, err := NewHome(HomeConfig{Session: session, Links: links, Changed: func(_ hub.PeerID, s LinkState) {
			mu.Lock()
			defer mu.Unlock()
			states = append(states, s.State)
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		h.Add("peer_1")
		synctest.Wait()
		for range 3 {
			h.Remove("peer_1")
			h.Add("peer_1")
			synctest.Wait()
		}
		if n := links.opened(); n != 1 {
			t.Errorf("%d links at once", n)
		}
		links.goOn <- struct{}{}
		synctest.Wait()
		mu.Lock()
		if want := []string{LinkConnecting, LinkDown, LinkConnecting}; !slices.Equal(slices.Compact(states), want) || links.opened() != 2 {
			t.Errorf("%v, %d links", states, links.opened())
		}
		mu.Unlock()
		cancel()
		close(links.goOn)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(h.leaving) != 0 {
			t.Errorf("%d are remembered", len(h.leaving))
		}
	})
}
