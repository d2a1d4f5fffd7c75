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

// BuildPlan is built by the piece planner.
func BuildPlan([]hub.WaveEntry, PlanOptions) hub.Plan { return hub.Plan{} }

// PlanOptions say how to plan. Check is what is known of the world: findings and
// warnings of placements, already made.
type PlanOptions struct {
	Order, Conflicts, Verify, Scope string
	Check                           []hub.Finding
	Unchecked                       []hub.Finding
}

func (s *Service) checkpoint(context.Context, hub.Wave, []hub.WaveRow) (int, error) { return 0, nil }
