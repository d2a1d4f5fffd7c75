package group

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestStopCancelsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(context.Background())
		var ended bool
		if !g.Go(func(ctx context.Context) { <-ctx.Done(); ended = true }) {
			t.Fatal("a fresh group refuses a goroutine")
		}
		if !g.Stop(time.Second) || !ended {
			t.Fatal("Stop returned before the goroutine had ended")
		}
		if g.Go(func(context.Context) { t.Error("ran after Stop") }) {
			t.Fatal("a stopped group takes a goroutine")
		}
	})
}

func TestStopGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(context.Background())
		release := make(chan struct{})
		g.Go(func(context.Context) { <-release })
		if g.Stop(time.Second) {
			t.Fatal("Stop says that all have ended while one runs")
		}
		close(release)
	})
}
