package wave

import (
	"context"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// filing keeps the checkpoint folder of a wave up with its store.
type filing struct {
	due     bool          // something has changed since it was written
	through int           // the last level whose done.json is there; -1 without a folder
	retryAt time.Duration // when a failed write is tried again, 0 for none
	pause   time.Duration
	failing bool
}

// file writes what the folder lacks. A failure is told once, and tried again.
func (l *loop) file(ctx context.Context) error {
	f := &l.files
	if l.wave.CheckpointDir == "" {
		f.through = -1
		return nil
	}
	if !f.due || f.retryAt > l.clock.now {
		return nil
	}
	rows := make([]hub.WaveRow, len(l.tasks))
	for i := range l.tasks {
		rows[i] = l.tasks[i].WaveRow
	}
	through, err := l.s.checkpoint(ctx, l.wave, rows)
	if err == nil {
		moved := through != f.through
		*f = filing{through: through}
		if moved {
			l.poke(func() {}) // what waited for it may start
		}
		return nil
	}
	f.pause = min(max(2*f.pause, minPause), maxPause)
	f.retryAt = l.clock.now + f.pause
	if f.failing {
		return nil
	}
	f.failing = true
	l.s.Log.Warn("writing a checkpoint", "wave", l.id, "error", err)
	return l.s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		return logWave(tx, l.wave, hub.EventWarning, warning{Code: "checkpoint_failed", Detail: err.Error()})
	})
}

// fileAll writes the folder of a wave that is final, for as long as it takes.
func (l *loop) fileAll(ctx context.Context) error {
	for l.files.due = true; ; {
		if err := l.file(ctx); err != nil || !l.files.due || l.wave.CheckpointDir == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.woken:
			return l.refreshed(ctx)
		case <-time.After(l.files.retryAt - l.clock.now):
		}
		l.clock.look(l.s.clock())
	}
}

// refreshed reads the wave again while its folder cannot be written: it may have
// been retried.
func (l *loop) refreshed(ctx context.Context) error {
	if err := l.refresh(ctx); err != nil || l.wave.Status == hub.WaveRunning {
		return err
	}
	return l.fileAll(ctx)
}
