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
	return s.apply(tx, w, r, setBy(w, task{WaveRow: r, tries: tried}, standing{status: in.Status, reason: setByOperator(in.Reason)}))
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
