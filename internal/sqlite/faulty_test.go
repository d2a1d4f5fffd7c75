package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// errDisk stands for SQLITE_IOERR of the real driver, errFull for SQLITE_FULL.
var (
	errDisk = errors.New("disk I/O error (by the test)")
	errFull = errors.New("disk full (by the test)")
)

// faulty wraps the real driver: while armed, each execution of the statement
// fails before it reaches SQLite, with errFull if full is set, else errDisk.
type faulty struct {
	driver.Driver
	armed atomic.Value // string: the statement
	full  atomic.Bool
}

func (f *faulty) fail(query string) error {
	switch {
	case f.armed.Load() != query:
		return nil
	case f.full.Load():
		return errFull
	default:
		return errDisk
	}
}

var registered = sync.OnceValues(func() (*faulty, error) {
	db, err := sql.Open(driverName, "")
	if err != nil {
		return nil, err
	}
	f := &faulty{Driver: db.Driver()}
	f.armed.Store("")
	sql.Register("faulty", f)
	return f, db.Close()
})

func faultySeam(t *testing.T) (*faulty, seam) {
	t.Helper()
	f, err := registered()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.armed.Store(""); f.full.Store(false) })
	return f, seam{name: "faulty", classify: func(err error) fault {
		switch {
		case errors.Is(err, errDisk):
			return faultIO
		case errors.Is(err, errFull):
			return faultFull
		default:
			return classify(err)
		}
	}}
}

func (f *faulty) Open(name string) (driver.Conn, error) {
	c, err := f.Driver.Open(name)
	return faultyConn{c, f}, err
}

type faultyConn struct {
	driver.Conn
	f *faulty
}

func (c faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	st, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	return faultyStmt{st, c.f, query}, err
}

func (c faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.f.fail(query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type faultyStmt struct {
	driver.Stmt
	f     *faulty
	query string
}

func (s faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.f.fail(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}
