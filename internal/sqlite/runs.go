package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	runCols  = "id, objective, generation, parent, depth, created_at, released"
	runQuery = `SELECT ` + runCols + ` FROM runs WHERE id = ?`
	runPage  = `SELECT ` + runCols + `, rid FROM runs WHERE rid < ? ORDER BY rid DESC LIMIT ?`

	bindingCols  = "run, generation, context, at"
	bindingQuery = `SELECT ` + bindingCols + ` FROM bindings WHERE context = ? AND context <> ''`
	holderQuery  = `SELECT b.run, b.generation, b.context, b.at
		FROM runs r CROSS JOIN bindings b
		WHERE r.id = ? AND b.run = r.id AND b.generation = r.generation ORDER BY b.rid DESC LIMIT 1`
	unbindContext = `DELETE FROM bindings WHERE context = ? AND context <> ''`
	unbindToken   = `DELETE FROM bindings WHERE run = ? AND context = ''`

	auditCols  = "run, at, action, principal, context, generation"
	auditQuery = `SELECT ` + auditCols + ` FROM audits WHERE run = ? ORDER BY rid DESC LIMIT ?`
)

var (
	insertRun     = insertInto("runs", runCols)
	updateRun     = updateSet("runs", runCols, 1)
	insertBinding = insertInto("bindings", bindingCols)
	insertAudit   = insertInto("audits", auditCols)
)

func scanRun(s scanner, r *hub.Run) error {
	return s.Scan(&r.ID, &r.Objective, &r.Generation, &r.Parent, &r.Depth, &r.CreatedAt, &r.Released)
}

func runArgs(r hub.Run) []any {
	return []any{r.ID, r.Objective, r.Generation, r.Parent, r.Depth, r.CreatedAt, r.Released}
}

func noRun(id hub.RunID) error { return hub.Errorf(hub.CodeRunNotFound, "there is no Run %s", id) }

// PutRun implements store.Runs.
func (tx *Tx) PutRun(r hub.Run) error {
	_, err := tx.exec(insertRun, runArgs(r)...)
	return wrap(err, "putting %s", r.ID)
}

// SaveRun implements store.Runs.
func (tx *Tx) SaveRun(r hub.Run) error {
	return wrap(tx.save(noRun(r.ID), updateRun, keysLast(runArgs(r), 1)...), "saving %s", r.ID)
}

func scanBinding(s scanner, b *hub.Binding) error {
	return s.Scan(&b.Run, &b.Generation, &b.Context, &b.At)
}

// Binding implements store.RunReader.
func (q querier) Binding(context string) (hub.Binding, bool, error) {
	b, ok, err := one(q, scanBinding, bindingQuery, context)
	return b, ok, wrap(err, "reading a binding")
}

// Holder implements store.RunReader.
func (q querier) Holder(run hub.RunID) (hub.Binding, bool, error) {
	b, ok, err := one(q, scanBinding, holderQuery, run)
	return b, ok, wrap(err, "reading the holder of %s", run)
}

// SetBinding implements store.Runs. A consumer without a context has one row
// per Run.
func (tx *Tx) SetBinding(b hub.Binding) error {
	var err error
	if b.Context != "" {
		_, err = tx.exec(unbindContext, b.Context)
	} else {
		_, err = tx.exec(unbindToken, b.Run)
	}
	if err == nil {
		_, err = tx.exec(insertBinding, b.Run, b.Generation, b.Context, b.At)
	}
	return wrap(err, "binding %s", b.Run)
}

// AddAudit implements store.Runs.
func (tx *Tx) AddAudit(a hub.Audit) error {
	_, err := tx.exec(insertAudit, a.Run, a.At, a.Action, a.Principal, a.Context, a.Generation)
	return wrap(err, "adding an audit row of %s", a.Run)
}

// Run implements store.RunReader.
func (q querier) Run(id hub.RunID) (hub.Run, error) {
	r, err := must(q, scanRun, noRun(id), runQuery, id)
	return r, wrap(err, "reading %s", id)
}

// Audits implements store.RunReader.
func (q querier) Audits(run hub.RunID, limit int) ([]hub.Audit, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	as, err := all(q, func(s scanner, a *hub.Audit) error {
		return s.Scan(&a.Run, &a.At, &a.Action, &a.Principal, &a.Context, &a.Generation)
	}, auditQuery, run, limit)
	return as, wrap(err, "reading the audit rows of %s", run)
}

// RunList implements store.RunReader.
func (q querier) RunList(p store.Page) ([]hub.Run, int64, error) {
	rs, next, err := paged(q, scanRun, p.Limit, runPage, before(p.Before))
	return rs, next, wrap(err, "listing Runs")
}
