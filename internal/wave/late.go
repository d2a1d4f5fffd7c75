package wave

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// settleLate gives the Task of a wave that is final its end, when its worker, of
// which that could not be proved then, is gone.
func (s *Service) settleLate(ctx context.Context, id hub.TaskID) error {
	var due bool
	err := s.Store.View(ctx, func(rx store.Rx) error {
		r, ok, err := rx.WaveRow(id)
		due = ok && late(r)
		return err
	})
	if err != nil || !due {
		return err
	}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		r, ok, err := tx.WaveRow(id)
		if err != nil || !ok || !late(r) {
			return err
		}
		w, err := tx.Wave(r.Wave)
		if err != nil || !w.Status.Final() {
			return err
		}
		return setTask(tx, w, r.WaveTask, latestID(r), taskState(r.EndedAs))
	})
}

// late reports whether a task that has ended waits for its Task's end only.
func late(r hub.WaveRow) bool {
	d := r.Dispatch
	return r.EndedAs != "" && r.State == hub.TaskBlocked && d != nil && r.Noted == d.ID && d.State.Final()
}
