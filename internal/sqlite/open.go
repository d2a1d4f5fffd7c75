package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	// applicationID marks the file as a wavehub store: "wvhb".
	applicationID = 0x77766862
	// minVersion is the first SQLite without the WAL-reset corruption bug.
	minVersion = "3.51.3"
	// logGuardPages bounds the log when the checkpointer cannot keep up: the
	// writer then checkpoints by itself (64 MiB of 4 KiB pages).
	logGuardPages = 16384
	readerCount   = 4
)

var commonPragmas = []string{
	"PRAGMA busy_timeout = 10000",
	"PRAGMA temp_store = MEMORY",
	"PRAGMA foreign_keys = ON",
}

var writePragmas = append(append([]string{
	"PRAGMA journal_mode = WAL",
	"PRAGMA synchronous = FULL",
	fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", logGuardPages),
}, commonPragmas...), platformPragmas...)

var readPragmas = append([]string{
	"PRAGMA query_only = ON",
	"PRAGMA mmap_size = 268435456",
}, commonPragmas...)

type pools struct{ write, read *sql.DB }

func openPools(drv seam, path string) (pools, error) {
	w, err := sql.Open(drv.name, dsn(path, "rw"))
	if err != nil {
		return pools{}, fmt.Errorf("opening %s: %w", path, err)
	}
	r, err := sql.Open(drv.name, dsn(path, "ro"))
	if err != nil {
		return pools{}, errors.Join(fmt.Errorf("opening %s: %w", path, err), w.Close())
	}
	w.SetMaxOpenConns(2) // the writer and the checkpointer
	r.SetMaxOpenConns(readerCount)
	return pools{w, r}, nil
}

func (p pools) close() error { return errors.Join(p.read.Close(), p.write.Close()) }

// opening undoes what was opened when a later step fails.
type opening struct{ undo []func() error }

func (o *opening) add(f func() error) { o.undo = append(o.undo, f) }

func (o *opening) fail(err error) error {
	errs := []error{err}
	for i := len(o.undo) - 1; i >= 0; i-- {
		errs = append(errs, o.undo[i]())
	}
	return errors.Join(errs...)
}

func open(ctx context.Context, cfg Config, drv seam, migs []migration) (*Store, error) {
	cfg = cfg.withDefaults()
	path, err := filepath.Abs(cfg.Path)
	if err != nil || cfg.Path == "" {
		return nil, hub.Errorf(hub.CodeDataDirInvalid, "%q is not a path", cfg.Path)
	}
	var o opening
	lock, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	o.add(lock.Unlock)
	if err := touch(path); err != nil {
		return nil, o.fail(err)
	}
	p, err := openPools(drv, path)
	if err != nil {
		return nil, o.fail(err)
	}
	o.add(p.close)
	s, err := assemble(ctx, &o, cfg, drv, p, path, migs)
	if err != nil {
		return nil, o.fail(err)
	}
	s.lock = lock
	go s.writer.run()
	go s.checker.run()
	return s, nil
}

// assemble prepares the connections, in an order that touches a file only
// after it is known to be a store.
func assemble(ctx context.Context, o *opening, cfg Config, drv seam, p pools, path string, migs []migration) (*Store, error) {
	w, err := openWriter(ctx, o, cfg, drv, p.write, path, migs)
	if err != nil {
		return nil, err
	}
	ck, err := openConn(ctx, p.write, writePragmas)
	if err != nil {
		return nil, err
	}
	o.add(ck.close)
	rd, err := openReaders(ctx, o, p.read, cfg.Now)
	if err != nil {
		return nil, err
	}
	space := newSpaceGuard(filepath.Dir(path), cfg.FreeSpaceMin)
	if err := space.verdict.Load().err; err != nil && !hub.IsCode(err, hub.CodeStorageFull) {
		return nil, err
	}
	s := &Store{pools: p, queue: newQueue(), readers: rd, space: space}
	s.fatal = once(cfg.OnFatal, s.queue)
	s.checker = newCheckpointer(ck, drv, cfg.Hook, s.fatal)
	s.writer = newWriter(w, drv, cfg, s.queue, s.checker.committed, s.fatal)
	return s, nil
}

// once returns the function that fails the store: waiting and later Updates
// are refused, and the owner hears of the first cause.
func once(onFatal func(error), q *queue) func(error) {
	var first sync.Once
	return func(err error) {
		first.Do(func() {
			q.fail(err)
			onFatal(err)
		})
	}
}

func openWriter(ctx context.Context, o *opening, cfg Config, drv seam, db *sql.DB, path string, migs []migration) (*conn, error) {
	c, err := openConn(ctx, db, nil)
	if err != nil {
		return nil, unsound(drv, path, err)
	}
	o.add(c.close)
	have, err := inspect(c, drv, path, migs)
	if err != nil {
		return nil, err
	}
	for _, p := range writePragmas {
		if err := c.once(p); err != nil {
			return nil, fmt.Errorf("setting %q: %w", p, err)
		}
	}
	if err := assertSettings(c); err != nil {
		return nil, err
	}
	if err := migrate(c, cfg.Log, path, have, migs); err != nil {
		return nil, err
	}
	if err := ensureIdentity(c); err != nil {
		return nil, err
	}
	done, err := c.checkpoint("TRUNCATE")
	if err == nil && !done {
		err = hub.Errorf(hub.CodeDataDirLocked, "another process reads %s", path)
	}
	return c, err
}

// lockFile admits one process: the lock ends with it, however it ends.
func lockFile(path string) (*flock.Flock, error) {
	l := flock.New(path+".lock", flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	switch {
	case err != nil:
		return nil, &hub.Error{Code: hub.CodeDataDirInvalid, Op: "locking the store", Message: path, Err: err}
	case !ok:
		return nil, hub.Errorf(hub.CodeDataDirLocked, "another process has %s open", path)
	}
	return l, nil
}

// touch makes the file, readable by its owner only; SQLite gives the log and
// the index of the log the same mode.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return &hub.Error{Code: hub.CodeDataDirInvalid, Op: "opening the store", Err: err}
	}
	return f.Close()
}

// assertSettings reads back what durability rests on.
func assertSettings(c *conn) error {
	var mode, version string
	var sync, keys int
	if err := errors.Join(
		c.scalar("PRAGMA journal_mode", &mode),
		c.scalar("PRAGMA synchronous", &sync),
		c.scalar("PRAGMA foreign_keys", &keys),
		c.scalar("SELECT sqlite_version()", &version),
	); err != nil {
		return fmt.Errorf("reading the database's settings: %w", err)
	}
	switch {
	case !strings.EqualFold(mode, "wal"):
		return hub.Errorf(hub.CodeDataDirInvalid, "the volume does not support write-ahead logging (journal mode %s)", mode)
	case sync != 2:
		return hub.Errorf(hub.CodeInternal, "synchronous is %d, not FULL", sync)
	case keys != 1:
		return hub.Errorf(hub.CodeInternal, "foreign keys are not enforced")
	case !atLeast(version, minVersion):
		return hub.Errorf(hub.CodeInternal, "SQLite is %s, at least %s is needed", version, minVersion)
	}
	return nil
}

// atLeast compares dotted numbers of three parts.
func atLeast(version, min string) bool {
	var v, m [3]int
	if n, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || n != 3 {
		return false
	}
	if n, err := fmt.Sscanf(min, "%d.%d.%d", &m[0], &m[1], &m[2]); err != nil || n != 3 {
		return false
	}
	for i := range v {
		if v[i] != m[i] {
			return v[i] > m[i]
		}
	}
	return true
}
