package work

import (
	"context"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
)

// unspoolAll accepts what the workers of a process that is gone have spooled.
// Nobody of theirs is left to add to it.
func (s *Service) unspoolAll(ctx context.Context, in hub.Incarnation) error {
	as, err := s.workersOf(ctx, in)
	if err != nil {
		return err
	}
	for _, a := range as {
		if err := s.Unspool(ctx, a.Dispatch); err != nil {
			return fmt.Errorf("draining the spool of %s before its exit: %w", a.Dispatch, err)
		}
	}
	return nil
}
