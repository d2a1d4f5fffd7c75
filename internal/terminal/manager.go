package terminal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/proc"
)

const (
	defaultGrace = 5 * time.Second
	strayGrace   = time.Second
	leaveLimit   = 2 * time.Second // for a supervisor that is about to be gone
)

// Config of a Manager.
type Config struct {
	// Root holds one directory per terminal; it exists, is absolute, and is
	// this user's alone.
	Root string
	// Exe is the start of the argv that runs Supervise with a directory as its
	// last argument, an absolute program first: [/usr/bin/wavehub supervise].
	Exe []string
	// Grace is between SIGTERM and SIGKILL where a Stop names none; 0 takes 5 s.
	Grace time.Duration
}

// Manager launches, observes and stops the processes of terminals. It keeps
// nothing in memory, so any number of Managers of one Root agree. It is safe
// for concurrent use. Each launch leaves one goroutine that waits for the
// supervisor, as the system asks of a parent, and ends with that.
type Manager struct{ cfg Config }

// New checks cfg and starts nothing.
func New(cfg Config) (*Manager, error) {
	if len(cfg.Exe) == 0 || !filepath.IsAbs(cfg.Exe[0]) {
		return nil, errors.New("terminal: the supervisor's program is not absolute")
	}
	if !filepath.IsAbs(cfg.Root) {
		return nil, fmt.Errorf("terminal: root %q is not absolute", cfg.Root)
	}
	if info, err := os.Stat(cfg.Root); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("terminal: root %q is not a folder", cfg.Root)
	}
	if cfg.Grace <= 0 {
		cfg.Grace = defaultGrace
	}
	return &Manager{cfg: cfg}, nil
}

// dir returns the directory of the terminal; a malformed id has none.
func (m *Manager) dir(terminal hub.TerminalID) (string, error) {
	if !id.Valid(hub.PrefixTerminal, string(terminal)) {
		return "", hub.Invalid("terminal_id", "%q is not a terminal's id", terminal)
	}
	return filepath.Join(m.cfg.Root, string(terminal)), nil
}

// Incarnation returns what a launch of the terminal started, running or not;
// false when no start is recorded. A launch may still be under way then:
// Recover gives a final answer.
func (m *Manager) Incarnation(terminal hub.TerminalID) (hub.Incarnation, bool, error) {
	dir, err := m.dir(terminal)
	if err != nil {
		return hub.Incarnation{}, false, err
	}
	var s spawn
	found, err := load(dir, spawnFile, &s)
	return s.Incarnation, found, err
}

// Tail returns at most maxBytes of the end of the terminal's output, also
// after the process has ended; empty for a terminal that wrote nothing.
func (m *Manager) Tail(ctx context.Context, terminal hub.TerminalID, maxBytes int) (hub.OutputTail, error) {
	dir, err := m.opened(ctx, terminal)
	if err != nil {
		return hub.OutputTail{}, err
	}
	return readTail(filepath.Join(dir, outputDir), maxBytes)
}

// opened returns the directory of a terminal that has one.
func (m *Manager) opened(ctx context.Context, terminal hub.TerminalID) (string, error) {
	dir, err := m.dir(terminal)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", hub.Errorf(hub.CodeTerminalNotFound, "terminal %s has no directory", terminal)
	}
	return dir, nil
}

// Remove deletes the directory of a terminal whose process is proven to have
// ended or never to start, and whose cgroup is empty, waiting up to two seconds
// for its supervisor to leave; terminal_busy otherwise. A terminal without a directory is no error.
func (m *Manager) Remove(terminal hub.TerminalID) error {
	dir, err := m.dir(terminal)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	over, err := m.over(dir)
	if err != nil {
		return err
	}
	if !over {
		return hub.Errorf(hub.CodeTerminalBusy, "terminal %s has a process that is not proven to have ended", terminal)
	}
	var l launch
	if found, err := load(dir, specFile, &l); err == nil && found {
		if err := removeEndpoint(l.Endpoint); err != nil {
			return fmt.Errorf("removing the terminal's endpoint: %w", err)
		}
	}
	var c claim
	if found, err := load(dir, claimFile, &c); err == nil && found && c.Cgroup != "" {
		if err := proc.RemoveGroup(c.Cgroup); err != nil {
			busy := hub.Errorf(hub.CodeTerminalBusy, "terminal %s has processes that could not be ended", terminal)
			busy.Err = err
			return busy
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the terminal's directory: %w", err)
	}
	return nil
}

// over reports whether nothing of the terminal runs or will.
func (m *Manager) over(dir string) (bool, error) {
	won, err := take(dir, claim{})
	if err != nil || won {
		return won, err
	}
	var c claim
	if _, err := load(dir, claimFile, &c); err != nil {
		return false, err
	}
	if c.Supervisor == nil {
		return true, nil
	}
	var e Exit
	ended, err := load(dir, exitFile, &e)
	if err != nil {
		return false, err
	}
	if !ended && proc.Check(*c.Supervisor) != hub.Exited {
		return false, nil
	}
	if !awaitExit(*c.Supervisor, leaveLimit) || ended {
		return ended, nil
	}
	var s spawn
	spawned, err := load(dir, spawnFile, &s)
	if err != nil || !spawned {
		return err == nil, err
	}
	return proc.Check(identityOf(s.Incarnation)) == hub.Exited, nil
}

// awaitExit waits for a process that is about to be gone.
func awaitExit(id proc.Identity, limit time.Duration) bool {
	for end := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		if proc.Check(id) == hub.Exited {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

func identityOf(inc hub.Incarnation) proc.Identity {
	return proc.Identity{PID: inc.PID, StartedAt: inc.StartedAt, BootID: inc.BootID}
}
