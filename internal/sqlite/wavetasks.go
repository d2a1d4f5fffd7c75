package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
)

const (
	waveTaskOf = "x.pos, x.token, x.task, x.level, x.sub, x.entry, x.iteration, x.ended_as, x.ended_reason, x.base, x.noted, x.ready_ms, " +
		"x.idle, x.started_at, x.completed_at"
	waveDispatchOf = "d.id, d.task, d.run, d.state, d.reason, d.retry_of, d.server_peer, d.server_name, d.outcome, d.evidence, " +
		"d.exit_code, d.created_at, d.settled_at, d.report_sum, d.request, d.pin_lineage, d.pin_store, d.pin_epoch, d.pin_contract, " +
		"d.pin_features, d.quiet, d.findings, d.usage, d.version"

	progressCols = "iteration, ended_as, ended_reason, base, noted, ready_ms, idle, started_at, completed_at"
	waveTaskCols = "pos, token, task, level, sub, entry, " + progressCols

	waveTaskBase   = `SELECT w.id, ` + waveTaskOf + ` FROM waves w JOIN wave_tasks x ON x.uid = w.uid WHERE `
	waveTasksQuery = waveTaskBase + `w.id = ? ORDER BY x.pos`
	waveTaskNamed  = waveTaskBase + `w.id = ? AND x.token = ?`

	// A row is a task and its Task; the Task's latest Dispatch is read apart.
	waveRowBase = `SELECT w.id, ` + waveTaskOf + `, t.state, substr(t.result, 1, 2048), t.result_data, t.latest,
		(SELECT count(*) FROM dispatches n WHERE n.task = x.task)
		FROM waves w JOIN wave_tasks x ON x.uid = w.uid JOIN tasks t ON t.id = x.task WHERE `
	waveRowsQuery = waveRowBase + `w.id = ? ORDER BY x.pos`
	// A loop reads its tasks one by one, often. Without a likelihood SQLite lets the
	// value guide its plan: it would compile the join anew for each task.
	waveRowQuery    = waveRowBase + `unlikely(x.task = ?)`
	waveLatestQuery = `SELECT ` + waveDispatchOf + ` FROM waves w JOIN wave_tasks x ON x.uid = w.uid JOIN tasks t ON t.id = x.task
		JOIN dispatches d ON d.id = t.latest WHERE w.id = ?`

	waveOrdersQuery = `SELECT o.first, o.second, o.path FROM waves w JOIN wave_orders o ON o.uid = w.uid WHERE w.id = ? ORDER BY o.rid`
	waveUsageQuery  = `SELECT d.task, d.id, d.usage FROM waves w JOIN wave_tasks x ON x.uid = w.uid JOIN dispatches d ON d.task = x.task
		WHERE w.id = ? AND d.usage IS NOT NULL ORDER BY x.pos, d.rid`

	unstageTasks = `INSERT INTO tasks (` + allTaskCols + `) SELECT ` + allTaskCols + ` FROM staged_tasks WHERE uid = ? ORDER BY rid`
	unstageDeps  = `INSERT INTO task_deps (task, dependency) SELECT task, dependency FROM staged_deps WHERE uid = ? ORDER BY rid`
)

var (
	insertWaveTask   = insertInto("wave_tasks", "uid, "+waveTaskCols)
	insertStagedTask = insertInto("staged_tasks", "uid, "+allTaskCols)
	insertStagedDep  = insertInto("staged_deps", "uid, task, dependency")
	insertWaveOrder  = insertInto("wave_orders", "uid, first, second, path")
	updateProgress   = updateSet("wave_tasks", "task, "+progressCols, 1)

	updateEntry = updateSet("wave_tasks", "task, entry", 1)
	updatePlace = updateSet("wave_tasks", "task, level, sub", 1)

	moveOrders = []string{`DELETE FROM wave_orders WHERE uid = ?`, `UPDATE wave_orders SET uid = ? WHERE uid = ?`}

	dropStaged = []string{
		`DELETE FROM staged_tasks WHERE uid = ?`, `DELETE FROM staged_deps WHERE uid = ?`,
		`DELETE FROM wave_tasks WHERE uid = ?`, `DELETE FROM wave_orders WHERE uid = ?`,
	}
	dropLeftovers = []string{
		`DELETE FROM staged_tasks`, `DELETE FROM staged_deps`,
		`DELETE FROM wave_tasks WHERE uid NOT IN (SELECT uid FROM waves)`,
		`DELETE FROM wave_orders WHERE uid NOT IN (SELECT uid FROM waves)`,
	}
)

