package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

const least, most = 500 * time.Millisecond, 30 * time.Second

func rested(p *Pace) time.Duration {
	from := time.Now()
	p.Rest(context.Background())
	return time.Since(from)
}

func within(t *testing.T, what string, got, all time.Duration) {
	t.Helper()
	if got < all/2 || got > all {
		t.Errorf("%s: rested %s, want %s to %s", what, got, all/2, all)
	}
}

func TestWaitsDoubleUpToTheirBoundAndAreNeverInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, seen := New(least, most), map[time.Duration]bool{}
		for want := least; want < most; want *= 2 {
			within(t, "growing", rested(p), want)
		}
		for range 20 {
			got := rested(p)
			within(t, "at the bound", got, most)
			seen[got] = true
		}
		if len(seen) < 10 {
			t.Errorf("20 waits were of %d lengths", len(seen))
		}
		p.Reset()
		within(t, "after a success", rested(p), least)
	})
}

func TestAKickEndsTheRestAndStartsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(least, most)
		for range 10 {
			rested(p)
		}
		time.AfterFunc(time.Second, p.Kick)
		if got := rested(p); got != time.Second {
			t.Errorf("kicked after a second, rested %s", got)
		}
		within(t, "the next one", rested(p), least)
		p.Kick()
		p.Kick()
		if got := rested(p); got != 0 {
			t.Errorf("kicked before, rested %s", got)
		}
		within(t, "two kicks are one", rested(p), least)
		p.Kick()
		p.Reset()
		within(t, "a kick before a success", rested(p), least)
	})
}

// Two sides whose attempts are each other's contact come to rest.
func TestContactsCountOnceInTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, from, attempts := New(least, most), time.Now(), 0
		for time.Since(from) < 10*time.Minute {
			p.Contact() // what the attempt brings about
			rested(p)
			attempts++
		}
		if attempts > 10*60/4 {
			t.Errorf("%d attempts in ten minutes", attempts)
		}
		p.Contact()
		if got := rested(p); got > most {
			t.Errorf("rested %s", got)
		}
		p.Reset()
		p.Contact()
		if got := rested(p); got != 0 {
			t.Errorf("the first contact after a success: rested %s", got)
		}
	})
}

func TestRestEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		from := time.Now()
		New(time.Hour, time.Hour).Rest(ctx)
		if got := time.Since(from); got != time.Millisecond {
			t.Errorf("rested %s", got)
		}
	})
}
