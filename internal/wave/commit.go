package wave

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// commit writes a decision down, in one transaction. What has changed since the
// decision rested on it is left alone: it is decided again.
func (l *loop) commit(ctx context.Context, d decision) error {
	stamped, timed := l.clock.stamp(l.wave), false
	err := l.s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		timed = false
		w, err := tx.Wave(l.id)
		if err != nil || w.Version != l.wave.Version {
			return err
		}
		w.ElapsedMS, w.DowntimeMS, w.Clock = stamped.ElapsedMS, stamped.DowntimeMS, stamped.Clock
		ending, err := l.write(tx, w, d)
		if err != nil {
			return err
		}
		if ending != nil {
			if err := l.beginEnd(tx, &w, *ending); err != nil {
				return err
			}
		}
		if timed = ending != nil || d.final != "" || l.clock.due(); !timed {
			return nil
		}
		if d.final != "" {
			return l.finalize(tx, w, d.final)
		}
		return tx.SaveWave(w)
	})
	l.poke(func() {
		for _, c := range d.changes {
			l.dirty[l.tasks[c.index].Task] = struct{}{}
		}
	})
	if err == nil && timed {
		l.clock.saved()
	}
	return err
}

// commitFitting is commit of as much as one transaction holds: Tasks may have large
// texts and results. What is left is decided again.
func (l *loop) commitFitting(ctx context.Context, d decision) error {
	for {
		err := l.commit(ctx, d)
		if !hub.IsCode(err, hub.CodeTooLarge) || len(d.changes) < 2 {
			return err
		}
		d.changes = d.changes[:len(d.changes)/2]
	}
}

// write writes the changes down that still hold, and returns the ending if it does.
func (l *loop) write(tx store.Tx, w hub.Wave, d decision) (*hub.WaveEnding, error) {
	rows := make(map[int]hub.WaveRow, len(d.changes))
	var failed error
	ending, changes := d.holding(func(i int) bool {
		r, ok, err := tx.WaveRow(l.tasks[i].Task)
		rows[i], failed = r, errors.Join(failed, err)
		return ok && err == nil && same(r, l.tasks[i].WaveRow)
	})
	for _, c := range changes {
		if failed == nil {
			failed = l.s.apply(tx, w, rows[c.index], c)
		}
	}
	return ending, failed
}

// apply writes a change of a task down: the end of its worker, of its Task, and what
// the log says of it.
func (s *Service) apply(tx store.Tx, w hub.Wave, r hub.WaveRow, c change) error {
	if c.fence {
		if err := s.fence(tx, w, r); err != nil {
			return err
		}
	}
	if c.set != "" {
		if err := setTask(tx, w, r.WaveTask, latestID(r), c.set); err != nil {
			return err
		}
	}
	r.WaveProgress = c.progress
	if c.progress.EndedAs != "" && c.progress.CompletedAt == 0 {
		r.CompletedAt = tx.Now()
	}
	if err := tx.SaveWaveProgress(r.WaveTask); err != nil {
		return err
	}
	return logTask(tx, w, r, c.events)
}

// same reports whether a task is as it was when it was decided on.
func same(a, b hub.WaveRow) bool {
	if a.WaveProgress != b.WaveProgress || a.State != b.State || (a.Dispatch == nil) != (b.Dispatch == nil) {
		return false
	}
	return a.Dispatch == nil || a.Dispatch.ID == b.Dispatch.ID && a.Dispatch.Version == b.Dispatch.Version
}

// logTask appends events of a task. The warning of an idle worker is mail too.
func logTask(tx store.Tx, w hub.Wave, r hub.WaveRow, es []event) error {
	for _, e := range es {
		if err := appendTo(tx, w, r.WaveTask, e.kind, e.data); err != nil {
			return err
		}
		if about, ok := e.data.(warning); ok {
			if err := noteIdle(tx, w, r, about); err != nil {
				return err
			}
		}
	}
	return nil
}

// logWave appends an event of the wave itself.
func logWave(tx store.Tx, w hub.Wave, kind string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = tx.AppendEvent(hub.WaveEvent{Run: w.Run, Type: kind, Wave: w.ID, Total: w.Total, Data: raw})
	return err
}

// engineCaller is the principal of all that the engine does.
var engineCaller = hub.Principal{Kind: hub.Engine}

// request is an operation of the engine: its id follows from what it is for, so that
// whoever decides the same again makes the same request. d is the Dispatch that the
// operation is about, or comes behind.
func request(w hub.WaveUID, iteration int, token, op string, d hub.DispatchID, args any) (receipt.Request, error) {
	behind := string(d)
	if behind == "" {
		behind = "-"
	}
	key := receipt.DerivedKey("wave/1", string(w), token, op, number(iteration), behind)
	return receipt.New(engineCaller, key, "wave."+op, args)
}

