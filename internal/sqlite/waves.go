package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	waveCols = "uid, id, run, goal, owner, status, ending, policy, metadata, total, warnings, iteration, raise_reason, exhausted, " +
		"checkpoint_dir, filed, elapsed_ms, downtime_ms, clock, created_at, started_at, completed_at, version"

	waveQuery    = `SELECT ` + waveCols + ` FROM waves WHERE id = ?`
	runningQuery = `SELECT id FROM waves WHERE status = 'running' ORDER BY rid`
	deleteWave   = `DELETE FROM waves WHERE uid = ?`
	unfiledQuery = `SELECT id FROM waves WHERE rid > 0 AND checkpoint_dir <> '' AND filed < version AND status || '' IN ('completed', 'failed', 'cancelled') ORDER BY rid`
	fileWave     = `UPDATE waves SET filed = ? WHERE uid = ? AND filed < ?`

	// A replaced wave's Tasks are cancelled as task update would, all at once.
	withdrawTasks = `UPDATE tasks SET state = 'cancelled', version = version + 1, updated_at = ?
		WHERE id IN (SELECT task FROM wave_tasks WHERE uid = ?) AND state IN ('pending', 'ready') AND latest = ''`
)

var (
	insertWave = insertInto("waves", waveCols)
	updateWave = updateSet("waves", waveCols, 1)
)

func scanWave(s scanner, w *hub.Wave) error {
	return s.Scan(&w.UID, &w.ID, &w.Run, &w.Goal, &w.Owner, &w.Status, fromJSON{&w.Ending}, fromJSON{&w.Policy}, (*[]byte)(&w.Metadata), &w.Total,
		fromJSON{&w.Warnings}, &w.Iteration, &w.RaiseReason, &w.Exhausted, &w.CheckpointDir, &w.Filed, &w.ElapsedMS, &w.DowntimeMS, fromJSON{&w.Clock},
		&w.CreatedAt, &w.StartedAt, &w.CompletedAt, &w.Version)
}

// waveArgs is in the order of waveCols.
func waveArgs(w hub.Wave) []any {
	return []any{w.UID, w.ID, w.Run, w.Goal, w.Owner, w.Status, asJSON{w.Ending}, asJSON{w.Policy}, blob(w.Metadata), w.Total,
		asJSON{w.Warnings}, w.Iteration, w.RaiseReason, w.Exhausted, w.CheckpointDir, w.Filed, w.ElapsedMS, w.DowntimeMS, asJSON{w.Clock},
		w.CreatedAt, w.StartedAt, w.CompletedAt, w.Version}
}

func noWave(id hub.WaveID) error { return hub.Errorf(hub.CodeWaveNotFound, "there is no wave %s", id) }

// Wave implements store.WaveReader.
func (q querier) Wave(id hub.WaveID) (hub.Wave, error) {
	w, err := must(q, scanWave, noWave(id), waveQuery, id)
	return w, wrap(err, "reading the wave %s", id)
}

// WaveList implements store.WaveReader.
func (q querier) WaveList(f store.WaveFilter, p store.Page) ([]hub.Wave, int64, error) {
	query, args := wavePage(f)
	ws, next, err := paged(q, scanWave, p.Limit, query, append(args, before(p.Before))...)
	return ws, next, wrap(err, "listing waves")
}

// wavePage is the query of a page of waves, with its arguments up to the page's.
func wavePage(f store.WaveFilter) (query string, args []any) {
	where := ""
	if f.Status != "" {
		where, args = where+"status = ? AND ", append(args, f.Status)
	}
	if f.Run != "" {
		where, args = where+"run = ? AND ", append(args, f.Run)
	}
	return `SELECT ` + waveCols + `, rid FROM waves WHERE ` + where + `rid < ? ORDER BY rid DESC LIMIT ?`, args
}

// RunningWaves implements store.WaveReader.
func (q querier) RunningWaves() ([]hub.WaveID, error) {
	ids, err := all(q, func(s scanner, id *hub.WaveID) error { return s.Scan(id) }, runningQuery)
	return ids, wrap(err, "listing running waves")
}

// UnfiledWaves implements store.WaveReader.
func (q querier) UnfiledWaves() ([]hub.WaveID, error) {
	ids, err := all(q, func(s scanner, id *hub.WaveID) error { return s.Scan(id) }, unfiledQuery)
	return ids, wrap(err, "listing waves whose folder is behind")
}

// WaveFiled implements store.Waves.
func (tx *Tx) WaveFiled(uid hub.WaveUID, version int64) error {
	_, err := tx.exec(fileWave, version, uid, version)
	return wrap(err, "noting what the folder of a wave shows")
}

// PutWave implements store.Waves.
func (tx *Tx) PutWave(w hub.Wave) error {
	w.Version = 1
	_, err := tx.exec(insertWave, waveArgs(w)...)
	if tx.unique(err) {
		return hub.Errorf(hub.CodeWaveExists, "there is a wave %s", w.ID)
	}
	if err == nil {
		err = tx.unstage(w.UID)
	}
	tx.waveChanged(w.ID)
	return wrap(err, "putting the wave %s", w.ID)
}

// SaveWave implements store.Waves.
func (tx *Tx) SaveWave(w hub.Wave) error {
	w.Version++
	tx.waveChanged(w.ID)
	return wrap(tx.save(noWave(w.ID), updateWave, keysLast(waveArgs(w), 1)...), "saving the wave %s", w.ID)
}

// ReplaceWave implements store.Waves.
func (tx *Tx) ReplaceWave(old hub.WaveUID, w hub.Wave) error {
	if err := tx.save(noWave(w.ID), deleteWave, old); err != nil {
		return wrap(err, "replacing the wave %s", w.ID)
	}
	if _, err := tx.exec(withdrawTasks, tx.now, old); err != nil {
		return wrap(err, "cancelling the Tasks of the wave %s", w.ID)
	}
	if err := tx.DropStaged(old); err != nil {
		return err
	}
	return tx.PutWave(w)
}

func (tx *Tx) waveChanged(id hub.WaveID) {
	tx.Signal(hub.Signal{Topic: hub.TopicWave, Key: string(id)})
}
