package wave

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

func encode(v any) (json.RawMessage, error) { return json.Marshal(v) }

// updateRunning is UpdateTask of a running wave: a status ends the task, whose
// worker gets its order to stop with the commit; a goal is that of later attempts.
// Everything else of a spawned wave stays as it was planned.
func (s *Service) updateRunning(tx store.Tx, w hub.Wave, token string, in TaskUpdate) error {
	if in.Worker != "" || in.Start != nil || in.Dependencies != nil || in.WriteScope != nil || in.ReadScope != nil || in.Workspace != nil || in.HandoffPath != nil ||
		in.VerifyCmd != nil || in.TimeoutSecs != nil {
		return hub.Errorf(hub.CodeWaveRunning, "the wave %s has been spawned: of its tasks only goal and status change", w.ID)
	}
	x, err := tx.WaveTaskNamed(w.ID, token)
	if err != nil {
		return err
	}
	r, _, err := tx.WaveRow(x.Task)
	if err != nil {
		return err
	}
	if in.Goal != "" {
		if _, err := run.Update(tx, run.UpdateInput{Task: x.Task, Change: hub.TaskChange{Spec: in.Goal}}); err != nil {
			return err
		}
	}
	if in.Status == "" {
		return nil
	}
	return s.setStatus(tx, w, r, in)
}

// setStatus ends a task by the word of its operator.
func (s *Service) setStatus(tx store.Tx, w hub.Wave, r hub.WaveRow, in TaskUpdate) error {
	st := standingOf(w, r, w.Policy.Retry+1)
	if st.status == in.Status {
		return nil
	}
	if st.status.Final() {
		e := hub.Errorf(hub.CodeTaskStateInvalid, "the task %s of the wave %s is %s, and stays so", r.Entry.Token, w.ID, st.status)
		e.Hint = "a wave that has ended is run again by wave retry"
		return e
	}
	r.EndedAs, r.EndedReason, r.CompletedAt = in.Status, hub.EndSetByOperator, tx.Now()
	if in.Reason != "" {
		r.EndedReason = hub.EndSetByOperator + ": " + in.Reason
	}
	step := step{view: &view{wave: w}}
	one := task{WaveRow: r}
	for _, e := range step.outcome(&one, standing{status: r.EndedAs, reason: r.EndedReason}) {
		if err := appendTo(tx, w, r.WaveTask, e.kind, e.data); err != nil {
			return err
		}
	}
	if r.Dispatch != nil && !r.Dispatch.State.Final() {
		r.Noted = r.Dispatch.ID
		if err := s.fence(tx, w, r); err != nil {
			return err
		}
		return tx.SaveWaveProgress(r.WaveTask)
	}
	if err := tx.SaveWaveProgress(r.WaveTask); err != nil {
		return err
	}
	if want := taskState(r.EndedAs); r.State != want {
		return setTask(tx, w, r.WaveTask, latestID(r), want)
	}
	return nil
}
