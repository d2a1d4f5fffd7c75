package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/openapi/api"
)

// maxShownGoal is how much of a task's goal is shown with its wave, in bytes.
const maxShownGoal = 512

func waveOf(w hub.Wave) api.Wave {
	out := api.Wave{
		WaveId: string(w.ID), RunId: string(w.Run), Goal: w.Goal, Owner: w.Owner, Status: api.WaveStatus(w.Status), Iteration: w.Iteration,
		Policy: policyShown(w.Policy), Metadata: w.Metadata, Total: w.Total, ElapsedMs: w.ElapsedMS, DowntimeMs: w.DowntimeMS,
		CheckpointDir: null(w.CheckpointDir), Exhausted: w.Exhausted, RaiseReason: null(w.RaiseReason),
		CreatedAt: at(w.CreatedAt), StartedAt: maybeAt(w.StartedAt), CompletedAt: maybeAt(w.CompletedAt),
	}
	if e := w.Ending; e != nil {
		out.Ending = &api.WaveEnding{As: string(e.As), Reason: e.Reason}
	}
	return out
}

func policyShown(p hub.WavePolicy) api.WavePolicy {
	out := api.WavePolicy{
		Order: p.Order, OnFailure: p.OnFailure, Conflicts: p.Conflicts, Concurrency: p.Concurrency, TimeoutSecs: p.TimeoutSecs,
		LivenessSecs: p.LivenessSecs, IdleSecs: p.IdleSecs, Retry: p.Retry, MaxIterations: p.MaxIterations, Verify: p.Verify,
		Scope: p.Scope, Mail: p.Mail,
	}
	out.Budget.CostUsd, out.Budget.Tokens = p.Budget.CostUSD, p.Budget.Tokens
	return out
}

// waveNow is the wave of a snapshot, which knows what was used.
func waveNow(s wave.Snapshot) api.Wave {
	out := waveOf(s.Wave)
	out.Usage = &api.WaveUsage{CostUsd: s.Usage.CostUSD, Tokens: s.Usage.Tokens, Unmetered: s.Usage.Unmetered}
	return out
}

func waveSnapshot(s wave.Snapshot) api.WaveSnapshot {
	return api.WaveSnapshot{
		Wave: waveNow(s), Tasks: each(s.Tasks, waveTask), Summary: waveSummary(s.Summary), Residuals: each(s.Residuals, waveResidual),
	}
}

func waveSummary(s wave.Summary) api.WaveSummary {
	counts := make(map[string]int, len(hub.WaveStatuses))
	for _, status := range hub.WaveStatuses {
		counts[string(status)] = s.ByStatus[status]
	}
	return api.WaveSummary{
		Total: s.Total, ByStatus: counts, Done: s.ByStatus[hub.WaveCompleted], MergeGate: api.WaveSummaryMergeGate(s.Gate),
		Levels: each(s.Levels, waveLevel),
	}
}

func waveLevel(l wave.LevelShown) api.WaveLevel {
	return api.WaveLevel{Wave: l.Level, Sub: l.Sub, Status: api.WaveStatus(l.Status), Total: l.Total, Completed: l.Completed}
}

func waveResidual(r wave.Residual) api.WaveResidual {
	return api.WaveResidual{DispatchId: string(r.Dispatch), TaskId: r.Token, State: string(r.State), Server: r.Server}
}

func waveTask(t wave.TaskShown) api.WaveTask {
	e := t.Entry
	out := api.WaveTask{
		TaskId: e.Token, HubTaskId: string(t.Task), Goal: hub.Cut(e.Goal, maxShownGoal), Status: api.WaveStatus(t.Status), Reason: null(t.Reason),
		Level: t.Level, Sub: hub.SubLabel(t.Sub), WaveIndex: t.Index, Attempts: t.Attempts, SessionId: hub.WaveSession(t.Wave, e.Token),
		Worker: e.Worker, Start: waveStart(e.Start), Dependencies: texts(e.Dependencies), WriteScope: e.WriteScope, Workspace: e.Workspace,
		HandoffPath: e.HandoffPath, VerifyCmd: e.VerifyCmd, ReadScope: e.ReadScope, TimeoutSecs: e.TimeoutSecs, StartedAt: maybeAt(t.StartedAt), CompletedAt: maybeAt(t.CompletedAt),
		Result: null(t.Result), ResultData: t.ResultData, ScopeViolations: []string{}, WaitingFor: null(t.WaitingFor),
	}
	if t.Usage != nil {
		out.Usage = &api.WaveTaskUsage{CostUsd: t.Usage.CostUSD, Tokens: t.Usage.Tokens}
	}
	if d := t.Dispatch; d != nil {
		out.DispatchId = null(d.ID)
		addFindings(&out, d.Findings)
	}
	return out
}

