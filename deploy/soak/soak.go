//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// soak is one run of the program. Its folder holds the hub's home, the workers'
// folders and the witness file.
type soak struct {
	size
	tempo
	dir     string
	out     io.Writer
	hub     *hub
	witness *witness
	book    *book

	over  chan struct{} // closed when nothing new begins
	quiet chan struct{} // closed when nothing is left that could send
	fail  context.CancelCauseFunc
	lives sync.WaitGroup
	began time.Time
}

// tempo spreads the load: about seven starts and two hundred calls a second,
// however many workers there are.
type tempo struct{ life, think time.Duration }

func tempoOf(workers int) tempo {
	n := time.Duration(workers)
	return tempo{
		life:  min(max(n*150*time.Millisecond, time.Second), time.Minute),
		think: min(max(n*5*time.Millisecond, 20*time.Millisecond), 2*time.Second),
	}
}

func newSoak(cfg size, dir string, out io.Writer) *soak {
	return &soak{
		size: cfg, tempo: tempoOf(cfg.workers), dir: dir, out: out,
		hub: newHub(cfg.bin, dir), witness: newWitness(filepath.Join(dir, "witness")), book: newBook(),
		over: make(chan struct{}), quiet: make(chan struct{}), fail: func(error) {},
	}
}

// rng is the actor's own source: equal seeds draw equal lots.
func (s *soak) rng(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, actor)) }

// play lives, drains and judges. It returns when everything that it began has
// ended, but for the hub.
func (s *soak) play(ctx context.Context) error {
	fmt.Fprintf(s.out, "soak: seed %d, %s, %d coordinators, %d workers, kills every %s on average\n",
		s.seed, s.duration, s.coordinators, s.workers, s.kills)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s.fail, s.began = fail, time.Now()
	if err := s.hub.start(ctx); err != nil {
		return err
	}
	all, err := s.hireCoordinators(ctx)
	if err != nil {
		return err
	}
	if err := s.perform(ctx, all); err != nil {
		s.list(s.book.wrong)
		return err
	}
	f, err := s.survey(ctx, all)
	if err != nil {
		return fmt.Errorf("asking the hub at the end: %w", err)
	}
	for _, c := range all {
		c.operator.forget()
		c.read.hand.forget()
	}
	return s.report(judge(s.book, f))
}

// perform runs all actors until nothing is left to say.
func (s *soak) perform(ctx context.Context, all []*coordinator) error {
	var working, reading sync.WaitGroup
	working.Go(func() { s.check(s.killer(ctx)) })
	working.Go(func() { s.check(s.witness.follow(ctx, s.quiet)) })
	for _, c := range all {
		s.lives.Go(func() { s.check(c.hireAll(ctx)) })
		reading.Go(func() { s.check(c.readAll(ctx)) })
	}
	s.awaitEnd(ctx)
	close(s.over)
	s.lives.Wait()
	s.check(s.allSettled(ctx, all))
	close(s.quiet)
	reading.Wait()
	working.Wait()
	return context.Cause(ctx)
}

// check ends the soak if an actor could not go on.
func (s *soak) check(err error) {
	if err != nil {
		s.fail(err)
	}
}

// awaitEnd returns when the time is over, and tells now and then how it goes.
func (s *soak) awaitEnd(ctx context.Context) {
	end := time.NewTimer(s.duration)
	defer end.Stop()
	word, look := time.NewTicker(time.Minute), time.NewTicker(time.Second)
	defer word.Stop()
	defer look.Stop()
	for {
		select {
		case <-look.C:
			s.hub.weigh()
		case <-word.C:
			fmt.Fprintf(s.out, "%s: %s\n", time.Since(s.began).Round(time.Second), s.book.soFar())
		case <-end.C:
			s.hub.weighWorkers()
			return
		case <-ctx.Done():
			return
		}
	}
}

// cleanUp ends what the soak began: the hub, then what is left of supervisors
// and workers.
func (s *soak) cleanUp(keep bool) error {
	err := errors.Join(s.hub.stop(), s.hub.endWorkers())
	if keep {
		fmt.Fprintln(s.out, "kept:", s.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// pause waits; it is false when ctx ended or early was closed first.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-early:
	case <-ctx.Done():
	}
	return false
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// around draws a duration between a third and five thirds of the mean.
func around(rng *rand.Rand, mean time.Duration) time.Duration {
	return mean/3 + time.Duration(rng.Int64N(int64(mean)*4/3))
}

// soon draws an exponentially distributed duration.
func soon(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(rng.ExpFloat64() * float64(mean))
}

// upTo draws a duration below the limit.
func upTo(rng *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(limit)))
}
