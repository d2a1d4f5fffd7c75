package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Config says where the store is and whom it tells.
type Config struct {
	// Path is the database file, in a folder that exists and that only the
	// hub's user can enter. Path.lock beside it admits one process.
	Path string
	// Publish gets the signals of each commit, each subject once, before the
	// Updates return. It must not block. nil drops them.
	Publish func([]hub.Signal)
	// OnFatal is called once, when the state of the disk is in doubt: the
	// process has to stop and start again. It must not call Close itself.
	OnFatal func(error)
	// FreeSpaceMin is how many bytes (of a small volume a sixteenth of it, if
	// that is less) the volume must have free for Updates of
	// class New to be taken; 0 takes them always.
	FreeSpaceMin int64
	// Log gets what an operator should know of opening; nil drops it.
	Log *slog.Logger
	// Now is the clock of Tx.Now; nil is the system's.
	Now func() hub.Micros
	// Committed is told of each group that wrote: its closures, and the time of
	// its work and COMMIT. It must not block. nil drops it.
	Committed func(closures int, took time.Duration)
	// Hook is called by the writer at before_commit, after_commit and
	// before_answer of each group that wrote, and by the checkpointer at
	// checkpoint. It is for tests that crash or delay there; nil in production.
	Hook func(point string)
}

// Store is a store.Store. All methods are safe for concurrent use. What an
// Update did is on disk when it has returned nil.
type Store struct {
	lock    *flock.Flock
	pools   pools
	queue   *queue
	writer  *writer
	checker *checkpointer
	readers *readers
	space   *spaceGuard
	fatal   func(error) // once
	closing sync.Once
	closed  error // set by closing
}

var _ store.Store = (*Store)(nil)

// Open opens the store, makes it if there is none, and brings an older schema
// up to date after copying it. The log of a former process has been moved into
// the database when it returns. It fails with data_dir_locked when another
// process has the store, and data_dir_invalid when the file is not a store or
// was made by a newer wavehub. ctx bounds opening only. Close ends the two
// goroutines that it starts.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	return open(ctx, cfg, builtin, migrations)
}

func (cfg Config) withDefaults() Config {
	if cfg.Publish == nil {
		cfg.Publish = func([]hub.Signal) {}
	}
	if cfg.OnFatal == nil {
		cfg.OnFatal = func(error) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = func() hub.Micros { return hub.MicrosOf(time.Now()) }
	}
	if cfg.Committed == nil {
		cfg.Committed = func(int, time.Duration) {}
	}
	if cfg.Hook == nil {
		cfg.Hook = func(string) {}
	}
	return cfg
}

// Update implements store.Writer. Once Close has been called it is refused
// with hub_draining, after a fatal error with internal.
func (s *Store) Update(ctx context.Context, class store.Class, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.writer.callsItself() {
		return errors.New("sqlite: Update called from inside a write transaction")
	}
	if class > store.New {
		return fmt.Errorf("sqlite: no such class of transactions: %d", class)
	}
	if class == store.New {
		if err := s.space.check(); err != nil {
			return err
		}
	}
	j := newJob(ctx.Err, fn)
	if err := s.queue.push(class, j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if j.withdraw() {
			return ctx.Err()
		}
		return <-j.done
	}
}

// View implements store.Reader. Four run at a time; ctx bounds the waiting for
// a turn. A View inside a View may wait for itself: do not nest them.
func (s *Store) View(ctx context.Context, fn func(store.Rx) error) error {
	return s.readers.view(ctx, fn)
}

// Close runs the Updates that wait, ends the store's goroutines, moves the log
// into the database and releases the lock. Later calls return the same error.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closed = s.shut() })
	return s.closed
}

func (s *Store) shut() error {
	s.queue.close(hub.Errorf(hub.CodeHubDraining, "the store is closed"))
	<-s.writer.ended
	s.checker.end()
	errs := []error{s.readers.close()}
	if s.queue.failure() == nil {
		_, err := s.writer.conn.checkpoint("TRUNCATE")
		errs = append(errs, err)
	}
	errs = append(errs, s.writer.conn.close(), s.checker.conn.close(), s.pools.close(), s.lock.Unlock())
	return errors.Join(errs...)
}
