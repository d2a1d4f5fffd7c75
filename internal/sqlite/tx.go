package sqlite

import (
	"database/sql/driver"
	"errors"
	"reflect"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Tx is one write transaction: a savepoint in a group. It is used by the
// closure that got it, on the writer's goroutine, until the closure returns.
type Tx struct {
	querier
	drv    seam
	now    hub.Micros
	bytes  int // bound so far
	wrote  bool
	broken error // why nothing more is written: the transaction may be gone
	sigs   []hub.Signal
	// tallies are not written yet.
	tallies []tally
}

var _ store.Tx = (*Tx)(nil)

// Now implements store.Tx.
func (tx *Tx) Now() hub.Micros { return tx.now }

// Signal implements store.Tx.
func (tx *Tx) Signal(s hub.Signal) { tx.sigs = append(tx.sigs, s) }

// exec writes and returns how many rows changed.
func (tx *Tx) exec(query string, args ...any) (int64, error) {
	if err := tx.admit(args); err != nil {
		return 0, err
	}
	n, err := tx.conn.exec(query, args...)
	tx.wrote = tx.wrote || n > 0
	return n, tx.fault(err)
}

// returning writes and scans the row that the statement returns.
func (tx *Tx) returning(dest []any, query string, args ...any) (ok bool, err error) {
	if err := tx.admit(args); err != nil {
		return false, err
	}
	err = tx.each(func(s scanner) (bool, error) {
		ok = true
		return false, s.Scan(dest...)
	}, query, args...)
	tx.wrote = tx.wrote || ok
	return ok && err == nil, tx.fault(err)
}

// save updates exactly one row, or fails with missing.
func (tx *Tx) save(missing error, query string, args ...any) error {
	n, err := tx.exec(query, args...)
	if err == nil && n == 0 {
		return missing
	}
	return err
}

// admit refuses to write in a transaction that ended, may have been rolled
// back, or has bound too much; it counts what is bound.
func (tx *Tx) admit(args []any) error {
	if tx.ended {
		return errEnded
	}
	if tx.broken != nil {
		return tx.broken
	}
	for i, a := range args {
		if j, ok := a.(asJSON); ok {
			v, err := j.Value()
			if err != nil {
				return err
			}
			args[i] = v
		}
		tx.bytes += size(args[i])
	}
	if tx.bytes > maxTxBytes {
		tx.broken = hub.Errorf(hub.CodeTooLarge, "one transaction may write %d bytes", maxTxBytes)
	}
	return tx.broken
}

func size(a any) int {
	switch v := a.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	case driver.Valuer, nil:
		return 0
	}
	if v := reflect.ValueOf(a); v.Kind() == reflect.String || v.Kind() == reflect.Slice {
		return v.Len()
	}
	return 8
}

// fault notes an error after which SQLite may have rolled back the whole
// group: a closure that went on would write outside of any transaction.
func (tx *Tx) fault(err error) error {
	f := tx.drv.classify(err)
	if f == faultFull {
		err = storageFull(err)
	}
	if f.mayEndTx() {
		tx.broken = err
	}
	return err
}

func (tx *Tx) unique(err error) bool {
	_, coded := errors.AsType[*hub.Error](err)
	return !coded && tx.drv.classify(err) == faultUnique
}
