package terminal

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	inputLimit = 10 * time.Second // for a process that does not read its input
	answerTime = time.Second      // of the caller's time that is kept for the answer
)

// Input writes data, at most 512 KiB, to the pseudo terminal of inc, as a
// keyboard would. Nil means that the terminal took all of it, which says nothing
// about the process reading it. With outcome_unknown it may have been taken;
// any other error says how much was, and that is nothing unless it names a
// number. The process has until a second before ctx ends, at most ten, to make
// room. Concurrent calls write one after the other. invalid_argument: the
// process has pipes; terminal_busy: it did not make room; dispatch_inactive: it
// has ended; precondition_failed: inc cannot be proven; capability_unsupported:
// its supervisor is of an older hub.
func (m *Manager) Input(ctx context.Context, inc hub.Incarnation, data []byte) error {
	if len(data) > maxInput {
		return hub.Invalid("data", "%d bytes are more than the %d of one input", len(data), maxInput)
	}
	_, err := m.ask(ctx, inc, liveVersion, Command{Op: opInput, Data: data, LimitMS: inputTime(ctx).Milliseconds()})
	return err
}

// inputTime is how long the supervisor may wait for the process.
func inputTime(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return inputLimit
	}
	left := time.Until(end)
	return min(inputLimit, max(left-answerTime, left/2))
}

// Resize gives the pseudo terminal of inc another size, which the process is
// told and which survives it. The errors are those of Input.
func (m *Manager) Resize(ctx context.Context, inc hub.Incarnation, size hub.TerminalSize) error {
	if err := checkSize(size); err != nil {
		return err
	}
	_, err := m.ask(ctx, inc, liveVersion, Command{Op: opResize, Size: &size})
	return err
}

// State returns what the supervisor of inc knows of its terminal. When the
// process has ended, the title and what else only the supervisor knew are gone;
// size and output are still told. The errors are those of Input.
func (m *Manager) State(ctx context.Context, inc hub.Incarnation) (hub.TerminalState, error) {
	ev, err := m.ask(ctx, inc, 1, Command{Op: opState})
	if hub.IsCode(err, hub.CodeDispatchInactive) {
		return m.lastState(inc.Terminal)
	}
	if err != nil {
		return hub.TerminalState{}, err
	}
	state := hub.TerminalState{
		Title: ev.Title, Agent: ev.Agent, BracketedPaste: ev.BracketedPaste,
		Total: ev.Total, Input: ev.Input, LastOutputAt: ev.LastOutputAt,
	}
	if ev.Size != nil {
		state.Size = *ev.Size
	}
	return state, nil
}

// lastState is what the directory of a terminal tells after its process.
func (m *Manager) lastState(id hub.TerminalID) (hub.TerminalState, error) {
	dir, err := m.dir(id)
	if err != nil {
		return hub.TerminalState{}, err
	}
	size, _, err := sizeOf(dir)
	if err != nil {
		return hub.TerminalState{}, err
	}
	tail, err := readTail(filepath.Join(dir, outputDir), 0)
	if err != nil {
		return hub.TerminalState{}, err
	}
	at, err := lastOutputAt(filepath.Join(dir, outputDir))
	return hub.TerminalState{Size: size, Total: tail.Total, LastOutputAt: at}, err
}

// AwaitOutput returns the number of bytes of output ever written as soon as
// that is above after, or the process has ended. It costs one connection and
// does not poll. The errors are those of Input.
func (m *Manager) AwaitOutput(ctx context.Context, inc hub.Incarnation, after int64) (total int64, err error) {
	ev, err := m.ask(ctx, inc, liveVersion, Command{Op: opWatch, After: after})
	if hub.IsCode(err, hub.CodeDispatchInactive) {
		state, err := m.lastState(inc.Terminal)
		return state.Total, err
	}
	return ev.Total, err
}

// ask sends one command to the supervisor that proves inc and returns its
// answer. dispatch_inactive means that the process is proven to have ended
// before the command had an effect.
func (m *Manager) ask(ctx context.Context, inc hub.Incarnation, version int, cmd Command) (Event, error) {
	dir, err := m.dir(inc.Terminal)
	if err != nil {
		return Event{}, err
	}
	c, err := m.connect(ctx, dir)
	if err != nil {
		return Event{}, m.unreached(ctx, dir, inc, err)
	}
	defer c.Close()
	if !c.hello.proves(inc) {
		return Event{}, unproven(inc, nil)
	}
	if c.hello.Version < version {
		return Event{}, hub.Errorf(hub.CodeCapabilityUnsupported, "the supervisor of terminal %s was started by an older hub and cannot do %s", inc.Terminal, cmd.Op)
	}
	ev, err := c.ask(cmd)
	if err == nil {
		return ev, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return Event{}, m.unanswered(ctx, dir, inc, cmd, err)
}

// ask returns the answer to cmd, and *hub.Error if the supervisor refused it.
func (c *client) ask(cmd Command) (Event, error) {
	if err := c.send(cmd); err != nil {
		return Event{}, err
	}
	var ev Event
	if err := readControl(c, &ev); err != nil {
		return Event{}, err
	}
	switch ev.Op {
	case cmd.Op:
		return ev, nil
	case evError:
		return Event{}, refusal(ev)
	case evExited: // all that was begun had its answer before this
		return Event{}, hub.Errorf(hub.CodeDispatchInactive, "the process has ended; nothing was written")
	}
	return Event{}, fmt.Errorf("the supervisor answered %q to %s", ev.Op, cmd.Op)
}

// refusal is the error that a supervisor answered.
func refusal(ev Event) *hub.Error {
	if !ev.Code.Known() {
		ev.Code = hub.CodeInternal
	}
	return &hub.Error{Code: ev.Code, Message: ev.Error, Hint: hints[ev.Code]}
}

// hints say what to do where the catalogue's advice is about something else.
var hints = map[hub.Code]string{
	hub.CodeTerminalBusy: "read the terminal's screen: the process has to read its input before it can get more",
}

// unanswered is the error of a command whose answer is missing. The supervisor
// may have acted on it, which matters only where that is not undone by the end.
func (m *Manager) unanswered(ctx context.Context, dir string, inc hub.Incarnation, cmd Command, cause error) error {
	if refused, ok := cause.(*hub.Error); ok {
		return refused
	}
	if cmd.Op != opInput {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return m.unreached(ctx, dir, inc, cause)
	}
	unknown := hub.Errorf(hub.CodeOutcomeUnknown, "the input may have been written")
	unknown.Op, unknown.Err = "writing to the terminal", cause
	unknown.Hint = "read the terminal's screen before anything is written again"
	return unknown
}

// unreached says why there is no supervisor to ask: dispatch_inactive when the
// process is proven to have ended.
func (m *Manager) unreached(ctx context.Context, dir string, inc hub.Incarnation, cause error) error {
	state, err := m.orphaned(ctx, dir, inc, leaveLimit)
	if err != nil {
		return err
	}
	if state.Liveness == hub.Exited {
		return hub.Errorf(hub.CodeDispatchInactive, "the process of terminal %s has ended", inc.Terminal)
	}
	return unproven(inc, cause)
}

func unproven(inc hub.Incarnation, cause error) error {
	e := hub.Errorf(hub.CodePreconditionFailed, "terminal %s is not proven to run the process that was launched; nothing was sent to it", inc.Terminal)
	e.Err = cause
	return e
}