// waveTaskDest is where waveTaskBase's columns go.
func waveTaskDest(x *hub.WaveTask) []any {
	return []any{&x.Wave, &x.Index, &x.Entry.Token, &x.Task, &x.Level, &x.Sub, fromJSON{&x.Entry}, &x.Iteration, &x.EndedAs, &x.EndedReason,
		&x.Base, &x.Noted, &x.ReadyMS, &x.Idle, &x.StartedAt, &x.CompletedAt}
}

func scanWaveTask(s scanner, x *hub.WaveTask) error { return s.Scan(waveTaskDest(x)...) }

// latestRow is a row and the name of its latest Dispatch.
type latestRow struct {
	hub.WaveRow
	latest hub.DispatchID
}

func scanWaveRow(s scanner, r *latestRow) error {
	return s.Scan(append(waveTaskDest(&r.WaveTask), &r.State, &r.Result, (*[]byte)(&r.ResultData), &r.latest, &r.Attempts)...)
}

// WaveTasks implements store.WaveReader.
func (q querier) WaveTasks(id hub.WaveID) ([]hub.WaveTask, error) {
	xs, err := all(q, scanWaveTask, waveTasksQuery, id)
	return xs, wrap(err, "reading the tasks of the wave %s", id)
}

// WaveTaskNamed implements store.WaveReader.
func (q querier) WaveTaskNamed(id hub.WaveID, token string) (hub.WaveTask, error) {
	x, err := must(q, scanWaveTask, hub.NoWaveTask(id, token), waveTaskNamed, id, token)
	return x, wrap(err, "reading the task %s of the wave %s", token, id)
}

// WaveRows implements store.WaveReader.
func (q querier) WaveRows(id hub.WaveID) ([]hub.WaveRow, error) {
	latest, err := all(q, scanDispatch, waveLatestQuery, id)
	if err != nil {
		return nil, wrap(err, "reading the Dispatches of the wave %s", id)
	}
	byID := make(map[hub.DispatchID]*hub.Dispatch, len(latest))
	for i := range latest {
		byID[latest[i].ID] = &latest[i]
	}
	w, err := q.Wave(id)
	if hub.IsCode(err, hub.CodeWaveNotFound) {
		return []hub.WaveRow{}, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]hub.WaveRow, 0, min(max(w.Total, 0), hub.MaxWaveTasks))
	err = q.each(func(s scanner) (bool, error) {
		var r latestRow
		err := scanWaveRow(s, &r)
		r.Dispatch = byID[r.latest]
		out = append(out, r.WaveRow)
		return err == nil, err
	}, waveRowsQuery, id)
	return out, wrap(err, "reading the tasks of the wave %s", id)
}

// WaveRow implements store.WaveReader.
func (q querier) WaveRow(id hub.TaskID) (hub.WaveRow, bool, error) {
	r, ok, err := one(q, scanWaveRow, waveRowQuery, id)
	if err != nil || !ok || r.latest == "" {
		return r.WaveRow, ok, wrap(err, "reading %s in its wave", id)
	}
	d, err := q.Dispatch(r.latest)
	r.Dispatch = &d
	return r.WaveRow, true, err
}

// WaveOrders implements store.WaveReader.
func (q querier) WaveOrders(id hub.WaveID) ([]hub.WaveOrder, error) {
	os, err := all(q, func(s scanner, o *hub.WaveOrder) error { return s.Scan(&o.First, &o.Second, &o.Path) }, waveOrdersQuery, id)
	return os, wrap(err, "reading the orders of the wave %s", id)
}

// WaveUsages implements store.WaveReader.
func (q querier) WaveUsages(id hub.WaveID) ([]hub.DispatchUsage, error) {
	us, err := all(q, func(s scanner, u *hub.DispatchUsage) error { return s.Scan(&u.Task, &u.Dispatch, (*[]byte)(&u.Usage)) }, waveUsageQuery, id)
	return us, wrap(err, "reading the usage of the wave %s", id)
}

