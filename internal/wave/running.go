package wave

import (
	"context"
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

func encode(v any) (json.RawMessage, error) { return json.Marshal(v) }

// updateRunning ends a task of a running wave: its worker gets its order to stop
// with the commit. A goal is that of later attempts.
func (s *Service) updateRunning(ctx context.Context, q receipt.Request, id hub.WaveID, token string, in TaskUpdate) (Created, error) {
	return receipt.Do(ctx, s.Store, store.Settle, q, func(tx store.Tx) (Created, error) {
		w, err := tx.Wave(id)
		if err != nil {
			return Created{}, err
		}
		if w.Status != hub.WaveRunning {
			return Created{}, errMoved
		}
		if err := run.Operates(tx, q.Principal, w.Run); err != nil {
			return Created{}, err
		}
		if in.Goal != "" {
			if err := editText(tx, w, token, in.Goal); err != nil {
				return Created{}, err
			}
		}
		x, err := tx.WaveTaskNamed(id, token)
		if err != nil {
			return Created{}, err
		}
		r, _, err := tx.WaveRow(x.Task)
		if err != nil {
			return Created{}, err
		}
		return created(w), s.setStatus(tx, w, r, in)
	})
}

// setByOperator is the reason of a task whose status an operator set, with theirs.
func setByOperator(reason string) string {
	if reason == "" {
		return hub.EndSetByOperator
	}
	return hub.EndSetByOperator + ": " + reason
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
	r.EndedAs, r.EndedReason, r.CompletedAt = in.Status, setByOperator(in.Reason), tx.Now()
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
