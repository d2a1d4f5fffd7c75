package work

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// attended are those that somebody looks after, such as the terminals whose process
// is watched, so that nobody does twice. Safe for concurrent use; the zero value is
// ready.
type attended[K comparable] struct {
	mu  sync.Mutex
	ids map[K]bool // guarded by mu
}

// take reports whether the caller has to look after it.
func (a *attended[K]) take(id K) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids[id] {
		return false
	}
	if a.ids == nil {
		a.ids = map[K]bool{}
	}
	a.ids[id] = true
	return true
}

func (a *attended[K]) drop(id K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ids, id)
}

// attend commits the end of a terminal's process when it is proven: to the
// terminal and to every attempt that is attached to it.
func (s *Service) attend(in hub.Incarnation) {
	if !s.attended.take(in.Terminal) {
		return
	}
	ok := s.Spawn(func(ctx context.Context) {
		defer s.attended.drop(in.Terminal)
		defer s.board.unwatched(in.Terminal)
		var pause patience
		for {
			done, err := s.awaitExit(ctx, in)
			if done || ctx.Err() != nil {
				return
			}
			if err != nil {
				s.Log.Error("watching a terminal", "terminal_id", in.Terminal, "error", err)
			}
			if !pause.wait(ctx) {
				return
			}
		}
	})
	if !ok {
		s.attended.drop(in.Terminal)
	}
}

// awaitExit waits for the end of the process and commits it, behind what its
// structured output says. A process that can be neither verified nor proven gone
// is looked at again later.
func (s *Service) awaitExit(ctx context.Context, in hub.Incarnation) (done bool, err error) {
	if err := s.followStreams(ctx, in); err != nil && ctx.Err() == nil {
		s.Log.Error("reading a worker's structured output", "terminal_id", in.Terminal, "error", err)
	}
	st, err := s.Terminals.Attend(ctx, in, s.signsOf(in))
	if err != nil || st.Liveness != hub.Exited {
		if ctx.Err() == nil { // a hub that stops has lost sight of nothing
			s.board.unproven(in.Terminal)
		}
		return false, err
	}
	err = s.commitExit(ctx, in, st)
	return err == nil, err
}

// commitExit commits a proven exit once, behind what the workers spooled, with
// the end of the output. Output that cannot be read holds no exit back; a spool
// does, for what it holds was accepted before.
func (s *Service) commitExit(ctx context.Context, in hub.Incarnation, st hub.ProcessState) error {
	if err := s.unspoolAll(ctx, in); err != nil {
		return err
	}
	tail, err := s.Terminals.Tail(ctx, in.Terminal, resultBytes)
	if err != nil {
		s.Log.Error("reading a terminal's output at its end", "terminal_id", in.Terminal, "error", err)
	}
	kept, err := s.archiveAll(ctx, in)
	if err != nil {
		return err
	}
	exit := hub.ExitItem{Incarnation: in, ExitCode: st.ExitCode, Signal: st.Signal}
	var ended []hub.Attachment
	err = s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		for who, out := range kept {
			if err := tx.PutArchivedOutput(who.home, who.id, out); err != nil {
				return err
			}
		}
		if ended, err = exitAll(tx, exit, redact(tail.Data)); err != nil {
			return err
		}
		_, err = endTerminal(tx, in.Terminal, st)
		if hub.IsCode(err, hub.CodeTerminalNotFound) {
			err = nil // a worker of a hub that kept no record of terminals
		}
		return err
	})
	for _, a := range ended {
		s.beats.forget(attempt{a.Home, a.Dispatch})
		s.meters.forget(attempt{a.Home, a.Dispatch})
	}
	return err
}

// exitAll commits the exit to every attempt at the terminal that had this
// process.
func exitAll(tx store.Tx, exit hub.ExitItem, tail string) ([]hub.Attachment, error) {
	as, err := tx.AttachedTo(exit.Incarnation.Terminal)
	for _, a := range as {
		if err == nil && a.Process != nil {
			err = dispatch.Exit(tx, a.Home, a.Dispatch, exit, tail)
		}
	}
	return as, err
}

// startedTerminal records the process of a terminal.
func startedTerminal(tx store.Terminals, id hub.TerminalID, in hub.Incarnation) (hub.Terminal, error) {
	t, err := tx.Terminal(id)
	if err != nil {
		return t, err
	}
	t.Process = &in
	return t, tx.SaveTerminal(t)
}

type endTx interface {
	store.Terminals
	Now() hub.Micros
}

// endTerminal records the end of a terminal once.
func endTerminal(tx endTx, id hub.TerminalID, st hub.ProcessState) (hub.Terminal, error) {
	t, err := tx.Terminal(id)
	if err != nil || t.Over() {
		return t, err
	}
	t.EndedAt, t.ExitCode, t.Signal = st.ExitedAt, st.ExitCode, st.Signal
	if t.EndedAt == 0 {
		t.EndedAt = tx.Now()
	}
	return t, tx.SaveTerminal(t)
}

