package wave

import (
	"context"
	"errors"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Spawn starts a pending wave and returns at once. A running one is left as it is.
// timeout replaces that of the policy, in seconds.
func (s *Service) Spawn(ctx context.Context, r receipt.Request, id hub.WaveID, timeout *int64) (Created, error) {
	return receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Created, error) {
		w, err := tx.Wave(id)
		if err != nil {
			return Created{}, err
		}
		switch {
		case w.Status == hub.WaveRunning:
			return created(w), nil
		case w.Status.Final():
			return Created{}, waveFinal(w)
		}
		if w, err = s.spawn(tx, w, timeout); err != nil {
			return Created{}, err
		}
		return created(w), tx.SaveWave(w)
	})
}

func created(w hub.Wave) Created {
	return Created{Wave: w.ID, Run: w.Run, Warnings: []hub.Finding{}, Serialized: []hub.Serialized{}}
}

// waveFinal refuses what only an open wave takes.
func waveFinal(w hub.Wave) error {
	e := hub.Errorf(hub.CodeWaveFinal, "the wave %s is %s", w.ID, w.Status)
	if w.Status != hub.WaveCompleted {
		e.Hint = "run what is not completed again with wave retry, or make a new wave"
		return e.WithNext("wavehub", "wave", "retry", string(w.ID))
	}
	return e
}

// spawn is w as it starts, with the events of that; the caller stores it.
func (s *Service) spawn(tx store.Tx, w hub.Wave, timeout *int64) (hub.Wave, error) {
	if w.Iteration >= w.Policy.MaxIterations {
		return w, exhausted(w)
	}
	if err := setTimeout(&w, timeout); err != nil {
		return w, err
	}
	w.Status, w.StartedAt = hub.WaveRunning, tx.Now()
	w.Iteration++
	w.ElapsedMS, w.DowntimeMS, w.Clock = 0, 0, clockOf(s.clock())
	if err := logWave(tx, w, hub.EventWaveStarted, startedData{w.Iteration, w.Total}); err != nil {
		return w, err
	}
	if w.Iteration > 1 {
		return w, nil
	}
	return w, logOrders(tx, w)
}

type startedData struct {
	Iteration int `json:"iteration"`
	Total     int `json:"total"`
}

func setTimeout(w *hub.Wave, secs *int64) error {
	if secs == nil {
		return nil
	}
	if *secs < 0 {
		return hub.Invalid("timeout_secs", "must not be negative")
	}
	w.Policy.TimeoutSecs = hub.ClampWaveTime(*secs)
	return nil
}

// Bounds of what one transaction logs of the decisions of a plan: it may be the one
// that stores the last part of the wave too.
const (
	maxOrdersLogged  = 5000
	maxOrderBytes    = 2 << 20 // of all events of them
	maxOrderPathTold = 1 << 10
)

// eventWeight is what an event takes beside its texts.
const eventWeight = 400

// logOrders logs the decisions that serializing made. Of more than can be logged a
// warning tells.
func logOrders(tx store.Tx, w hub.Wave) error {
	orders, err := tx.WaveOrders(w.ID)
	if err != nil || len(orders) == 0 {
		return err
	}
	xs, err := tx.WaveTasks(w.ID)
	if err != nil {
		return err
	}
	size := 0
	for n, o := range orders {
		x := xs[o.Second]
		data, err := encode(serialized{x.Entry.Token, xs[o.First].Entry.Token, hub.Cut(o.Path, maxOrderPathTold)})
		if err != nil {
			return err
		}
		if size += len(data) + len(x.Entry.Token) + eventWeight; n == maxOrdersLogged || size > maxOrderBytes {
			return logWave(tx, w, hub.EventWarning, warning{Code: "serialized", Detail: number(len(orders)-n) + " more decisions: see wave graph"})
		}
		if err := appendTo(tx, w, x, hub.EventTaskSerialized, data); err != nil {
			return err
		}
	}
	return nil
}

// serialized is the data of an event of that kind.
type serialized struct {
	Task  string `json:"task_id"`
	After string `json:"after"`
	Path  string `json:"path"`
}

// Cancel ends a wave as cancelled, and waits for that as long as in says. A pending
// one ends at once, since nothing of it runs.
func (s *Service) Cancel(ctx context.Context, r receipt.Request, id hub.WaveID, in CancelInput) (Created, error) {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicWave), string(id))
	defer cancel()
	out, err := receipt.Do(ctx, s.Store, store.Settle, r, func(tx store.Tx) (Created, error) {
		w, err := tx.Wave(id)
		if err != nil {
			return Created{}, err
		}
		if w.Status.Final() {
			return Created{}, waveFinal(w)
		}
		if w.Ending != nil {
			return created(w), nil
		}
		if w.Status == hub.WavePending {
			w.Status, w.Clock = hub.WaveRunning, clockOf(s.clock())
		}
		w.Ending = &hub.WaveEnding{As: hub.WaveCancelled, Reason: hub.EndCancelled, At: tx.Now()}
		if in.Reason != "" {
			if err := logWave(tx, w, hub.EventWarning, warning{Code: "cancel_reason", Detail: in.Reason}); err != nil {
				return Created{}, err
			}
		}
		return created(w), tx.SaveWave(w)
	})
	if err != nil {
		return out, err
	}
	return out, s.untilFinal(ctx, id, woken, in.Wait)
}

