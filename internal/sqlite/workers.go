package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	workerCols   = "id, name, state, generation, created_at"
	workerQuery  = `SELECT ` + workerCols + ` FROM workers WHERE id = ?`
	workerByName = `SELECT ` + workerCols + ` FROM workers WHERE name = ? AND state <> 'revoked'`
	workerPage   = `SELECT ` + workerCols + `, rid FROM workers WHERE rid < ? ORDER BY rid DESC LIMIT ?`

	workerAttachment  = `SELECT ` + attachmentCols + ` FROM attachments WHERE worker = ? AND worker <> '' AND dispatch = ?`
	workerAttachments = `SELECT ` + attachmentCols + `, rid FROM attachments INDEXED BY attachments_worker_open
		WHERE worker = ? AND worker <> '' AND open = 1 AND rid > ? ORDER BY rid LIMIT ?`
)

var (
	insertWorker = insertInto("workers", workerCols)
	updateWorker = updateSet("workers", workerCols, 1)
)

func scanWorker(s scanner, w *hub.Worker) error {
	return s.Scan(&w.ID, &w.Name, &w.State, &w.Generation, &w.CreatedAt)
}

func workerArgs(w hub.Worker) []any {
	return []any{w.ID, w.Name, w.State, w.Generation, w.CreatedAt}
}

func noWorker(name string) error {
	return hub.Errorf(hub.CodeWorkerNotFound, "there is no attached worker %s", name)
}

// Worker implements store.WorkerReader.
func (q querier) Worker(id hub.WorkerID) (hub.Worker, error) {
	w, err := must(q, scanWorker, noWorker(string(id)), workerQuery, id)
	return w, wrap(err, "reading %s", id)
}

// WorkerByName implements store.WorkerReader.
func (q querier) WorkerByName(name string) (hub.Worker, error) {
	w, err := must(q, scanWorker, noWorker(name), workerByName, name)
	return w, wrap(err, "reading the worker %s", name)
}

// WorkerList implements store.WorkerReader.
func (q querier) WorkerList(p store.Page) ([]hub.Worker, int64, error) {
	ws, next, err := paged(q, scanWorker, p.Limit, workerPage, before(p.Before))
	return ws, next, wrap(err, "listing workers")
}

// WorkerAttachment implements store.WorkerReader.
func (q querier) WorkerAttachment(w hub.WorkerID, d hub.DispatchID) (hub.Attachment, bool, error) {
	a, ok, err := one(q, scanAttachment, workerAttachment, w, d)
	return a, ok, wrap(err, "reading the attachment of %s", d)
}

// WorkerAttachments implements store.WorkerReader.
func (q querier) WorkerAttachments(w hub.WorkerID, p store.Page) ([]hub.Attachment, int64, error) {
	as, next, err := paged(q, scanAttachment, p.Limit, workerAttachments, w, p.Before)
	return as, next, wrap(err, "reading what %s has", w)
}

// PutWorker implements store.Workers.
func (tx *Tx) PutWorker(w hub.Worker) error {
	_, err := tx.exec(insertWorker, workerArgs(w)...)
	return wrap(tx.workerTaken(w, err), "putting %s", w.ID)
}

// SaveWorker implements store.Workers.
func (tx *Tx) SaveWorker(w hub.Worker) error {
	err := tx.save(noWorker(string(w.ID)), updateWorker, keysLast(workerArgs(w), 1)...)
	return wrap(tx.workerTaken(w, err), "saving %s", w.ID)
}

// workerTaken tells a name that another identity has from other faults.
func (tx *Tx) workerTaken(w hub.Worker, err error) error {
	if !tx.unique(err) {
		return err
	}
	if have, nerr := tx.WorkerByName(w.Name); nerr == nil && have.ID != w.ID {
		return hub.Errorf(hub.CodeNameTaken, "the name %q is that of %s", w.Name, have.ID)
	}
	return err
}
