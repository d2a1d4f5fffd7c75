package wave

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

var errUnbuilt = hub.Errorf(hub.CodeInternal, "unbuilt")

// updateRunning is built with the engine: a change of a task's status, and of its
// goal if in has one, in a wave that is running or was, whose request may be on
// record. editText and recalled are for it.
func (s *Service) updateRunning(context.Context, receipt.Request, hub.WaveID, string, TaskUpdate) (Created, error) {
	return Created{}, errUnbuilt
}

// spawn is built with the engine: it marks a stored wave running, and saves it.
func spawn(store.Tx, hub.Wave, *int64) (hub.Wave, error) { return hub.Wave{}, errUnbuilt }

// waiting is built with the engine.
func (s *Service) waiting(hub.Wave, hub.WaveRow) string { return "" }

// Spawn is built with the engine.
func (s *Service) Spawn(context.Context, receipt.Request, hub.WaveID, *int64) (Created, error) {
	return Created{}, errUnbuilt
}

// Cancel is built with the engine.
func (s *Service) Cancel(context.Context, receipt.Request, hub.WaveID, CancelInput) (Created, error) {
	return Created{}, errUnbuilt
}

// Retry is built with the engine.
func (s *Service) Retry(context.Context, receipt.Request, hub.WaveID, RetryInput) (Created, error) {
	return Created{}, errUnbuilt
}

// New makes a Service; it starts nothing.
func New(c Config) *Service { return &Service{Config: c} }

// Run reconciles running waves until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// LinkUp has what waits for a peer tried at once.
func (s *Service) LinkUp(hub.PeerID) {}
