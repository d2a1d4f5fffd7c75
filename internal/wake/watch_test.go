package wake

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlept(t *testing.T) {
	const every = 5 * time.Second
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		wall, mono time.Duration
		want       bool
	}{
		"an ordinary look":         {every, every, false},
		"a busy machine":           {12 * time.Second, 12 * time.Second, false},
		"the monotonic clock held": {every + Gap + 1, every, true},
		"exactly the gap":          {every + Gap, every, false},
		"both clocks ran on":       {every + Gap + 1, every + Gap + 1, true},
		"the wall clock set back":  {-time.Hour, every, false},
		"the wall clock set on":    {time.Hour, every, true},
	} {
		if got := slept(Reading{start, 7}, Reading{start.Add(c.wall), 7 + c.mono}, every); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// host is a machine whose sleep and addresses a test decides.
type host struct {
	mu     sync.Mutex // guards what follows
	asleep time.Duration
	addrs  []string
	err    error
	calls  []string
}

func (h *host) watch(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	start, done := time.Now(), make(chan error, 1)
	cfg := Config{
		Read: func() Reading {
			h.mu.Lock()
			defer h.mu.Unlock()
			return Reading{time.Now().Add(h.asleep), time.Since(start)}
		},
		Addrs: func() ([]net.Addr, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			var all []net.Addr
			for _, a := range h.addrs {
				all = append(all, &net.IPAddr{IP: net.ParseIP(a)})
			}
			return all, h.err
		},
	}
	go func() {
		done <- Watch(ctx, cfg, func() { h.call("woke") }, func() { h.call("moved") })
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (h *host) call(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, what)
}

// after is what was called during the next minute.
func (h *host) after(change func()) []string {
	h.mu.Lock()
	h.calls = nil
	change()
	h.mu.Unlock()
	<-time.After(time.Minute)
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

func TestWatchTellsOnceOfEachSleepAndMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{addrs: []string{"127.0.0.1", "192.0.2.7"}}
		defer h.watch(t)()
		for _, c := range []struct {
			what   string
			change func()
			want   []string
		}{
			{"nothing", func() {}, nil},
			{"a sleep", func() { h.asleep += time.Hour }, []string{"woke"}},
			{"a nap", func() { h.asleep += time.Second }, nil},
			{"another address", func() { h.addrs = []string{"127.0.0.1", "198.51.100.7"} }, []string{"moved"}},
			{"another order", func() { h.addrs = []string{"198.51.100.7", "127.0.0.1"} }, nil},
			{"no answer", func() { h.addrs, h.err = nil, errors.New("no") }, nil},
			{"the same again", func() { h.addrs, h.err = []string{"127.0.0.1", "198.51.100.7"}, nil }, nil},
			{"woken elsewhere", func() { h.asleep += time.Minute; h.addrs = []string{"127.0.0.1"} }, []string{"woke", "moved"}},
		} {
			if got := h.after(c.change); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.what, got, c.want)
			}
		}
	})
}

func TestWatchLooksAtTheRealHost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	looks, c := 0, Config{Every: time.Millisecond}.withDefaults()
	real := c.Addrs
	c.Addrs = func() ([]net.Addr, error) {
		if looks++; looks > 3 {
			cancel()
		}
		return real()
	}
	go func() { done <- Watch(ctx, c, func() { t.Error("slept") }, func() {}) }()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
