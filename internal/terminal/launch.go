package terminal

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// Launch starts the process of spec under a supervisor of its own and returns
// when the spawn record is durable. A terminal is launched at most once. An
// error means that no process is left and none will start, except
// outcome_unknown: then the process may run, and Recover tells. Launch returns
// no later than ctx ends.
func (m *Manager) Launch(ctx context.Context, spec hub.LaunchSpec) (hub.Incarnation, error) {
	dir, err := m.dir(spec.Terminal)
	if err == nil {
		err = checkSpec(spec)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return hub.Incarnation{}, err
	}
	if err := m.prepare(dir, spec); err != nil {
		return hub.Incarnation{}, err
	}
	sup, err := startSupervisor(m.cfg, dir)
	if err != nil {
		return hub.Incarnation{}, errors.Join(fmt.Errorf("starting the supervisor: %w", err), os.RemoveAll(dir))
	}
	select {
	case a := <-sup.said:
		return sup.outcome(ctx, dir, a)
	case <-ctx.Done():
		return hub.Incarnation{}, undecided(dir, ctx.Err())
	}
}

func checkSpec(spec hub.LaunchSpec) error {
	switch {
	case len(spec.Argv) == 0 || !filepath.IsAbs(spec.Argv[0]):
		return hub.Invalid("argv", "the program is not absolute")
	case !filepath.IsAbs(spec.Dir):
		return hub.Invalid("dir", "%q is not absolute", spec.Dir)
	case spec.OutputCap < 0:
		return hub.Invalid("output_cap", "%d is negative", spec.OutputCap)
	case spec.PTY == nil:
		return nil
	case spec.Stdin != nil:
		return hub.Invalid("stdin", "a process in a pseudo terminal gets its input by Input")
	}
	return checkSize(*spec.PTY)
}

// prepare makes the terminal's directory and the durable spec.
func (m *Manager) prepare(dir string, spec hub.LaunchSpec) error {
	endpoint, err := endpointFor(spec.Terminal)
	if err != nil {
		return err
	}
	var nonce [32]byte
	rand.Read(nonce[:]) // never fails
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("creating the terminal's directory: %w", err)
	}
	err = store(dir, specFile, launch{
		LaunchSpec: spec, Nonce: hex.EncodeToString(nonce[:]), Endpoint: endpoint,
		StrayGraceMS: min(m.cfg.Grace, strayGrace).Milliseconds(),
	})
	if err == nil {
		err = syncDir(m.cfg.Root)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// supervising is a supervisor that has been started.
type supervising struct {
	said chan announcement // one value: what it announced, or that it ended
	done chan struct{}     // closed when it has ended and was waited for
}

func startSupervisor(cfg Config, dir string) (*supervising, error) {
	log, err := os.OpenFile(filepath.Join(dir, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	said, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	cmd, err := startDetached(func() *exec.Cmd {
		argv := append(cfg.Exe[1:len(cfg.Exe):len(cfg.Exe)], dir)
		cmd := exec.Command(cfg.Exe[0], argv...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cfg.Root, supervisorEnv(), write, log
		proc.Detach(cmd)
		return cmd
	})
	if err != nil {
		return nil, errors.Join(err, said.Close())
	}
	s := &supervising{said: make(chan announcement, 1), done: make(chan struct{})}
	go s.follow(cmd, said)
	return s, nil
}

// supervisorEnv is the hub's environment without the mark of a terminal that
// the hub itself may run in: the supervisor is not a process of that.
func supervisorEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, terminalVar+"=") {
			env = append(env, entry)
		}
	}
	return env
}

// follow reads the announcement and waits for the supervisor.
func (s *supervising) follow(cmd *exec.Cmd, said io.ReadCloser) {
	defer close(s.done)
	s.said <- readAnnouncement(said)
	_ = said.Close()
	_ = cmd.Wait() // what it did is in its records
}

func readAnnouncement(r io.Reader) announcement {
	line, err := bufio.NewReader(io.LimitReader(r, maxFrame)).ReadBytes('\n')
	var a announcement
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		return announcement{}
	}
	return a
}

// outcome turns the announcement into Launch's answer.
func (s *supervising) outcome(ctx context.Context, dir string, a announcement) (hub.Incarnation, error) {
	switch {
	case a.Incarnation != nil:
		return *a.Incarnation, nil
	case a.Error == "":
		return hub.Incarnation{}, undecided(dir, errors.New("the supervisor ended without a word"))
	}
	select { // no process is left, and neither is the supervisor
	case <-s.done:
	case <-ctx.Done():
	}
	return hub.Incarnation{}, fmt.Errorf("launching: %s", a.Error)
}

// undecided gives the launch up if it has not been claimed, which makes cause
// final; else it is outcome_unknown.
func undecided(dir string, cause error) error {
	won, err := take(dir, claim{})
	if won {
		return fmt.Errorf("launching, given up before the start: %w", cause)
	}
	unknown := hub.Errorf(hub.CodeOutcomeUnknown, "the process may have been started")
	unknown.Op, unknown.Err = "launching", errors.Join(cause, err)
	return unknown
}

// Recover answers for good whether a launch of the terminal started a process,
// after a crash or outcome_unknown: with true and the incarnation it did; with
// false nothing runs and nothing will. It waits for a supervisor that is just
// starting the process; if ctx ends before, the error is outcome_unknown.
func (m *Manager) Recover(ctx context.Context, terminal hub.TerminalID) (hub.Incarnation, bool, error) {
	dir, err := m.dir(terminal)
	if err != nil {
		return hub.Incarnation{}, false, err
	}
	if inc, found, err := m.Incarnation(terminal); err != nil || found {
		return inc, found, err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return hub.Incarnation{}, false, nil
	}
	if won, err := take(dir, claim{}); err != nil || won {
		return hub.Incarnation{}, false, err
	}
	return m.awaitSpawn(ctx, dir, terminal)
}

// awaitSpawn waits until the supervisor that claimed the launch has written
// the spawn record or is gone. Its endpoint answers only after the record.
func (m *Manager) awaitSpawn(ctx context.Context, dir string, terminal hub.TerminalID) (hub.Incarnation, bool, error) {
	var c claim
	if _, err := load(dir, claimFile, &c); err != nil || c.Supervisor == nil {
		return hub.Incarnation{}, false, err
	}
	if conn, err := m.connect(ctx, dir); err == nil {
		_ = conn.Close()
	} else if ctx.Err() == nil && !awaitExit(*c.Supervisor, leaveLimit) {
		unknown := hub.Errorf(hub.CodeOutcomeUnknown, "the supervisor does not answer")
		unknown.Err = err
		return hub.Incarnation{}, false, unknown
	}
	if ctx.Err() != nil {
		return hub.Incarnation{}, false, undecided(dir, ctx.Err())
	}
	if inc, found, err := m.Incarnation(terminal); err != nil || found {
		return inc, found, err
	}
	// It died between the start and the record.
	tree := proc.Tree{Root: *c.Supervisor, Key: terminalVar, Value: string(terminal), Group: c.Cgroup}
	return hub.Incarnation{}, false, proc.EndTree(ctx, tree, time.Duration(0))
}
