package work

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// RepeatStart is the request that began a Dispatch, made again by who made it: it
// finds out what became of a start whose outcome is unknown. A peer that may not
// have got the request gets the same bytes once more, under the same id; everybody
// else is only asked. It does nothing to a Dispatch in any other state.
func (s *Service) RepeatStart(ctx context.Context, id hub.DispatchID) error {
	var d hub.Dispatch
	var begun hub.Receipt
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if d, err = rx.Dispatch(id); err != nil {
			return err
		}
		begun, err = s.startReceipt(rx, d)
		return err
	})
	switch {
	case err != nil || d.State != hub.StartUnknown:
		return err
	case d.Local():
		_, err = s.observeStart(ctx, begun)
	default:
		_, err = s.observeRemote(ctx, begun)
	}
	return err
}
