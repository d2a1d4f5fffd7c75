package terminal

import (
	"context"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

var unknownStop = hub.StopProof{Action: hub.ActionUnknown, State: unverifiable}

// Stop ends the whole tree of inc: SIGTERM, SIGKILL after grace. A grace of 0
// takes the Config's, a negative one kills at once. The action is ended or
// none only with a proof that the process is gone. It is unknown when inc
// cannot be proven; then nothing was touched. When ctx ends during the stop,
// the error is outcome_unknown and the supervisor goes on with it.
func (m *Manager) Stop(ctx context.Context, inc hub.Incarnation, grace time.Duration) (hub.StopProof, error) {
	dir, err := m.dir(inc.Terminal)
	if err != nil {
		return unknownStop, err
	}
	if grace == 0 {
		grace = m.cfg.Grace
	}
	state, found, err := recorded(dir, inc)
	if err != nil {
		return unknownStop, err
	}
	if found {
		return hub.StopProof{Action: hub.ActionNone, State: state}, nil
	}
	c, err := m.connect(ctx, dir)
	if err != nil {
		return m.stopOrphan(ctx, dir, inc, grace)
	}
	defer c.Close()
	if !c.hello.proves(inc) {
		return unknownStop, nil
	}
	err = c.send(Command{Op: opKill, GraceMS: max(grace, 0).Milliseconds()})
	if err == nil {
		err = c.untilExit()
	}
	return m.stopped(ctx, dir, inc, err)
}

// stopped says what a kill command came to; failed is the error of the
// command or its connection, which counts only without a proof.
func (m *Manager) stopped(ctx context.Context, dir string, inc hub.Incarnation, failed error) (hub.StopProof, error) {
	state, err := m.orphaned(context.WithoutCancel(ctx), dir, inc, patience(ctx))
	if err != nil {
		return unknownStop, err
	}
	if state.Liveness == hub.Exited {
		return hub.StopProof{Action: hub.ActionEnded, State: state}, nil
	}
	unknown := hub.Errorf(hub.CodeOutcomeUnknown, "the process may still run")
	unknown.Op, unknown.Err = "stopping", failed
	if ctx.Err() != nil {
		unknown.Err = ctx.Err()
	}
	return unknownStop, unknown
}

// patience is leaveLimit, or none for a caller that has given up.
func patience(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	return leaveLimit
}

// stopOrphan ends what a supervisor that is gone left behind: the process by
// its identity, strays by the terminal's mark. It touches nothing unless the
// spawn record names inc and the supervisor is proven gone.
func (m *Manager) stopOrphan(ctx context.Context, dir string, inc hub.Incarnation, grace time.Duration) (hub.StopProof, error) {
	before, err := m.orphaned(ctx, dir, inc, leaveLimit)
	if err != nil {
		return unknownStop, err
	}
	var s spawn
	found, err := load(dir, spawnFile, &s)
	if err != nil {
		return unknownStop, err
	}
	if before.Liveness == hub.Exited && (before.ExitCode != nil || !found) {
		return hub.StopProof{Action: hub.ActionNone, State: before}, nil
	}
	if !found || s.Incarnation != inc || proc.Check(s.Supervisor) != hub.Exited {
		return unknownStop, nil
	}
	var c claim
	if _, err := load(dir, claimFile, &c); err != nil {
		return unknownStop, err
	}
	tree := proc.Tree{Root: identityOf(inc), WithRoot: true, Key: terminalVar, Value: string(inc.Terminal), Group: c.Cgroup}
	if err := proc.EndTree(ctx, tree, grace); err != nil {
		return unknownStop, err
	}
	return m.orphanStopped(ctx, dir, inc, before)
}

func (m *Manager) orphanStopped(ctx context.Context, dir string, inc hub.Incarnation, before hub.ProcessState) (hub.StopProof, error) {
	after, err := m.orphaned(context.WithoutCancel(ctx), dir, inc, 0)
	if err != nil || after.Liveness != hub.Exited {
		return unknownStop, err
	}
	proof := hub.StopProof{Action: hub.ActionEnded, State: after}
	if before.Liveness == hub.Exited {
		proof.Action = hub.ActionNone
	}
	return proof, nil
}