// recoverTerminals brings the terminals up to date before the hub serves: a
// creation that was cut off is decided, what lives is watched, what is gone is
// recorded. One that cannot be judged does not keep the hub from serving.
func (s *Service) recoverTerminals(ctx context.Context) error {
	var open []hub.Terminal
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		open, err = rx.OpenTerminals()
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range open {
		if t, err = s.decided(ctx, t.ID); err != nil {
			s.Log.Error("recovering a terminal", "terminal_id", t.ID, "error", err)
			continue
		}
		if t.Process != nil && !t.Over() {
			s.attend(*t.Process)
		}
	}
	return ctx.Err()
}

// CloseInput is the argument of CloseTerminal. TimeoutMS 0 means 30 s, GraceMS 0
// the launcher's grace.
type CloseInput struct {
	Terminal  hub.TerminalID
	TimeoutMS int64
	GraceMS   int64
}

// CloseTerminal ends exactly the terminal's process tree: proven, or unknown.
// One that works for a live Dispatch is terminal_busy.
func (s *Service) CloseTerminal(ctx context.Context, r receipt.Request, in CloseInput) (hub.TerminalEnd, error) {
	perform := func(ctx context.Context, begun hub.TerminalEnd) (hub.TerminalEnd, error) {
		return s.performClose(ctx, in, begun)
	}
	return receipt.Long(ctx, s.Gate, r, receipt.Operation[hub.TerminalEnd]{
		Class: store.Settle, Prepare: s.decide(in.Terminal),
		Begin:   func(tx store.Tx) (hub.TerminalEnd, error) { return beginClose(tx, in.Terminal) },
		Perform: perform, Observe: perform,
		Unknown: func(r hub.TerminalEnd) bool { return r.State == hub.TerminalUnknown },
		Open: func(begun hub.TerminalEnd) hub.TerminalEnd {
			return undecided(begun, errors.New("the close goes on and its end was not waited for"))
		},
	})
}

// decide is a Prepare that finds out about a creation that was cut off.
func (s *Service) decide(id hub.TerminalID) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.decided(ctx, id)
		return err
	}
}

// beginClose fences the terminal: nothing is attached to it any more.
func beginClose(tx store.Tx, id hub.TerminalID) (hub.TerminalEnd, error) {
	t, err := tx.Terminal(id)
	if err != nil {
		return hub.TerminalEnd{}, err
	}
	out := hub.TerminalEnd{Terminal: id, State: hub.TerminalClosed, Action: hub.ActionNone, NextCommands: [][]string{}}
	if t.Over() {
		out.AlreadyClosed, out.ExitCode = true, t.ExitCode
		return out, nil
	}
	if err := free(tx, t); err != nil {
		return out, err
	}
	t.ClosedAt = tx.Now()
	return out, tx.SaveTerminal(t)
}

func (s *Service) performClose(ctx context.Context, in CloseInput, begun hub.TerminalEnd) (hub.TerminalEnd, error) {
	if begun.AlreadyClosed {
		return begun, nil
	}
	timeout := defaultCloseTime
	if in.TimeoutMS > 0 {
		timeout = time.Duration(in.TimeoutMS) * time.Millisecond
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t, err := s.decided(limited, in.Terminal)
	switch {
	case err != nil:
		return undecided(begun, err), nil
	case t.Process == nil && t.Over():
		return begun, nil // it was never started
	case t.Process == nil:
		return undecided(begun, errors.New("whether its process was started is not known")), nil
	}
	proof, err := s.Terminals.Stop(limited, *t.Process, s.closeGrace(t, in))
	if err == nil && proof.State.Liveness != hub.Exited {
		err = errors.New("the process can be neither verified nor signalled")
	}
	if err == nil {
		err = s.commitExit(context.WithoutCancel(ctx), *t.Process, proof.State)
	}
	if err != nil {
		return undecided(begun, err), nil
	}
	begun.State, begun.Action, begun.ExitCode = hub.TerminalClosed, proof.Action, proof.State.ExitCode
	begun.LastError, begun.NextCommands = "", [][]string{}
	return begun, nil
}

func (s *Service) closeGrace(t hub.Terminal, in CloseInput) time.Duration {
	if in.GraceMS > 0 {
		return time.Duration(in.GraceMS) * time.Millisecond
	}
	return s.Agents.Grace(t.Agent)
}

// undecided completes the answer to a close whose end is not proven.
func undecided(r hub.TerminalEnd, err error) hub.TerminalEnd {
	r.State, r.Action, r.LastError = hub.TerminalUnknown, hub.ActionUnknown, err.Error()
	r.NextCommands = [][]string{{"wavehub", "terminal", "show", string(r.Terminal)}}
	return r
}
