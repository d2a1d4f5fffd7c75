package wave

import (
	"context"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// revision is a pending wave before and after an edit.
type revision struct {
	editing
	wave     hub.Wave
	tasks    []hub.WaveTask
	orders   []hub.WaveOrder
	after    judged // zero where nothing declared is changed
	reorders bool
	staged   hub.WaveUID // of the orders of after
}

// edit changes a pending wave in one transaction.
func (s *Service) edit(ctx context.Context, r receipt.Request, id hub.WaveID, known bool, ed editing) (Created, error) {
	v := revision{editing: ed, staged: hub.NewWaveUID()}
	if !known {
		if err := s.revise(ctx, id, &v); err != nil {
			return Created{}, err
		}
	}
	if v.reorders {
		ps, err := parts(nil, nil, v.after.plan.Orders)
		if err == nil {
			err = s.stageAll(ctx, v.staged, ps)
		}
		if err != nil {
			return Created{}, err
		}
	}
	out, err := receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Created, error) { return v.enter(tx, r.Principal) })
	if err != nil || out.Mutation.Replayed {
		s.drop(ctx, v.staged, v.reorders, err)
	}
	return out, err
}

// revise reads the wave and judges what the edit makes of it.
func (s *Service) revise(ctx context.Context, id hub.WaveID, v *revision) error {
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if v.wave, err = rx.Wave(id); err != nil {
			return err
		}
		if v.tasks, err = rx.WaveTasks(id); err != nil {
			return err
		}
		v.orders, err = rx.WaveOrders(id)
		return err
	})
	if err == nil && v.wave.Status != hub.WavePending {
		err = errMoved
	}
	if err != nil || v.declare == nil {
		return err
	}
	es, err := v.declare(entriesOf(v.tasks))
	if err != nil {
		return err
	}
	if v.after, err = s.judge(ctx, sourced{entries: es, done: v.completed()}, v.wave.Policy); err != nil {
		return err
	}
	v.reorders = !slices.Equal(v.orders, v.after.plan.Orders)
	return v.after.refusal()
}

// completed are the tokens of the tasks that are, but for the one that is edited.
func (v revision) completed() map[string]bool {
	out := map[string]bool{}
	for _, x := range v.tasks {
		if x.EndedAs == hub.WaveCompleted && x.Entry.Token != v.token {
			out[x.Entry.Token] = true
		}
	}
	return out
}

func entriesOf(xs []hub.WaveTask) []hub.WaveEntry {
	out := make([]hub.WaveEntry, len(xs))
	for i, x := range xs {
		out[i] = x.Entry
	}
	return out
}

// enter makes the wave what was judged, unless it is another than it was then.
func (v revision) enter(tx store.Tx, p hub.Principal) (Created, error) {
	w, err := tx.Wave(v.wave.ID)
	if err != nil {
		return Created{}, err
	}
	if w.UID != v.wave.UID || w.Version != v.wave.Version {
		return Created{}, errMoved
	}
	if err := run.Operates(tx, p, w.Run); err != nil {
		return Created{}, err
	}
	if v.declare != nil {
		if err := v.rewrite(tx, &w); err != nil {
			return Created{}, err
		}
	}
	if v.status != "" {
		if err := v.settle(tx); err != nil {
			return Created{}, err
		}
	}
	return Created{Wave: w.ID, Run: w.Run}, tx.SaveWave(w)
}

// rewrite stores what the edit changed: the places, one task with its Task, and the
// orders. Tasks keep their ids.
func (v revision) rewrite(tx store.Tx, w *hub.Wave) error {
	ids := make(map[string]hub.TaskID, len(v.tasks)+1)
	for _, x := range v.tasks {
		ids[x.Entry.Token] = x.Task
	}
	for i, e := range v.after.entries {
		x := hub.WaveTask{Wave: w.ID, Index: i, Level: v.after.plan.Places[i].Level, Sub: v.after.plan.Places[i].Sub, Entry: e}
		var err error
		if i < len(v.tasks) {
			err = v.become(tx, *w, v.tasks[i], x, ids)
		} else {
			err = added(tx, *w, x, ids)
		}
		if err != nil {
			return err
		}
	}
	w.Total, w.Warnings = len(v.after.entries), bounded(v.after.plan.Warnings)
	if !v.reorders {
		return nil
	}
	return tx.MoveWaveOrders(v.staged, w.UID)
}

// become replaces a task by what it is after the edit, if that is something else.
func (v revision) become(tx store.Tx, w hub.Wave, old, x hub.WaveTask, ids map[string]hub.TaskID) error {
	x.Task = old.Task
	if old.Level != x.Level || old.Sub != x.Sub {
		if err := tx.SaveWavePlace(x); err != nil {
			return err
		}
	}
	if x.Entry.Token != v.token {
		return nil
	}
	if _, err := run.Rewrite(tx, taskOf(w, x.Entry, ids)); err != nil {
		return err
	}
	return tx.SaveWaveEntry(x)
}

// added stores one more task and its Task.
func added(tx store.Tx, w hub.Wave, x hub.WaveTask, ids map[string]hub.TaskID) error {
	x.Task, x.Iteration = hub.NewTaskID(), w.Iteration+1
	ids[x.Entry.Token] = x.Task
	if err := tx.StageWaveTasks(w.UID, []hub.WaveTask{x}, nil); err != nil {
		return err
	}
	_, err := run.CreateTasks(tx, w.Run, []hub.Task{taskOf(w, x.Entry, ids)})
	return err
}

// settle sets the status of a task that nothing was begun with. The same status
// again changes nothing.
func (v revision) settle(tx store.Tx) error {
	x, err := tx.WaveTaskNamed(v.wave.ID, v.token)
	if err != nil {
		return err
	}
	now, err := tx.TaskState(x.Task)
	state := hub.TaskState(v.status)
	switch {
	case err != nil || now == state:
		return err
	case now == hub.TaskCompleted, now == hub.TaskFailed, now == hub.TaskCancelled:
		return ended(x, now)
	}
	if _, err := run.Update(tx, run.UpdateInput{Task: x.Task, Change: hub.TaskChange{State: state}}); err != nil {
		return err
	}
	x.EndedAs, x.EndedReason, x.CompletedAt = v.status, setByOperator(v.reason), tx.Now()
	return tx.SaveWaveProgress(x)
}

func ended(x hub.WaveTask, now hub.TaskState) error {
	e := hub.Errorf(hub.CodeTaskStateInvalid, "the task %s is %s, and stays so", x.Entry.Token, now)
	e.Hint = "a wave that has ended is run again by wave retry; a pending one can be made anew by wave create --replace"
	return e.WithNext("wavehub", "wave", "status", string(x.Wave))
}
