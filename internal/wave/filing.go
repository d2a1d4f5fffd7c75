package wave

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
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

// maxRefiled bounds how many waves of each ending are looked at when the hub starts,
// maxStateFile what is read of a state.json: a goal and little more.
const (
	maxRefiled   = 100
	maxStateFile = 1 << 20
)

// lastFiled are the newest waves that have ended and have a folder.
func lastFiled(rx store.WaveReader) (out []hub.Wave, err error) {
	for _, status := range hub.WaveStatuses {
		if !status.Final() {
			continue
		}
		ws, _, err := rx.WaveList(store.WaveFilter{Status: status}, store.Page{Limit: maxRefiled})
		if err != nil {
			return nil, err
		}
		for _, w := range ws {
			if w.CheckpointDir != "" {
				out = append(out, w)
			}
		}
	}
	return out, nil
}

// unfiled reports whether the folder of a wave that has ended does not say so: the
// hub ended first. A folder that is gone, and one of another wave, are left alone.
func (s *Service) unfiled(w hub.Wave) bool {
	files, folder := s.Files, waveFolder(w.CheckpointDir, w.ID)
	if files == nil {
		files = diskFiles{}
	}
	there := func(name string) bool {
		_, err := files.Read(filepath.Join(folder, name), 0) // others than a missing one are too large
		return !errors.Is(err, fs.ErrNotExist)
	}
	if !there(graphName) || !there(stateName) {
		return there(graphName)
	}
	var said stateFile
	raw, err := files.Read(filepath.Join(folder, stateName), maxStateFile)
	if err != nil || json.Unmarshal(raw, &said) != nil || !said.sameWave(headOf(w, "")) {
		return false
	}
	return said.Status != w.Status || said.Iteration != w.Iteration || w.Exhausted && !there(markerName)
}