// addFindings shows what was found out about the latest attempt.
func addFindings(t *api.WaveTask, f *hub.Findings) {
	if f == nil {
		return
	}
	t.VerifyResult, t.VerifiedBy, t.ScopeViolations = null(f.VerifyResult), null(f.VerifiedBy), texts(f.Violations)
}

func waveStart(s *hub.WaveStart) *api.WaveStart {
	if s == nil {
		return nil
	}
	return &api.WaveStart{
		On: s.On, Agent: s.Agent, Worktree: s.Worktree, Name: s.Name, Repo: s.Repo, Base: s.Base, Parent: s.Parent, Setup: s.Setup,
		Terminal: s.Terminal,
	}
}

// waveChanged is a mutation of a wave, and the wave as it is behind it.
type waveChanged struct {
	wave.Created
	now wave.Snapshot
}

func waveResult(c waveChanged) api.WaveResult {
	return api.WaveResult{
		Wave: waveNow(c.now), Tasks: each(c.now.Tasks, waveTask), Warnings: each(c.Warnings, planFinding),
		Serialized: each(c.Serialized, planSerialized), Mutation: mutationOf(c.Mutation),
	}
}

func waveMoved(c waveChanged) api.WaveSnapshot {
	out, m := waveSnapshot(c.now), mutationOf(c.Mutation)
	out.Mutation = &m
	return out
}

func planFinding(f hub.Finding) api.PlanFinding {
	return api.PlanFinding{Code: f.Code, Tasks: texts(f.Tasks), Detail: f.Detail, Line: f.Line}
}

func planLevel(l hub.PlanLevel) api.PlanLevel {
	return api.PlanLevel{Wave: l.Wave, Sub: l.Sub, Tasks: texts(l.Tasks)}
}

func planSerialized(s hub.Serialized) api.PlanSerialized {
	return api.PlanSerialized{Path: s.Path, First: s.First, Second: s.Second, MovedTo: s.MovedTo}
}

func wavePlan(p hub.Plan, entries []hub.WaveEntry) api.WavePlan {
	return api.WavePlan{
		Valid: p.Valid, Findings: each(p.Findings, planFinding), Levels: each(p.Levels, planLevel),
		Serialized: each(p.Serialized, planSerialized), Warnings: each(p.Warnings, planFinding), Tasks: each(entries, entryShown),
	}
}

func entryShown(e hub.WaveEntry) api.WaveEntry {
	out := api.WaveEntry{
		TaskId: e.Token, Goal: e.Goal, Worker: e.Worker, Start: waveStart(e.Start), Dependencies: e.Dependencies, WriteScope: e.WriteScope,
		ReadScope: e.ReadScope, Workspace: e.Workspace, HandoffPath: e.HandoffPath, VerifyCmd: e.VerifyCmd,
	}
	if e.TimeoutSecs != 0 {
		out.TimeoutSecs = &e.TimeoutSecs
	}
	return out
}

func waveGraph(g wave.Graph) api.WaveGraph {
	out := api.WaveGraph{
		WaveId: string(g.Wave), Levels: each(g.Levels, planLevel), Serialized: each(g.Serialized, planSerialized),
		Edges: each(g.Edges, waveEdge), Status: make(map[string]string, len(g.Status)),
	}
	for token, status := range g.Status {
		out.Status[token] = string(status)
	}
	return out
}

func waveEdge(e wave.Edge) api.WaveEdge {
	return api.WaveEdge{From: e.From, To: e.To, Kind: api.WaveEdgeKind(e.Kind)}
}
