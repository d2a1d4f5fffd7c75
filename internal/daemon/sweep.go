package daemon

import (
	"context"
	"time"

	"github.com/wavehub/wavehub/internal/receipt"
)

// sweepEvery is how often old answers are dropped; they are refused by their
// age already, so that nothing depends on it but disk space.
const sweepEvery = time.Hour

// sweep drops old answers, relay items that nobody will ask for again, and old
// events, until ctx ends. A failure is logged and tried again.
func (x *hubParts) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		n, err := receipt.Sweep(ctx, x.store)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			x.log.Warn("dropping old answers", "error", err)
		case n > 0:
			x.log.Info("dropped old answers", "receipts", n)
		}
		if n, err := x.dispatch.SweepQueues(ctx); err != nil && ctx.Err() == nil {
			x.log.Warn("dropping acknowledged relay items", "error", err)
		} else if n > 0 {
			x.log.Info("dropped acknowledged relay items", "items", n)
		}
		if n, err := x.waves.SweepEvents(ctx); err != nil && ctx.Err() == nil {
			x.log.Warn("dropping old events", "error", err)
		} else if n > 0 {
			x.log.Info("dropped old events", "events", n)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
