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
	tried, err := triesOf(tx, r)
	if err != nil {
		return err
	}
	st := standingOf(w, r, tried.failures)
	if st.status == in.Status {
		return nil
	}
	if st.status.Final() {
		e := hub.Errorf(hub.CodeTaskStateInvalid, "the task %s of the wave %s is %s, and stays so", r.Entry.Token, w.ID, st.status)
		e.Hint = "a wave that has ended is run again by wave retry"
		return e
	}
	reason := hub.EndSetByOperator
	if in.Reason != "" {
		reason += ": " + in.Reason
	}
	return s.apply(tx, w, r, setBy(w, task{WaveRow: r, tries: tried}, standing{status: in.Status, reason: reason}))
}

// setBy is the end of a task by somebody's word, as the loop would decide it. The
// loop may not have opened the task yet in an iteration that has just begun.
func setBy(w hub.Wave, t task, st standing) change {
	if t.Iteration != pass(w) {
		t.WaveProgress, t.tries = opened(w, 0, t.WaveRow).progress, tries{}
	}
	c, s := change{progress: t.WaveProgress}, step{view: &view{wave: w}}
	s.note(&c, &t)
	s.conclude(&c, &t, st)
	return c
}
