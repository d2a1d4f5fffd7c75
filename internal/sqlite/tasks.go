package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	taskCols = "id, run, title, spec, state, verify_cmd, verify, write_scope, scope, timeout_secs, verify_timeout_secs, " +
		"handoff_path, hat, origin, latest, result, result_data, version, created_at, updated_at"
	allTaskCols = taskCols + ", dependencies"

	taskQuery = `SELECT ` + allTaskCols + ` FROM tasks WHERE id = ?`
	taskPage  = `SELECT ` + allTaskCols + `, rid FROM tasks
		WHERE run = ? AND rid > ? ORDER BY rid LIMIT ?`
	taskStatePage = `SELECT ` + allTaskCols + `, rid FROM tasks
		WHERE run = ? AND state = ? AND rid > ? ORDER BY rid LIMIT ?`

	insertDependency = `INSERT INTO task_deps (task, dependency) VALUES (?, ?) ON CONFLICT (task, dependency) DO NOTHING`
	taskStateQuery   = `SELECT state FROM tasks WHERE id = ?`
	dropDependencies = `DELETE FROM task_deps WHERE task = ?`
	dependentQuery   = `SELECT task FROM task_deps WHERE dependency = ? ORDER BY rid`
)

var (
	insertTask = insertInto("tasks", allTaskCols)
	updateTask = updateSet("tasks", "id, state, latest, result, result_data, version, updated_at", 1)
	rewriteAll = updateSet("tasks", allTaskCols, 1)
	updateText = updateSet("tasks", "id, title, spec, state, latest, result, result_data, version, updated_at", 1)
)

func scanTask(s scanner, t *hub.Task) error {
	return s.Scan(&t.ID, &t.Run, &t.Title, &t.Spec, &t.State, &t.VerifyCmd, &t.Verify, fromJSON{&t.WriteScope},
		&t.Scope, &t.TimeoutSecs, &t.VerifyTimeoutSecs, &t.HandoffPath, &t.Hat, &t.Origin, &t.Latest, &t.Result, (*[]byte)(&t.ResultData), &t.Version,
		&t.CreatedAt, &t.UpdatedAt, fromJSON{&t.Dependencies})
}

func taskBytes(t hub.Task) int { return len(t.Spec) + len(t.Result) + len(t.ResultData) }

// taskArgs is in the order of taskCols.
func taskArgs(t hub.Task) []any {
	return []any{t.ID, t.Run, t.Title, t.Spec, t.State, t.VerifyCmd, t.Verify, asJSON{t.WriteScope},
		t.Scope, t.TimeoutSecs, t.VerifyTimeoutSecs, t.HandoffPath, t.Hat, t.Origin, t.Latest, t.Result, blob(t.ResultData), t.Version,
		t.CreatedAt, t.UpdatedAt}
}

func noTask(id hub.TaskID) error { return hub.Errorf(hub.CodeTaskNotFound, "there is no Task %s", id) }

// Task implements store.TaskReader.
func (q querier) Task(id hub.TaskID) (hub.Task, error) {
	t, err := must(q, scanTask, noTask(id), taskQuery, id)
	return t, wrap(err, "reading %s", id)
}

// TaskState implements store.TaskReader.
func (q querier) TaskState(id hub.TaskID) (hub.TaskState, error) {
	st, err := must(q, func(s scanner, st *hub.TaskState) error { return s.Scan(st) }, noTask(id), taskStateQuery, id)
	return st, wrap(err, "reading the state of %s", id)
}

// TaskList implements store.TaskReader.
func (q querier) TaskList(run hub.RunID, state hub.TaskState, p store.Page) (ts []hub.Task, next int64, err error) {
	if state == "" {
		ts, next, err = pagedWithin(q, scanTask, taskBytes, p.Limit, taskPage, run, p.Before)
	} else {
		ts, next, err = pagedWithin(q, scanTask, taskBytes, p.Limit, taskStatePage, run, state, p.Before)
	}
	return ts, next, wrap(err, "listing the Tasks of %s", run)
}

// Dependents implements store.TaskReader.
func (q querier) Dependents(id hub.TaskID) ([]hub.TaskID, error) {
	ids, err := all(q, func(s scanner, t *hub.TaskID) error { return s.Scan(t) }, dependentQuery, id)
	return ids, wrap(err, "reading the dependents of %s", id)
}

// PutTask implements store.Tasks.
func (tx *Tx) PutTask(t hub.Task) error {
	_, err := tx.exec(insertTask, append(taskArgs(t), asJSON{t.Dependencies})...)
	if err == nil {
		err = tx.putDependencies(t)
	}
	return wrap(err, "putting %s", t.ID)
}

func (tx *Tx) putDependencies(t hub.Task) error {
	for _, d := range t.Dependencies {
		if _, err := tx.exec(insertDependency, t.ID, d); err != nil {
			return err
		}
	}
	return nil
}

// RewriteTask implements store.Tasks.
func (tx *Tx) RewriteTask(t hub.Task) error {
	tx.taskChanged(t.ID)
	all := append(taskArgs(t), asJSON{t.Dependencies})
	err := tx.save(noTask(t.ID), rewriteAll, keysLast(all, 1)...)
	if err == nil {
		_, err = tx.exec(dropDependencies, t.ID)
	}
	if err == nil {
		err = tx.putDependencies(t)
	}
	return wrap(err, "rewriting %s", t.ID)
}

// SaveTask implements store.Tasks.
func (tx *Tx) SaveTask(t hub.Task) error {
	tx.taskChanged(t.ID)
	moved := []any{t.ID, t.State, t.Latest, t.Result, blob(t.ResultData), t.Version, t.UpdatedAt}
	return wrap(tx.save(noTask(t.ID), updateTask, keysLast(moved, 1)...), "saving %s", t.ID)
}

// SaveTaskText implements store.Tasks.
func (tx *Tx) SaveTaskText(t hub.Task) error {
	tx.taskChanged(t.ID)
	all := []any{t.ID, t.Title, t.Spec, t.State, t.Latest, t.Result, blob(t.ResultData), t.Version, t.UpdatedAt}
	return wrap(tx.save(noTask(t.ID), updateText, keysLast(all, 1)...), "saving the text of %s", t.ID)
}

func (tx *Tx) taskChanged(id hub.TaskID) {
	tx.Signal(hub.Signal{Topic: hub.TopicTask, Key: string(id)})
}
