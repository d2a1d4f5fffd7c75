package work

import (
	"context"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Pauses between looks at something that could not be decided. What is verified
// costs nothing while it lasts.
const (
	firstLook = time.Second
	lastLook  = time.Minute
)

// patience waits ever longer between looks; the zero value begins at firstLook.
type patience struct{ next time.Duration }

// wait returns false when ctx ended first.
func (p *patience) wait(ctx context.Context) bool {
	p.next = min(max(firstLook, 2*p.next), lastLook)
	t := time.NewTimer(p.next)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// resultBytes is how much output stands for the result of a launcher that
// completes by exit.
const resultBytes = 16 << 10

// pursue looks again, ever less often, at a start whose outcome is open, until
// its receipt says what became of it. home is as in Attachment.
func (s *Service) pursue(home hub.PeerID, id hub.DispatchID) {
	who := attempt{home, id}
	if !s.pursued.take(who) {
		return
	}
	ok := s.Spawn(func(ctx context.Context) {
		defer s.pursued.drop(who)
		var pause patience
		for pause.wait(ctx) {
			open, err := s.lookAgain(ctx, home, id)
			if err != nil && ctx.Err() == nil {
				s.Log.Warn("finding out about a start", "dispatch_id", id, "error", err)
			}
			if err == nil && !open {
				return
			}
		}
	})
	if !ok {
		s.pursued.drop(who)
	}
}

// lookAgain reports whether the outcome of a start is still open.
func (s *Service) lookAgain(ctx context.Context, home hub.PeerID, id hub.DispatchID) (open bool, err error) {
	if home == "" {
		rec, err := s.recorded(ctx, id)
		if err != nil || !openStart(rec.Receipt) {
			return false, err
		}
		if d := rec.Dispatch; !d.Local() {
			if s.LinkUp(d.Server.PeerID) {
				_, err = s.inspect(ctx, d)
			}
			return true, err
		}
	}
	a, err := s.attachment(ctx, home, id)
	if err != nil || a.Process != nil || !openStart(a.Receipt) {
		return false, err
	}
	return true, s.recover(ctx, a)
}

// Fences carries out the stops that homes order through the relay, and those
// that a restart or a process that could not be verified left undone. It runs
// until ctx ends.
func (s *Service) Fences(ctx context.Context) error {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicFence), "")
	defer cancel()
	var pause patience
	for {
		left, err := s.fencesOnce(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.Error("carrying out stops", "error", err)
		}
		if left == 0 && err == nil {
			pause = patience{}
			select {
			case <-woken:
			case <-ctx.Done():
				return nil
			}
			continue
		}
		if !s.awaitFence(ctx, woken, &pause) {
			return nil
		}
	}
}

// awaitFence waits for a new order or for the time to look at old ones again.
func (s *Service) awaitFence(ctx context.Context, woken <-chan struct{}, pause *patience) bool {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	due := make(chan struct{})
	go func() {
		defer close(due)
		pause.wait(waiting)
	}()
	select {
	case <-woken:
		stop()
	case <-due:
	}
	<-due
	return ctx.Err() == nil
}

// fencesOnce carries out every open order, each on its own, and returns how
// many there were. One that another hand is at is left to it.
func (s *Service) fencesOnce(ctx context.Context) (int, error) {
	open, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, a := range open {
		if a.Fence == nil || a.Fenced || a.Attached() && a.Fence.Reported {
			continue // what an attached worker says of a stop comes as its report
		}
		n++
		if s.hands.busy(attempt{a.Home, a.Dispatch}) {
			continue
		}
		s.Spawn(func(ctx context.Context) {
			if _, err := s.carryOut(ctx, a, a.Fence.Request, stopTimeout(0)); err != nil && ctx.Err() == nil {
				s.Log.Error("stopping a worker", "dispatch_id", a.Dispatch, "error", err)
			}
		})
	}
	return n, nil
}

func (s *Service) open(ctx context.Context) (as []hub.Attachment, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		as, err = rx.OpenAttachments()
		return err
	})
	return as, err
}
