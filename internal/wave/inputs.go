package wave

import (
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// TaskUpdate changes a task of a wave: its status, or what was declared of it; nil
// leaves a thing as it is.
type TaskUpdate struct {
	Status       hub.WaveStatus `json:"status,omitempty"` // completed, failed, cancelled
	Reason       string         `json:"reason,omitempty"`
	Goal         string         `json:"goal,omitempty"`
	Worker       string         `json:"worker,omitempty"`
	Start        *hub.WaveStart `json:"start,omitempty"`
	Dependencies *[]string      `json:"dependencies,omitempty"`
	WriteScope   *[]string      `json:"write_scope,omitempty"`
	ReadScope    *[]string      `json:"read_scope,omitempty"`
	Workspace    *string        `json:"workspace,omitempty"`
	HandoffPath  *string        `json:"handoff_path,omitempty"`
	VerifyCmd    *string        `json:"verify_cmd,omitempty"`
	TimeoutSecs  *int64         `json:"timeout_secs,omitempty"`
}

// CancelInput is the argument of Cancel. Wait bounds how long it waits for the end.
type CancelInput struct {
	Reason string
	Wait   time.Duration
}

// RetryInput is the argument of Retry. MaxIterations raises the limit, which needs
// a Reason; Budget changes the budget; 0 and nil leave them.
type RetryInput struct {
	MaxIterations int               `json:"max_iterations,omitempty"`
	Reason        string            `json:"reason,omitempty"`
	TimeoutSecs   *int64            `json:"timeout_secs,omitempty"`
	Budget        *hub.BudgetChange `json:"budget,omitempty"`
}

// Graph is the plan of a wave as it is stored.
type Graph struct {
	Wave       hub.WaveID
	Levels     []hub.PlanLevel
	Serialized []hub.Serialized
	Edges      []Edge
	Status     map[string]hub.WaveStatus
}

// Edge is a dependency, or an ordering that serializing made.
type Edge struct{ From, To, Kind string }
