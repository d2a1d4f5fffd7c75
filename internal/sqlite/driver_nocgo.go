//go:build !cgo

package sqlite

import (
	"errors"

	"modernc.org/sqlite"
)

const driverName = "sqlite"

// resultCode returns SQLite's extended result code of err, 0 if it has none.
func resultCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}