// StageWaveTasks implements store.Waves.
func (tx *Tx) StageWaveTasks(uid hub.WaveUID, xs []hub.WaveTask, ts []hub.Task) error {
	for _, x := range xs {
		_, err := tx.exec(insertWaveTask, uid, x.Index, x.Entry.Token, x.Task, x.Level, x.Sub, asJSON{x.Entry}, x.Iteration, x.EndedAs, x.EndedReason,
			x.Base, x.Noted, x.ReadyMS, x.Idle, x.StartedAt, x.CompletedAt)
		if err != nil {
			return wrap(err, "staging the task %s", x.Entry.Token)
		}
	}
	for _, t := range ts {
		if err := tx.stageTask(uid, t); err != nil {
			return wrap(err, "staging %s", t.ID)
		}
	}
	return nil
}

func (tx *Tx) stageTask(uid hub.WaveUID, t hub.Task) error {
	_, err := tx.exec(insertStagedTask, append(append([]any{uid}, taskArgs(t)...), asJSON{t.Dependencies})...)
	for _, d := range t.Dependencies {
		if err == nil {
			_, err = tx.exec(insertStagedDep, uid, t.ID, d)
		}
	}
	return err
}

// StageWaveOrders implements store.Waves.
func (tx *Tx) StageWaveOrders(uid hub.WaveUID, os []hub.WaveOrder) error {
	for _, o := range os {
		if _, err := tx.exec(insertWaveOrder, uid, o.First, o.Second, o.Path); err != nil {
			return wrap(err, "staging the orders of a wave")
		}
	}
	return nil
}

// unstage makes the staged Tasks of a wave there.
func (tx *Tx) unstage(uid hub.WaveUID) error {
	for _, query := range []string{unstageTasks, unstageDeps, dropStaged[0], dropStaged[1]} {
		if _, err := tx.exec(query, uid); err != nil {
			return err
		}
	}
	return nil
}

// DropStaged implements store.Waves.
func (tx *Tx) DropStaged(uid hub.WaveUID) error {
	for _, query := range dropStaged {
		if _, err := tx.exec(query, uid); err != nil {
			return wrap(err, "dropping what was staged for a wave")
		}
	}
	return nil
}

// DropLeftovers implements store.Waves.
func (tx *Tx) DropLeftovers() error {
	for _, query := range dropLeftovers {
		if _, err := tx.exec(query); err != nil {
			return wrap(err, "dropping what was staged for waves that never came")
		}
	}
	return nil
}

// SaveWaveEntry implements store.Waves.
func (tx *Tx) SaveWaveEntry(x hub.WaveTask) error {
	err := tx.save(noWaveTask(x), updateEntry, asJSON{x.Entry}, x.Task)
	return wrap(err, "saving what was declared of the task %s of the wave %s", x.Entry.Token, x.Wave)
}

// SaveWavePlace implements store.Waves.
func (tx *Tx) SaveWavePlace(x hub.WaveTask) error {
	err := tx.save(noWaveTask(x), updatePlace, x.Level, x.Sub, x.Task)
	return wrap(err, "placing the task %s of the wave %s", x.Entry.Token, x.Wave)
}

// MoveWaveOrders implements store.Waves.
func (tx *Tx) MoveWaveOrders(from, to hub.WaveUID) error {
	_, err := tx.exec(moveOrders[0], to)
	if err == nil {
		_, err = tx.exec(moveOrders[1], to, from)
	}
	return wrap(err, "moving the orders of a wave")
}

func noWaveTask(x hub.WaveTask) error {
	return hub.Errorf(hub.CodeTaskNotFound, "no wave has %s", x.Task)
}

// SaveWaveProgress implements store.Waves.
func (tx *Tx) SaveWaveProgress(x hub.WaveTask) error {
	err := tx.save(noWaveTask(x), updateProgress,
		x.Iteration, x.EndedAs, x.EndedReason, x.Base, x.Noted, x.ReadyMS, x.Idle, x.StartedAt, x.CompletedAt, x.Task)
	return wrap(err, "saving the task %s of the wave %s", x.Entry.Token, x.Wave)
}
