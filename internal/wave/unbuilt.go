package wave

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
)

var errUnbuilt = hub.Errorf(hub.CodeInternal, "unbuilt")

// Plan is built by the piece service.
func (s *Service) Plan(context.Context, PlanInput) (hub.Plan, []hub.WaveEntry, error) {
	return hub.Plan{}, nil, errUnbuilt
}

// Create is built by the piece service.
func (s *Service) Create(context.Context, receipt.Request, CreateInput) (Created, error) {
	return Created{}, errUnbuilt
}

// AddTask is built by the piece service.
func (s *Service) AddTask(context.Context, receipt.Request, hub.WaveID, hub.WaveEntry) (Created, error) {
	return Created{}, errUnbuilt
}

// UpdateTask is built by the piece service (pending waves) and by the engine.
func (s *Service) UpdateTask(context.Context, receipt.Request, hub.WaveID, string, TaskUpdate) (Created, error) {
	return Created{}, errUnbuilt
}

// Show is built by the piece service.
func (s *Service) Show(context.Context, hub.WaveID) (Snapshot, error) { return Snapshot{}, errUnbuilt }

// Graph is built by the piece service.
func (s *Service) Graph(context.Context, hub.WaveID) (Graph, error) { return Graph{}, errUnbuilt }

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
