//go:build cgo

package sqlite

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

const driverName = "sqlite3"

// resultCode returns SQLite's extended result code of err, 0 if it has none.
func resultCode(err error) int {
	e, ok := errors.AsType[sqlite3.Error](err)
	switch {
	case !ok:
		return 0
	case e.ExtendedCode != 0:
		return int(e.ExtendedCode)
	default:
		return int(e.Code)
	}
}