// fence ends the latest Dispatch of a task: its owner has its order with the commit.
// One whose owner can have none any more is given up.
func (s *Service) fence(tx store.Tx, w hub.Wave, r hub.WaveRow) error {
	q, in, err := stopRequest(w, r)
	if err != nil {
		return err
	}
	_, err = s.Work.BeginStop(tx, q, in)
	for _, gone := range []hub.Code{hub.CodePeerRevoked, hub.CodePeerChanged, hub.CodePeerStoreChanged, hub.CodePeerNotFound, hub.CodeCapabilityUnsupported} {
		if hub.IsCode(err, gone) {
			_, _, err = s.Work.GiveUp(tx, r.Dispatch.ID)
		}
	}
	return err
}

func stopRequest(w hub.Wave, r hub.WaveRow) (receipt.Request, work.StopInput, error) {
	in := work.StopInput{Dispatch: r.Dispatch.ID}
	q, err := request(w.UID, 0, r.Entry.Token, "stop", r.Dispatch.ID, in)
	return q, in, err
}

func latestID(r hub.WaveRow) hub.DispatchID {
	if r.Dispatch == nil {
		return ""
	}
	return r.Dispatch.ID
}

// setTask moves the Task of a task, by the operation that task update is.
func setTask(tx store.Tx, w hub.Wave, x hub.WaveTask, behind hub.DispatchID, to hub.TaskState) error {
	in := run.UpdateInput{Task: x.Task, Change: hub.TaskChange{State: to}}
	q, err := request(w.UID, pass(w), x.Entry.Token, "set:"+string(to), behind, in)
	if err != nil {
		return err
	}
	_, err = receipt.InTx(tx, q, func(tx store.Tx) (moved, error) {
		t, err := run.Update(tx, in)
		return moved{Run: t.Run, Task: t.ID, State: t.State}, err
	})
	return err
}

// moved is the record of a Task's move.
type moved struct {
	Run      hub.RunID     `json:"run_id"`
	Task     hub.TaskID    `json:"task_id"`
	State    hub.TaskState `json:"state"`
	Mutation hub.Mutation  `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (m *moved) Mut() *hub.Mutation { return &m.Mutation }

// Subject is the Task.
func (m *moved) Subject() (hub.RunID, string) { return m.Run, string(m.Task) }

// beginEnd commits why the wave ends.
func (l *loop) beginEnd(tx store.Tx, w *hub.Wave, e hub.WaveEnding) error {
	e.At = tx.Now()
	w.Ending = &e
	if e.Reason != hub.EndBudget {
		return nil
	}
	spent := l.spent()
	return noteBudget(tx, *w, spent)
}

// finalize ends the wave: its status, its event and its one notice.
func (l *loop) finalize(tx store.Tx, w hub.Wave, as hub.WaveStatus) error {
	rows, err := tx.WaveRows(w.ID)
	if err != nil {
		return err
	}
	w.Status, w.CompletedAt = as, tx.Now()
	if w.Ending == nil && as != hub.WaveCompleted {
		w.Ending = &hub.WaveEnding{As: as, Reason: endOf(as), At: tx.Now()}
	}
	if err := tx.SaveWave(w); err != nil {
		return err
	}
	reason := ""
	if w.Ending != nil {
		reason = w.Ending.Reason
	}
	kind := map[hub.WaveStatus]string{hub.WaveCompleted: hub.EventWaveCompleted, hub.WaveFailed: hub.EventWaveFailed, hub.WaveCancelled: hub.EventWaveCancelled}[as]
	return errors.Join(logWave(tx, w, kind, cancellation{Reason: reason}), noteFinal(tx, w, rows))
}

func endOf(as hub.WaveStatus) string {
	if as == hub.WaveFailed {
		return hub.EndTaskFailed
	}
	return hub.EndCancelled
}

// keepTime writes the elapsed time down when it is time.
func (l *loop) keepTime(ctx context.Context) error {
	if !l.clock.due() {
		return nil
	}
	stamped, timed := l.clock.stamp(l.wave), false
	err := l.s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		w, err := tx.Wave(l.id)
		if timed = err == nil && w.Version == l.wave.Version; !timed {
			return err
		}
		return tx.SaveWave(stamped)
	})
	if err == nil && timed {
		l.clock.saved()
	}
	return err
}
