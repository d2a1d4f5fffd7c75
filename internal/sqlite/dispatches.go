package sqlite

import (
	"fmt"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	dispatchCols = "id, task, run, state, reason, retry_of, server_peer, server_name, outcome, evidence, " +
		"exit_code, created_at, settled_at, report_sum, request, pin_lineage, pin_store, pin_epoch, pin_contract, " +
		"pin_features, quiet, findings, usage, version"

	dispatchQuery    = `SELECT ` + dispatchCols + ` FROM dispatches WHERE id = ?`
	startQuery       = `SELECT start_receipt FROM dispatches WHERE id = ?`
	saveStart        = `UPDATE dispatches SET start_receipt = ? WHERE id = ?`
	peerRequestQuery = `SELECT peer_request FROM dispatches WHERE id = ?`
	swapDispatch     = `UPDATE dispatches SET state = ?, reason = ?, retry_of = ?, server_peer = ?, server_name = ?,
		outcome = ?, evidence = ?, exit_code = ?, created_at = ?, settled_at = ?, report_sum = ?, request = ?,
		pin_lineage = ?, pin_store = ?, pin_epoch = ?, pin_contract = ?, pin_features = ?, quiet = ?, findings = ?, usage = ?, version = ?, live = ?
		WHERE id = ? AND version = ?`
)

var insertDispatch = insertInto("dispatches", dispatchCols+", live, start_receipt, peer_request")

func scanDispatch(s scanner, d *hub.Dispatch) error {
	return s.Scan(&d.ID, &d.Task, &d.Run, &d.State, &d.Reason, &d.RetryOf, &d.Server.PeerID, &d.Server.Name,
		&d.Outcome, &d.Evidence, &d.ExitCode, &d.CreatedAt, &d.SettledAt, &d.ReportSum, &d.Request,
		&d.Pin.Lineage, &d.Pin.StoreID, &d.Pin.Epoch, &d.Pin.Contract, &d.Pin.Features, &d.Quiet, fromJSON{&d.Findings}, (*[]byte)(&d.Usage), &d.Version)
}

// dispatchArgs is in the order of dispatchCols.
func dispatchArgs(d hub.Dispatch) []any {
	return []any{d.ID, d.Task, d.Run, d.State, d.Reason, d.RetryOf, d.Server.PeerID, d.Server.Name,
		d.Outcome, d.Evidence, d.ExitCode, d.CreatedAt, d.SettledAt, d.ReportSum, d.Request,
		d.Pin.Lineage, d.Pin.StoreID, d.Pin.Epoch, d.Pin.Contract, d.Pin.Features, d.Quiet, asJSON{d.Findings}, blob(d.Usage), d.Version}
}

func noDispatch(id hub.DispatchID) error {
	return hub.Errorf(hub.CodeDispatchNotFound, "there is no Dispatch %s", id)
}

// Dispatch implements store.DispatchReader.
func (q querier) Dispatch(id hub.DispatchID) (hub.Dispatch, error) {
	d, err := must(q, scanDispatch, noDispatch(id), dispatchQuery, id)
	return d, wrap(err, "reading %s", id)
}

// DispatchList implements store.DispatchReader.
func (q querier) DispatchList(f store.DispatchFilter, p store.Page) ([]hub.Dispatch, int64, error) {
	query, args := dispatchPage(f, before(p.Before))
	ds, next, err := paged(q, scanDispatch, p.Limit, query, args...)
	return ds, next, wrap(err, "listing Dispatches")
}

// dispatchPage is the query of a filter, up to the value of LIMIT.
func dispatchPage(f store.DispatchFilter, before int64) (string, []any) {
	var where strings.Builder
	var args []any
	add := func(on bool, cond string, arg ...any) {
		if on {
			where.WriteString(cond + " AND ")
			args = append(args, arg...)
		}
	}
	add(f.Run != "", "run = ?", f.Run)
	add(f.Task != "", "task = ?", f.Task)
	add(f.Peer != "", "server_peer = ? AND server_peer <> ''", f.Peer)
	add(f.Live, "live = 1")
	return `SELECT ` + dispatchCols + `, rid FROM dispatches WHERE ` + where.String() +
		`rid < ? ORDER BY rid DESC LIMIT ?`, append(args, before)
}

// StartReceipt implements store.DispatchReader.
func (q querier) StartReceipt(id hub.DispatchID) (hub.Receipt, error) {
	r, err := must(q, func(s scanner, r *hub.Receipt) error { return s.Scan(fromJSON{r}) },
		noDispatch(id), startQuery, id)
	return r, wrap(err, "reading the start receipt of %s", id)
}

// PeerRequest implements store.DispatchReader; nil for a local Dispatch.
func (q querier) PeerRequest(id hub.DispatchID) ([]byte, error) {
	b, err := must(q, func(s scanner, b *[]byte) error { return s.Scan(b) }, noDispatch(id), peerRequestQuery, id)
	return b, wrap(err, "reading the peer request of %s", id)
}

// PutDispatch implements store.Dispatches.
func (tx *Tx) PutDispatch(d hub.Dispatch, r hub.Receipt, peerRequest []byte) error {
	_, err := tx.exec(insertDispatch, append(dispatchArgs(d), !d.State.Final(), asJSON{r}, blob(peerRequest))...)
	return wrap(err, "putting %s", d.ID)
}

// SaveStartReceipt implements store.Dispatches.
func (tx *Tx) SaveStartReceipt(id hub.DispatchID, r hub.Receipt) error {
	return wrap(tx.save(noDispatch(id), saveStart, asJSON{r}, id), "saving the start receipt of %s", id)
}

// SwapDispatch implements store.Dispatches. Task and Run never change; the
// version becomes old's plus one, whatever new says.
func (tx *Tx) SwapDispatch(old, new hub.Dispatch) (bool, error) {
	if new.ID != old.ID || new.Task != old.Task || new.Run != old.Run {
		return false, fmt.Errorf("swapping %s: the new value names another Dispatch, Task or Run", old.ID)
	}
	new.Version = old.Version + 1
	args := append(dispatchArgs(new)[3:], !new.State.Final(), old.ID, old.Version)
	n, err := tx.exec(swapDispatch, args...)
	if err != nil {
		return false, wrap(err, "swapping %s", old.ID)
	}
	if n == 0 {
		_, err := tx.Dispatch(old.ID)
		return false, err
	}
	tx.Signal(hub.Signal{Topic: hub.TopicDispatch, Key: string(old.ID)})
	return true, nil
}
