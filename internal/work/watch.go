package work

import (
	"context"
	"errors"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Intervals at which a process that can no longer be verified is looked at
// again; a verified one costs nothing while it runs.
const (
	firstLook = time.Second
	lastLook  = time.Minute
)

// resultBytes is how much output stands for the result of a launcher that
// completes by exit.
const resultBytes = 16 << 10

// watch commits the worker's exit when it is proven.
func (s *Service) watch(a hub.Attachment) {
	s.Spawn(func(ctx context.Context) {
		if err := s.awaitExit(ctx, a); err != nil && ctx.Err() == nil {
			s.Log.Error("watching a worker", "dispatch_id", a.Dispatch, "error", err)
		}
	})
}

func (s *Service) awaitExit(ctx context.Context, a hub.Attachment) error {
	pause := firstLook
	for {
		st, err := s.Terminals.Wait(ctx, *a.Process)
		if err != nil {
			return err
		}
		if st.Liveness == hub.Exited {
			return s.commitExit(ctx, a, st)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
		pause = min(2*pause, lastLook)
	}
}

// commitExit commits a proven exit once, with the end of the output.
func (s *Service) commitExit(ctx context.Context, a hub.Attachment, st hub.ProcessState) error {
	tail, err := s.Terminals.Tail(ctx, a.Terminal, resultBytes)
	if err != nil {
		return err
	}
	exit := hub.ExitItem{Incarnation: *a.Process, ExitCode: st.ExitCode, Signal: st.Signal}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		return dispatch.Exit(tx, a.Home, a.Dispatch, exit, redact(tail.Data))
	})
}

// Fences carries out the stops that homes order through the relay, and those
// that a restart left undone. It runs until ctx ends.
func (s *Service) Fences(ctx context.Context) error {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicFence), "")
	defer cancel()
	for {
		if err := s.fencesOnce(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("carrying out stops", "error", err)
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Service) fencesOnce(ctx context.Context) error {
	open, err := s.open(ctx)
	if err != nil {
		return err
	}
	for _, a := range open {
		if a.Fence == nil || a.Fenced {
			continue
		}
		s.Spawn(func(ctx context.Context) {
			if _, err := s.carryOut(ctx, a, stopTimeout(0)); err != nil && ctx.Err() == nil {
				s.Log.Error("stopping a worker", "dispatch_id", a.Dispatch, "error", err)
			}
		})
	}
	return nil
}

func (s *Service) open(ctx context.Context) (as []hub.Attachment, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		as, err = rx.OpenAttachments()
		return err
	})
	return as, err
}

// Recover finds out, before the hub serves, what became of everything that a
// former process of this hub had under way.
func (s *Service) Recover(ctx context.Context) error {
	open, err := s.open(ctx)
	if err != nil {
		return err
	}
	for _, a := range open {
		if err := s.recover(ctx, a); err != nil {
			return err
		}
	}
	return s.demote(ctx)
}

// recover brings one attachment up to date: its capability file, its start, its
// process.
func (s *Service) recover(ctx context.Context, a hub.Attachment) error {
	release, err := s.hands.take(ctx, attempt{a.Home, a.Dispatch})
	if err != nil {
		return err
	}
	defer release()
	if a, err = s.attachment(ctx, a.Home, a.Dispatch); err != nil || a.Tombstone || a.ExitDone && a.Receipt.State != hub.StartStarting {
		return err
	}
	if err := s.rewriteAuthority(a); err != nil {
		return err
	}
	if a.Process == nil {
		return s.recoverStart(ctx, a)
	}
	if err := s.recoverReady(ctx, a); err != nil {
		return err
	}
	s.watch(a)
	return nil
}

// recoverReady tells the home's record of a start whose proof was committed
// before its end was.
func (s *Service) recoverReady(ctx context.Context, a hub.Attachment) error {
	if a.Home != "" {
		return nil
	}
	rec, err := s.recorded(ctx, a.Dispatch)
	if err != nil || rec.Dispatch.State != hub.Starting && rec.Dispatch.State != hub.StartUnknown {
		return err
	}
	_, err = s.endOwn(ctx, a.Home, a.Receipt, hub.EvStarted)
	return err
}

func (s *Service) rewriteAuthority(a hub.Attachment) error {
	switch a.Receipt.Stage {
	case hub.StageAuthority, hub.StageInputDelivering, hub.StageTerminalCreating, hub.StageInputAccepted, hub.StageTerminalCreated:
		token, _ := s.Authority.Capability(a.Home, a.Dispatch)
		_, err := s.Authority.WriteFile(a, token)
		return err
	}
	return nil
}

// recoverStart decides a start that was cut off: its supervisor's record proves
// that it took place, no trace of a launch proves that nothing runs.
func (s *Service) recoverStart(ctx context.Context, a hub.Attachment) error {
	in, ok, err := s.incarnation(ctx, a)
	if err != nil {
		return errors.Join(err, s.leaveUnknown(ctx, a, err))
	}
	if !ok {
		r := s.failed(a, errors.New("the hub was restarted before the worker was launched"))
		_, err := s.endOwn(ctx, a.Home, r, hub.EvStartFailed)
		return err
	}
	if err := s.launched(ctx, &a, in); err != nil && !errors.Is(err, errFenced) {
		return err
	}
	if _, err := s.endOwn(ctx, a.Home, a.Receipt, hub.EvStarted); err != nil {
		return err
	}
	s.watch(a)
	return nil
}

func (s *Service) leaveUnknown(ctx context.Context, a hub.Attachment, cause error) error {
	_, err := s.endOwn(ctx, a.Home, s.unknown(a, cause), hub.EvStartLost)
	return err
}

// demote gives the home's Dispatches on peers that were under way the state
// that is known of them: unknown, until their owner is asked.
func (s *Service) demote(ctx context.Context) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		p := store.Page{Limit: maxReconcile}
		for {
			ds, next, err := tx.DispatchList(store.DispatchFilter{Live: true}, p)
			if err != nil {
				return err
			}
			for _, d := range ds {
				if err := demoteOne(tx, d); err != nil {
					return err
				}
			}
			if p.Before = next; next == 0 {
				return nil
			}
		}
	})
}

func demoteOne(tx store.Tx, d hub.Dispatch) error {
	switch d.State {
	case hub.Starting:
		r, err := tx.StartReceipt(d.ID)
		if err != nil {
			return err
		}
		r.State, r.FailedStage, r.LastError = hub.StartOutcomeUnknown, r.Stage, "the hub was restarted during the start"
		r.NextCommands = inspectCommands(d.ID)
		_, err = dispatch.EndStart(tx, d.ID, dispatch.Start{Event: hub.EvStartLost, Reason: startReason(r), Receipt: r})
		return err
	case hub.Stopping:
		_, err := dispatch.EndStop(tx, d.ID, hub.StopEvidence{Action: hub.ActionUnknown, LastError: "the hub was restarted during the stop"})
		return err
	case hub.Ready, hub.StartUnknown, hub.StopUnknown, hub.Succeeded, hub.Failed, hub.Stopped, hub.Abandoned:
	}
	return nil
}
