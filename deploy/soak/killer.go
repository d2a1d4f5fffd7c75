//go:build unix

package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// killer ends the hub at random times and starts it again, until the soak is
// over. Most ends are SIGKILLs; some hit a hub that is not ready yet.
func (s *soak) killer(ctx context.Context) error {
	rng := s.rng(0)
	for s.kills > 0 && pause(ctx, soon(rng, s.kills), s.over) {
		if err := s.endHub(ctx, rng); err != nil {
			return err
		}
		if err := s.hub.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) endHub(ctx context.Context, rng *rand.Rand) error {
	if rng.IntN(8) == 0 {
		s.book.stopped()
		if err := s.hub.stop(); err != nil {
			s.book.fault("%v", err)
		}
		return nil
	}
	for {
		if err := s.hub.kill(); err != nil {
			return err
		}
		s.book.killed()
		pause(ctx, upTo(rng, 300*time.Millisecond), nil)
		if rng.IntN(5) > 0 {
			return nil
		}
		if _, err := s.hub.launch(); err != nil {
			return err
		}
		pause(ctx, upTo(rng, 150*time.Millisecond), nil) // it is finding out what became of its workers
	}
}
