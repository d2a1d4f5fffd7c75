package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// session is a connection inside a transaction.
type session struct {
	conn  *conn
	ended bool
}

var errEnded = errors.New("sqlite: a transaction was used after it had ended")

// querier reads. Tx and Rx share it, so that each SELECT is written once.
type querier struct{ *session }

func (q querier) query(query string, args ...any) (*sql.Rows, error) {
	if q.ended {
		return nil, errEnded
	}
	return q.conn.query(query, args...)
}

type scanner interface{ Scan(dest ...any) error }

// each calls fn for every row until it returns false.
func (q querier) each(fn func(scanner) (bool, error), query string, args ...any) (err error) {
	rows, err := q.query(query, args...)
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	for rows.Next() {
		if more, err := fn(rows); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// one returns the first row.
func one[T any](q querier, scan func(scanner, *T) error, query string, args ...any) (v T, ok bool, err error) {
	err = q.each(func(s scanner) (bool, error) {
		ok = true
		return false, scan(s, &v)
	}, query, args...)
	return v, ok && err == nil, err
}

// must is one for a row that has to exist.
func must[T any](q querier, scan func(scanner, *T) error, missing error, query string, args ...any) (T, error) {
	v, ok, err := one(q, scan, query, args...)
	if err == nil && !ok {
		err = missing
	}
	return v, err
}

// all returns every row.
func all[T any](q querier, scan func(scanner, *T) error, query string, args ...any) ([]T, error) {
	return fitting(q, scan, func(T) int { return 0 }, math.MaxInt, query, args...)
}

// fitting returns rows until their sizes exceed max, but at least one.
func fitting[T any](q querier, scan func(scanner, *T) error, size func(T) int, max int, query string, args ...any) ([]T, error) {
	out, _, err := within(q, scan, size, math.MaxInt, max, query, args...)
	return out, err
}

// within returns at most limit rows until their sizes exceed max, but at least
// one, and whether the query has more.
func within[T any](q querier, scan func(scanner, *T) error, size func(T) int, limit, max int, query string, args ...any) (out []T, more bool, err error) {
	sum := 0
	err = q.each(func(s scanner) (bool, error) {
		var v T
		if err := scan(s, &v); err != nil {
			return false, err
		}
		sum += size(v)
		if more = len(out) == limit || sum > max && len(out) > 0; more {
			return false, nil
		}
		out = append(out, v)
		return true, nil
	}, query, args...)
	return out, more, err
}

// pageBytes bounds what one page of large rows holds.
const pageBytes = 8 << 20

// numbered scans a row whose last column is its rid.
type numbered struct {
	scanner
	rid *int64
}

func (n numbered) Scan(dest ...any) error { return n.scanner.Scan(append(dest, n.rid)...) }

// paged returns at most limit rows of a query that ends in "LIMIT ?" and
// selects rid last, and the rid behind which the next page begins, 0 at the end.
func paged[T any](q querier, scan func(scanner, *T) error, limit int, query string, args ...any) (out []T, next int64, err error) {
	return pagedWithin(q, scan, func(T) int { return 0 }, limit, query, args...)
}

// pagedWithin is paged for rows of which a page is bounded by their sizes too.
func pagedWithin[T any](q querier, scan func(scanner, *T) error, size func(T) int, limit int, query string, args ...any) (out []T, next int64, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, 0, err
	}
	type row struct {
		value T
		rid   int64
	}
	rows, more, err := within(q, func(s scanner, r *row) error { return scan(numbered{s, &r.rid}, &r.value) },
		func(r row) int { return size(r.value) }, limit, pageBytes, query, append(args, limit+1)...)
	for _, r := range rows {
		out = append(out, r.value)
	}
	if more {
		next = rows[len(rows)-1].rid
	}
	return out, next, err
}

func checkLimit(limit int) error {
	if limit < 1 || limit == math.MaxInt {
		return hub.Invalid("limit", "must be at least 1")
	}
	return nil
}

// before is the upper bound of a page that goes from newer to older rows.
func before(rid int64) int64 {
	if rid <= 0 {
		return math.MaxInt64
	}
	return rid
}

// wrap adds what was being done to an error that has no code of its own.
func wrap(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*hub.Error](err); ok {
		return err
	}
	return fmt.Errorf(doing+": %w", append(args, err)...)
}

// asJSON stores a value as JSON text.
type asJSON struct{ v any }

// Value implements driver.Valuer.
func (j asJSON) Value() (driver.Value, error) {
	raw, err := json.Marshal(j.v)
	return string(raw), err
}

// fromJSON scans JSON text into the value that it points to.
type fromJSON struct{ v any }

// Scan implements sql.Scanner.
func (j fromJSON) Scan(src any) error {
	switch s := src.(type) {
	case string:
		return json.Unmarshal([]byte(s), j.v)
	case []byte:
		return json.Unmarshal(s, j.v)
	default:
		return fmt.Errorf("JSON text is stored as %T", src)
	}
}

// blob keeps nil and empty apart in both drivers.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// insertInto is the statement that takes a value for each of the columns.
func insertInto(table, cols string) string {
	marks := strings.Repeat(", ?", strings.Count(cols, ",")+1)[2:]
	return "INSERT INTO " + table + " (" + cols + ") VALUES (" + marks + ")"
}

// updateSet is the statement that sets all columns but the first keys ones,
// which say where. Its arguments come in the order of the columns, keys last.
func updateSet(table, cols string, keys int) string {
	names := strings.Split(cols, ", ")
	return "UPDATE " + table + " SET " + strings.Join(names[keys:], " = ?, ") + " = ? WHERE " +
		strings.Join(names[:keys], " = ? AND ") + " = ?"
}

// keysLast reorders the arguments of an insertInto for its updateSet.
func keysLast(args []any, keys int) []any {
	return append(append(make([]any, 0, len(args)), args[keys:]...), args[:keys]...)
}
