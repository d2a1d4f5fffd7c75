package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// readers are the read-only connections; each serves one View at a time.
type readers struct {
	now    func() hub.Micros
	free   chan *conn
	closed chan struct{}
}

func openReaders(ctx context.Context, o *opening, db *sql.DB, now func() hub.Micros) (*readers, error) {
	r := &readers{now: now, free: make(chan *conn, readerCount), closed: make(chan struct{})}
	for range readerCount {
		c, err := openConn(ctx, db, readPragmas)
		if err != nil {
			return nil, err
		}
		o.add(c.close)
		r.free <- c
	}
	return r, nil
}

func (r *readers) take(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.closed:
		return nil, hub.Errorf(hub.CodeHubDraining, "the store is closed")
	case c := <-r.free:
		return c, nil
	}
}

func (r *readers) view(ctx context.Context, fn func(store.Rx) error) (err error) {
	c, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer func() { r.free <- c }()
	if _, err := c.exec("BEGIN"); err != nil {
		return fmt.Errorf("beginning to read: %w", err)
	}
	s := &session{conn: c}
	defer func() {
		s.ended = true
		if _, e := c.exec("ROLLBACK"); e != nil && err == nil {
			err = fmt.Errorf("ending a read: %w", e)
		}
	}()
	return fn(Rx{querier{s}, r.now()})
}

// close waits for the Views that run.
func (r *readers) close() error {
	close(r.closed)
	var errs []error
	for range readerCount {
		errs = append(errs, (<-r.free).close())
	}
	return errors.Join(errs...)
}

// Rx is one read snapshot. It is used by one goroutine, until its View returns.
type Rx struct {
	querier
	now hub.Micros
}

var _ store.Rx = Rx{}

// Now implements store.Rx.
func (r Rx) Now() hub.Micros { return r.now }

const countQuery = `SELECT
	(SELECT COUNT(*) FROM runs),
	(SELECT COUNT(*) FROM tasks),
	(SELECT COUNT(*) FROM dispatches WHERE live = 1),
	(SELECT COUNT(*) FROM messages)`

// Counts implements store.Rx.
func (r Rx) Counts() (store.Counts, error) {
	n, _, err := one(r.querier, func(s scanner, n *store.Counts) error {
		return s.Scan(&n.Runs, &n.Tasks, &n.DispatchesLive, &n.Messages)
	}, countQuery)
	return n, wrap(err, "counting")
}
