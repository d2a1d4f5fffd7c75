package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// conn is one database connection with its prepared statements. One goroutine
// uses it at a time. Statements take no caller's context: an interrupt would
// roll back the transaction of everybody in the group.
type conn struct {
	sc    *sql.Conn
	stmts map[string]*sql.Stmt
}

func openConn(ctx context.Context, db *sql.DB, pragmas []string) (*conn, error) {
	sc, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	c := &conn{sc: sc, stmts: make(map[string]*sql.Stmt)}
	for _, p := range pragmas {
		if err := c.once(p); err != nil {
			return nil, errors.Join(fmt.Errorf("setting %q: %w", p, err), c.close())
		}
	}
	return c, nil
}

func (c *conn) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, c.sc.Close())...)
}

func (c *conn) stmt(query string) (*sql.Stmt, error) {
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := c.sc.PrepareContext(context.Background(), query)
	if err == nil {
		c.stmts[query] = st
	}
	return st, err
}

// once runs a statement, or several, that will not come again.
func (c *conn) once(query string, args ...any) error {
	_, err := c.sc.ExecContext(context.Background(), query, args...)
	return err
}

// exec returns how many rows were changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	st, err := c.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (c *conn) query(query string, args ...any) (*sql.Rows, error) {
	st, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(context.Background(), args...)
}

// scalar reads the one row of a query that will not come again.
func (c *conn) scalar(query string, dest ...any) error {
	return c.sc.QueryRowContext(context.Background(), query).Scan(dest...)
}

// checkpoint moves the log into the database and reports whether all of it
// arrived.
func (c *conn) checkpoint(mode string) (bool, error) {
	var busy, frames, moved int64
	if err := c.scalar("PRAGMA wal_checkpoint("+mode+")", &busy, &frames, &moved); err != nil {
		return false, fmt.Errorf("checkpointing: %w", err)
	}
	return busy == 0 && frames == moved, nil
}

// dsn is the URI of an absolute path; mode is rw or ro.
func dsn(path, mode string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a Windows drive
	}
	u := url.URL{Scheme: "file", Path: p, RawQuery: "mode=" + mode}
	return u.String()
}
