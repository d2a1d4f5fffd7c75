package work

import (
	"context"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// AwaitEnd is Show once the Dispatch is final, or when the wait is over. It is
// woken by commits and asks no peer while it waits: what an unknown start or stop
// came to is found out by Show, and by whoever repeats the request.
func (s *Service) AwaitEnd(ctx context.Context, id hub.DispatchID, wait time.Duration) (Shown, error) {
	if wait > 0 {
		if err := s.awaitEnd(ctx, id, wait); err != nil {
			return Shown{}, err
		}
	}
	return s.Show(ctx, id)
}

func (s *Service) awaitEnd(ctx context.Context, id hub.DispatchID, wait time.Duration) error {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicDispatch), string(id))
	defer cancel()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		var d hub.Dispatch
		err := s.Store.View(ctx, func(rx store.Rx) (err error) {
			d, err = rx.Dispatch(id)
			return err
		})
		if err != nil || d.State.Final() {
			return err
		}
		select {
		case <-woken:
		case <-deadline.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
