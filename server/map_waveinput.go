package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/openapi/api"
)

// wavePolicy is the policy that a caller asks for; what is left out has its
// default, of which liveness is the hub's.
func wavePolicy(b api.WavePolicyInput, liveness int64) (hub.WavePolicy, error) {
	p := hub.DefaultWavePolicy(liveness)
	p.Order, p.OnFailure, p.Conflicts = cmp.Or(string(b.Order), p.Order), cmp.Or(string(b.OnFailure), p.OnFailure), cmp.Or(string(b.Conflicts), p.Conflicts)
	p.Verify, p.Scope, p.Mail = cmp.Or(string(b.Verify), p.Verify), cmp.Or(string(b.Scope), p.Scope), cmp.Or(string(b.Mail), p.Mail)
	p.Concurrency, p.Retry, p.MaxIterations = b.Concurrency, b.Retry, cmp.Or(b.MaxIterations, p.MaxIterations)
	p.TimeoutSecs, p.LivenessSecs, p.IdleSecs = given(b.TimeoutSecs, p.TimeoutSecs), given(b.LivenessSecs, p.LivenessSecs), given(b.IdleSecs, p.IdleSecs)
	if b.Budget != nil {
		p.Budget = p.Budget.With(*waveBudget(b.Budget))
	}
	return p.Clean()
}

// given is what a caller said, else the standard.
func given[T any](v *T, standard T) T {
	if v == nil {
		return standard
	}
	return *v
}

func waveBudget(b *api.WaveBudget) *hub.BudgetChange {
	if b == nil {
		return nil
	}
	return &hub.BudgetChange{CostUSD: b.CostUsd, Tokens: b.Tokens}
}

// waveTime is a time-out within its bounds, nil where none was given.
func waveTime(secs *int64) *int64 {
	if secs == nil {
		return nil
	}
	clamped := hub.ClampWaveTime(*secs)
	return &clamped
}

// waveEntry is a task as declared. A negative time-out stays, for the plan to find.
func waveEntry(b api.WaveEntry) hub.WaveEntry {
	return hub.WaveEntry{
		Token: b.TaskId, Goal: b.Goal, Worker: b.Worker, Start: startOfWave(b.Start), Dependencies: b.Dependencies, WriteScope: b.WriteScope,
		ReadScope: b.ReadScope, Workspace: b.Workspace, HandoffPath: b.HandoffPath, VerifyCmd: b.VerifyCmd,
		TimeoutSecs: given(waveTime(b.TimeoutSecs), 0),
	}
}

func startOfWave(b *api.WaveStart) *hub.WaveStart {
	if b == nil {
		return nil
	}
	return &hub.WaveStart{
		On: b.On, Agent: b.Agent, Worktree: b.Worktree, Name: b.Name, Repo: b.Repo, Base: b.Base, Parent: b.Parent, Setup: b.Setup,
		Terminal: b.Terminal,
	}
}

func waveDefaults(b *api.WaveDefaults) wave.Defaults {
	if b == nil {
		return wave.Defaults{}
	}
	return wave.Defaults{Worker: b.Worker, Start: startOfWave(b.Start)}
}

func waveSource(b *api.WaveSource) *wave.Source {
	if b == nil {
		return nil
	}
	return &wave.Source{Format: string(b.Format), Name: b.Name, Text: b.Text}
}

func planInput(b api.WavePlanRequest, liveness int64) (wave.PlanInput, error) {
	if b.Tasks != nil && b.Source != nil {
		return wave.PlanInput{}, hub.Invalid("source", "tasks are given too: give one of both")
	}
	p, err := wavePolicy(b.Policy, liveness)
	return wave.PlanInput{Tasks: each(b.Tasks, waveEntry), Source: waveSource(b.Source), Defaults: waveDefaults(b.Defaults), Policy: p}, err
}

func waveInput(b api.WaveCreate, liveness int64) (wave.CreateInput, error) {
	plan, err := planInput(api.WavePlanRequest{Tasks: b.Tasks, Source: b.Source, Defaults: b.Defaults, Policy: b.Policy}, liveness)
	if err != nil {
		return wave.CreateInput{}, err
	}
	if b.Checkpoint != nil && b.Policy != (api.WavePolicyInput{}) {
		return wave.CreateInput{}, hub.Invalid("policy", "it is the checkpoint's: leave it away")
	}
	if err := metadataObject(b.Metadata); err != nil {
		return wave.CreateInput{}, err
	}
	checkpoint, err := waveCheckpoint(b.Checkpoint)
	return wave.CreateInput{
		Run: hub.RunID(b.RunId), ID: hub.WaveID(b.WaveId), Goal: b.Goal, Owner: b.Owner, Metadata: b.Metadata, Plan: plan,
		Checkpoint: checkpoint, CheckpointDir: b.CheckpointDir, Replace: b.Replace, Spawn: b.Spawn,
	}, err
}

func metadataObject(raw json.RawMessage) error {
	if text := bytes.TrimSpace(raw); len(text) > 0 && text[0] != '{' {
		return hub.Invalid("metadata", "must be a JSON object")
	}
	return nil
}

func waveCheckpoint(b *api.WaveCheckpoint) (*wave.Checkpoint, error) {
	if b == nil {
		return nil, nil
	}
	out := &wave.Checkpoint{Graph: b.Graph, State: b.State, Done: make(map[int]string, len(b.Done)), Exhausted: b.Exhausted}
	for name, text := range b.Done {
		level, err := strconv.Atoi(name)
		if err != nil || level < 1 || strconv.Itoa(level) != name {
			return nil, hub.Invalid("checkpoint.done."+name, "must be under the number of a level, from 1")
		}
		out.Done[level] = text
	}
	return out, nil
}

func waveTaskUpdate(b api.WaveTaskUpdate) wave.TaskUpdate {
	return wave.TaskUpdate{
		Status: hub.WaveStatus(b.Status), Reason: b.Reason, Goal: b.Goal, Worker: b.Worker, Start: startOfWave(b.Start),
		Dependencies: b.Dependencies, WriteScope: b.WriteScope, ReadScope: b.ReadScope, Workspace: b.Workspace, HandoffPath: b.HandoffPath,
		VerifyCmd: b.VerifyCmd, TimeoutSecs: waveTime(b.TimeoutSecs),
	}
}
