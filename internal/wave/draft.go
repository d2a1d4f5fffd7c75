package wave

import (
	"cmp"
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
)

// draft is a wave that is ready to be stored.
type draft struct {
	wave   hub.Wave
	tasks  []hub.WaveTask
	work   []hub.Task // the Task of each
	orders []hub.WaveOrder
}

// draft judges what is to be created and makes everything that is stored of it.
func (s *Service) draft(ctx context.Context, p hub.Principal, in CreateInput) (draft, error) {
	in.ID = cmp.Or(in.ID, hub.NewWaveID())
	if in.CheckpointDir != "" {
		if err := checkFolder(in.CheckpointDir, in.ID); err != nil {
			return draft{}, err
		}
	}
	in, back, err := in.restore()
	if err != nil {
		return draft{}, err
	}
	j, err := s.judgeInput(ctx, in.Plan)
	if err != nil {
		return draft{}, err
	}
	if err := j.refusal(); err != nil {
		return draft{}, err
	}
	w := hub.Wave{
		ID: in.ID, UID: hub.NewWaveUID(), Run: in.Run, Goal: in.Goal, Owner: cmp.Or(in.Owner, p.Name()),
		Status: hub.WavePending, Policy: in.Plan.Policy, Metadata: in.Metadata, Total: len(j.entries),
		Warnings: bounded(append(back.Warnings, j.plan.Warnings...)), Iteration: back.Iteration, Exhausted: back.Exhausted,
		CheckpointDir: in.CheckpointDir,
	}
	return drawn(w, j, back.Done)
}

// restore takes tasks, policy and goal from the checkpoint, if there is one. Tasks
// that are given as well only have to be the same.
func (in CreateInput) restore() (CreateInput, restored, error) {
	if in.Checkpoint == nil {
		return in, restored{}, nil
	}
	back, err := readCheckpoint(*in.Checkpoint, in.Plan.Policy.Verify == hub.VerifyRequired)
	if err != nil {
		return in, back, err
	}
	if in.Plan.given() {
		if err := in.Plan.same(back); err != nil {
			return in, back, err
		}
	}
	in.Goal = cmp.Or(in.Goal, back.Goal)
	in.Plan = PlanInput{Tasks: back.Entries, done: make(map[string]bool, len(back.Done))}
	for token := range back.Done {
		in.Plan.done[token] = true
	}
	in.Plan.Policy, err = back.Policy.Clean()
	return in, back, err
}

// same refuses what is given if it is no file, or not what the checkpoint has.
func (in PlanInput) same(back restored) error {
	got, err := in.read()
	if err == nil && len(got.findings) > 0 {
		err = judged{plan: hub.Plan{Findings: got.findings}}.refusal()
	}
	if err != nil {
		return err
	}
	return matchCheckpoint(back, Clean(got.entries))
}

// drawn makes the tasks of a wave and their Tasks. done are completed already.
func drawn(w hub.Wave, j judged, done map[string]evidence) (draft, error) {
	ids := make(map[string]hub.TaskID, len(j.entries))
	for _, e := range j.entries {
		ids[e.Token] = hub.NewTaskID()
	}
	d := draft{wave: w, orders: j.plan.Orders, tasks: make([]hub.WaveTask, len(j.entries)), work: make([]hub.Task, len(j.entries))}
	completed := make(map[hub.TaskID]bool, len(done))
	at := make(map[hub.TaskID]int, len(ids))
	for i, e := range j.entries {
		id, place := ids[e.Token], j.plan.Places[i]
		d.tasks[i] = hub.WaveTask{Wave: w.ID, Index: i, Level: place.Level, Sub: place.Sub, Task: id, Entry: e, WaveProgress: hub.WaveProgress{Iteration: w.Iteration + 1}}
		d.work[i], at[id] = taskOf(w, e, ids), i
		if was, ok := done[e.Token]; ok {
			d.work[i].Result, d.work[i].ResultData = was.taskResult()
			d.tasks[i].WaveProgress = carriedOver(w, was)
			completed[id] = true
		}
	}
	ts, err := run.Drawn(w.Run, d.work, completed)
	if err != nil {
		return d, err
	}
	d.work = make([]hub.Task, len(ts))
	for _, t := range ts {
		d.work[at[t.ID]] = t
	}
	return d, nil
}

// carriedOver is what is written down of a task that a checkpoint shows completed.
func carriedOver(w hub.Wave, was evidence) hub.WaveProgress {
	return hub.WaveProgress{Iteration: w.Iteration + 1, EndedAs: hub.WaveCompleted, EndedReason: endCheckpoint, CompletedAt: was.CompletedAt}
}

// endCheckpoint is the reason of a task that was completed before its wave was.
const endCheckpoint = "checkpoint"

// taskOf is what a task of a wave gives its Task. The wave's verify and scope hold
// where the task has something to hold them against.
func taskOf(w hub.Wave, e hub.WaveEntry, ids map[string]hub.TaskID) hub.Task {
	t := hub.Task{
		ID: ids[e.Token], Run: w.Run, Title: titleOf(e.Token, e.Goal), Spec: e.Goal, VerifyCmd: e.VerifyCmd, Verify: hub.VerifyRecord,
		WriteScope: e.WriteScope, Scope: hub.ScopeAdvisory, TimeoutSecs: min(e.TimeoutSecs, hub.MaxWaveTime), HandoffPath: e.HandoffPath,
		Origin: hub.WaveOrigin(w.ID), Dependencies: make([]hub.TaskID, len(e.Dependencies)),
	}
	for i, token := range e.Dependencies {
		t.Dependencies[i] = ids[token]
	}
	if e.VerifyCmd != "" {
		t.Verify = w.Policy.Verify
	}
	if len(e.WriteScope) > 0 {
		t.Scope = w.Policy.Scope
	}
	return t
}

// titleOf names a task by its token and the beginning of its goal.
func titleOf(token, goal string) string {
	return token + ": " + run.TitleOf(hub.Task{Spec: goal})
}
