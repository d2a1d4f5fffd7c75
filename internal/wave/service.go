package wave

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// Config is what a Service needs.
type Config struct {
	Store store.Store
	Work  *work.Service
	Bus   work.Bus
	// Spawn runs a function in a goroutine with an owner; false when stopping.
	Spawn func(func(context.Context)) bool
	// LivenessSecs is that of a policy that does not say it.
	LivenessSecs int64
	// Clock reads the host's clocks; nil takes those of this process.
	Clock func() Instant
	// Files keeps the checkpoint folders; nil: the disk.
	Files Files
	Log   *slog.Logger
}

// Service is the use-cases of waves. Its methods are safe for concurrent use.
type Service struct {
	Config
	engine      *engine
	checkpoints checkpoints
}

// PlanInput is what is planned: Tasks, or the text of Source.
type PlanInput struct {
	Tasks    []hub.WaveEntry
	Source   *Source
	Defaults Defaults
	Policy   hub.WavePolicy  // cleaned
	done     map[string]bool // tokens of tasks that are completed: nobody is asked of their places
}

// Source is the text of a file of tasks.
type Source struct{ Format, Name, Text string }

// Defaults place tasks that name neither a worker nor a start.
type Defaults struct {
	Worker string
	Start  *hub.WaveStart
}

// CreateInput is the argument of Create. ID is a token, "" for one that is minted.
type CreateInput struct {
	Run           hub.RunID
	ID            hub.WaveID
	Goal, Owner   string
	Metadata      json.RawMessage
	Plan          PlanInput
	Checkpoint    *Checkpoint
	CheckpointDir string
	Replace       bool
	Spawn         bool
}

// Created is the answer of what makes or changes a wave: it is recorded by the
// wave's name, and shown as the wave is then.
type Created struct {
	Wave       hub.WaveID       `json:"wave_id"`
	Run        hub.RunID        `json:"run_id"`
	Warnings   []hub.Finding    `json:"warnings"`
	Serialized []hub.Serialized `json:"serialized"`
	Mutation   hub.Mutation     `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (c *Created) Mut() *hub.Mutation { return &c.Mutation }

// Subject is the wave.
func (c *Created) Subject() (hub.RunID, string) { return c.Run, string(c.Wave) }

// Snapshot is a wave as it is at one moment.
type Snapshot struct {
	Wave      hub.Wave
	Tasks     []TaskShown
	Summary   Summary
	Usage     Usage
	Residuals []Residual
}

// TaskShown is a task with what follows from the state of its Task.
type TaskShown struct {
	hub.WaveRow
	Status     hub.WaveStatus
	Reason     string
	WaitingFor string // "" for nothing
	Usage      *Usage // nil where nothing is known
}

// Summary counts a wave's tasks. Gate is what the wave comes to: completed, failed,
// cancelled, or running while it is open.
type Summary struct {
	Total    int
	ByStatus map[hub.WaveStatus]int // every status has its count
	Gate     hub.WaveStatus
	Levels   []LevelShown
}

// LevelShown is a level or sub-wave: running once a task of it is, failed once one
// failed, cancelled if none failed and one was cancelled.
type LevelShown struct {
	Level            int
	Sub              string
	Status           hub.WaveStatus
	Total, Completed int
}

// Usage is what attempts used, as far as it is known: input and output tokens
// without cache reads. Unmetered counts the Dispatches of which nothing is known.
type Usage struct {
	CostUSD   float64
	Tokens    int64
	Unmetered int
}

// Residual is a Dispatch of a task that has ended, whose worker is not proven gone.
type Residual struct {
	Dispatch hub.DispatchID
	Token    string
	State    hub.DispatchState
	Server   string
}
