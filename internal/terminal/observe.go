package terminal

import (
	"context"
	"path/filepath"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// Observe says what can be proven of inc. Its exit record makes it exited; so
// do, without the code, another boot, or a process and a supervisor that are
// both gone. A supervisor that proves inc makes it live, also while the output
// of an ended process is drained and its strays are ended, at most a few
// seconds. Everything else is unverifiable. The error is that of ctx, or of a
// record that cannot be read.
func (m *Manager) Observe(ctx context.Context, inc hub.Incarnation) (hub.ProcessState, error) {
	dir, err := m.dir(inc.Terminal)
	if err != nil {
		return unverifiable, err
	}
	if state, found, err := recorded(dir, inc); err != nil || found {
		return state, err
	}
	c, err := m.connect(ctx, dir)
	if err != nil {
		return m.orphaned(ctx, dir, inc, 0)
	}
	defer c.Close()
	if !c.hello.proves(inc) {
		return unverifiable, nil
	}
	return withOutput(dir, hub.ProcessState{Liveness: hub.Live})
}

// Wait blocks until inc has exited, or until its supervisor is gone and
// nothing proves that: then it is unverifiable. It costs one connection and
// does not poll. The error is that of ctx, or of a record that cannot be read.
func (m *Manager) Wait(ctx context.Context, inc hub.Incarnation) (hub.ProcessState, error) {
	return m.wait(ctx, inc, func(*client, string) {})
}

// wait is Wait; begun is told of the connection that it waits on.
func (m *Manager) wait(ctx context.Context, inc hub.Incarnation, begun func(c *client, dir string)) (hub.ProcessState, error) {
	dir, err := m.dir(inc.Terminal)
	if err != nil {
		return unverifiable, err
	}
	if state, found, err := recorded(dir, inc); err != nil || found {
		return state, err
	}
	c, err := m.connect(ctx, dir)
	if err != nil {
		return m.orphaned(ctx, dir, inc, leaveLimit)
	}
	defer c.Close()
	if !c.hello.proves(inc) {
		return unverifiable, nil
	}
	begun(c, dir)
	// However it ends: the record decides, or the processes do.
	_ = c.untilExit()
	return m.orphaned(ctx, dir, inc, leaveLimit)
}

var unverifiable = hub.ProcessState{Liveness: hub.Unverifiable}

// recorded returns the state that the exit record of inc proves.
func recorded(dir string, inc hub.Incarnation) (hub.ProcessState, bool, error) {
	var e Exit
	found, err := load(dir, exitFile, &e)
	if err != nil {
		return unverifiable, false, err
	}
	if !found || inc.Nonce == "" || e.Nonce != inc.Nonce {
		return unverifiable, false, nil
	}
	state, err := withOutput(dir, hub.ProcessState{Liveness: hub.Exited, ExitCode: e.Code, Signal: e.Signal, ExitedAt: e.At})
	return state, err == nil, err
}

func withOutput(dir string, state hub.ProcessState) (hub.ProcessState, error) {
	at, err := lastOutputAt(filepath.Join(dir, outputDir))
	state.LastOutputAt = at
	return state, err
}

// orphaned says what can be proven of inc when its supervisor cannot be
// reached. It gives a supervisor that is just leaving the time to be gone.
func (m *Manager) orphaned(ctx context.Context, dir string, inc hub.Incarnation, patience time.Duration) (hub.ProcessState, error) {
	if err := ctx.Err(); err != nil {
		return unverifiable, err
	}
	state, found, err := recorded(dir, inc)
	if err != nil || found {
		return state, err
	}
	gone, err := supervisorGone(dir, inc, patience)
	if err != nil {
		return unverifiable, err
	}
	// Again, after the supervisor: a record is the last thing it writes.
	if state, found, err = recorded(dir, inc); err != nil || found {
		return state, err
	}
	if !gone || proc.Check(identityOf(inc)) != hub.Exited {
		return unverifiable, nil
	}
	return withOutput(dir, hub.ProcessState{Liveness: hub.Exited})
}

// supervisorGone reports whether the supervisor of inc is proven gone: by its
// identity in the spawn record, or by another boot. A directory that is gone
// was removed after the proof.
func supervisorGone(dir string, inc hub.Incarnation, patience time.Duration) (bool, error) {
	var s spawn
	found, err := load(dir, spawnFile, &s)
	if err != nil {
		return false, err
	}
	if !found {
		return true, nil
	}
	if s.Incarnation != inc {
		return false, nil
	}
	return awaitExit(s.Supervisor, patience), nil
}