// untilFinal waits for the end of a wave, no longer than it may. That it did not
// come is no error.
func (s *Service) untilFinal(ctx context.Context, id hub.WaveID, woken <-chan struct{}, wait time.Duration) error {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for {
		var w hub.Wave
		err := s.Store.View(ctx, func(rx store.Rx) (err error) {
			w, err = rx.Wave(id)
			return err
		})
		if err != nil && ctx.Err() == nil || err == nil && w.Status.Final() {
			return err
		}
		select {
		case <-woken:
		case <-limit.C:
			return nil
		case <-ctx.Done():
			return nil // it is committed; whoever asked has gone
		}
	}
}

// Retry begins a new iteration of a failed or cancelled wave: everything that is
// not completed is to be done again. It is refused while a worker of it is not
// proven gone.
func (s *Service) Retry(ctx context.Context, r receipt.Request, id hub.WaveID, in RetryInput) (Created, error) {
	if in.MaxIterations > 0 && in.Reason == "" {
		return Created{}, hub.Invalid("reason", "say why more iterations are needed")
	}
	out, err := receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Created, error) {
		w, err := tx.Wave(id)
		if err != nil {
			return Created{}, err
		}
		if w, err = s.again(tx, w, in); err != nil {
			return Created{}, err
		}
		return created(w), tx.SaveWave(w)
	})
	if hub.IsCode(err, hub.CodeMaxIterationsReached) {
		return out, errors.Join(err, s.mark(ctx, id))
	}
	return out, err
}

// again is w at the beginning of its next iteration.
func (s *Service) again(tx store.Tx, w hub.Wave, in RetryInput) (hub.Wave, error) {
	switch {
	case w.Status == hub.WaveCompleted:
		return w, waveFinal(w)
	case !w.Status.Final():
		e := hub.Errorf(hub.CodeWaveRunning, "the wave %s is %s", w.ID, w.Status)
		return w, e.WithNext("wavehub", "wave", "status", string(w.ID))
	}
	rows, err := tx.WaveRows(w.ID)
	if err != nil {
		return w, err
	}
	if err := unproven(w, rows); err != nil {
		return w, err
	}
	if in.MaxIterations > w.Policy.MaxIterations {
		w.Policy.MaxIterations, w.RaiseReason, w.Exhausted = in.MaxIterations, in.Reason, false
	}
	if in.Budget != nil {
		w.Policy.Budget = w.Policy.Budget.With(*in.Budget)
	}
	if err := affordable(tx, w); err != nil {
		return w, err
	}
	w.Ending, w.CompletedAt = nil, 0
	return s.spawn(tx, w, in.TimeoutSecs)
}

// unproven refuses a retry while a worker of the wave may still be at work.
func unproven(w hub.Wave, rows []hub.WaveRow) error {
	var e *hub.Error
	for _, r := range rows {
		if r.Dispatch == nil || r.Dispatch.State.Final() {
			continue
		}
		if e == nil {
			e = hub.Errorf(hub.CodeWaveResiduals, "%s of the wave %s is %s: its worker is not proven gone", r.Dispatch.ID, w.ID, r.Dispatch.State)
			e.Hint = "stop it again, or abandon it, and retry"
		}
		if len(e.Next) < 3 {
			e = e.WithNext("wavehub", "worker", "abandon", string(r.Dispatch.ID))
		}
	}
	if e == nil {
		return nil
	}
	return e
}

// affordable refuses an iteration of a wave that has no budget left.
func affordable(rx store.WaveReader, w hub.Wave) error {
	if !w.Policy.Budget.Set() {
		return nil
	}
	used, err := rx.WaveUsages(w.ID)
	if err != nil {
		return err
	}
	var sum Usage
	for _, u := range used {
		sum = sum.plus(usageOf(u.Usage))
	}
	if !sum.over(w.Policy.Budget) {
		return nil
	}
	e := hub.Errorf(hub.CodeBudgetExceeded, "the wave %s has used %.4f USD and %d tokens", w.ID, sum.CostUSD, sum.Tokens)
	e.Hint = "allow more with --budget"
	return e
}

func exhausted(w hub.Wave) error {
	return hub.Errorf(hub.CodeMaxIterationsReached, "the wave %s has been run %d times, and max_iterations is %d", w.ID, w.Iteration, w.Policy.MaxIterations)
}

// mark notes, once, that an iteration was asked for beyond the limit, and tells the
// Run.
func (s *Service) mark(ctx context.Context, id hub.WaveID) error {
	return s.Store.Update(ctx, store.New, func(tx store.Tx) error {
		w, err := tx.Wave(id)
		if err != nil || w.Exhausted || w.Iteration < w.Policy.MaxIterations {
			return err
		}
		w.Exhausted = true
		if err := noteExhausted(tx, w); err != nil {
			return err
		}
		return tx.SaveWave(w)
	})
}

// appendTo appends an event of a task.
func appendTo(tx store.Tx, w hub.Wave, x hub.WaveTask, kind string, data any) error {
	raw, err := encode(data)
	if err != nil {
		return err
	}
	_, err = tx.AppendEvent(hub.WaveEvent{Run: w.Run, Type: kind, Wave: w.ID, Token: x.Entry.Token, Task: x.Task, Index: x.Index, Total: w.Total, Data: raw})
	return err
}
