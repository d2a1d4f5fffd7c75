package work

import (
	"context"
	"errors"
	"sync"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Recover finds out, before the hub serves, what became of everything that a
// former process of this hub had under way. One worker that cannot be judged is
// looked at again later; it does not keep the hub from serving.
func (s *Service) Recover(ctx context.Context) error {
	if err := s.demote(ctx); err != nil {
		return err
	}
	if err := s.recoverWorktrees(ctx); err != nil {
		return err
	}
	open, err := s.open(ctx)
	if err != nil {
		return err
	}
	for _, a := range open {
		if err := s.recover(ctx, a); err != nil {
			s.Log.Error("recovering a worker", "dispatch_id", a.Dispatch, "error", err)
			s.pursue(a.Home, a.Dispatch)
		}
	}
	return s.recoverTerminals(ctx)
}

// recover brings one attachment up to date: its capability file, its start, its
// process.
func (s *Service) recover(ctx context.Context, a hub.Attachment) error {
	if a.Attached() {
		return nil // nothing of it was under way here
	}
	release, err := s.hands.take(ctx, attempt{a.Home, a.Dispatch})
	if err != nil {
		return err
	}
	defer release()
	if a, err = s.attachment(ctx, a.Home, a.Dispatch); err != nil || a.Tombstone || a.ExitDone && a.Receipt.State != hub.StartStarting {
		return err
	}
	if err := s.rewriteAuthority(a); err != nil {
		s.Log.Error("writing a worker's capability file", "dispatch_id", a.Dispatch, "error", err)
	}
	if a.Process == nil {
		return s.recoverStart(ctx, a)
	}
	if err := s.recoverReady(ctx, a); err != nil {
		return err
	}
	s.attend(*a.Process)
	return nil
}

// recoverReady tells the home's record of a start whose proof was committed
// before its end was. Of one that was typing it is not known what arrived.
func (s *Service) recoverReady(ctx context.Context, a hub.Attachment) error {
	if a.Receipt.State == hub.StartStarting { // typing into its terminal was cut off
		return s.leaveUnknown(ctx, a, errors.New("the hub was restarted while the prompt was typed; it is not typed again"))
	}
	if a.Home != "" || a.Receipt.State != hub.StartReady {
		return nil
	}
	rec, err := s.recorded(ctx, a.Dispatch)
	if err != nil || rec.Dispatch.State != hub.Starting && rec.Dispatch.State != hub.StartUnknown {
		return err
	}
	_, err = s.endOwn(ctx, a.Home, a.Receipt, hub.EvStarted, false)
	return err
}

// rewriteAuthority replaces the capability file of a worker that may have one:
// the hub's address may have changed.
func (s *Service) rewriteAuthority(a hub.Attachment) error {
	switch a.Receipt.Stage {
	case hub.StageAuthority, hub.StageInputDelivering, hub.StageTerminalCreating, hub.StageInputAccepted, hub.StageTerminalCreated:
		token, _ := s.Authority.Capability(a.Home, a.Dispatch)
		_, err := s.Authority.WriteFile(a, token)
		return err
	}
	return nil
}

// RewriteAuthority brings the capability files of all workers up to date: the
// hub's key has changed. One that cannot be written, or not before its start or
// stop has ended, does not keep the others.
func (s *Service) RewriteAuthority(ctx context.Context) error {
	open, err := s.open(ctx)
	if err != nil {
		return err
	}
	failed, writers := make([]error, len(open)), make(chan struct{}, rewriters)
	var all sync.WaitGroup
	for i, a := range open {
		if !a.Attached() && !a.Tombstone {
			all.Go(func() { failed[i] = s.rewriteLate(ctx, a, writers) })
		}
	}
	all.Wait()
	return errors.Join(failed...)
}

// rewriters bounds how many capability files are written at once.
const rewriters = 16

// rewriteLate is rewriteAuthority beside a start, which may be writing the file.
func (s *Service) rewriteLate(ctx context.Context, a hub.Attachment, writers chan struct{}) error {
	release, err := s.hands.take(ctx, attempt{a.Home, a.Dispatch})
	if err != nil {
		return err
	}
	defer release()
	writers <- struct{}{} // whoever has a place writes, and waits for nobody
	defer func() { <-writers }()
	if a, err = s.attachment(ctx, a.Home, a.Dispatch); err != nil || a.ExitDone {
		return err
	}
	return s.rewriteAuthority(a)
}

// recoverStart decides a start that was cut off: its supervisor's record proves
// that it took place, no trace of a launch proves that nothing runs.
func (s *Service) recoverStart(ctx context.Context, a hub.Attachment) error {
	in, ok, err := s.incarnation(ctx, a)
	if err != nil {
		return errors.Join(err, s.leaveUnknown(ctx, a, err))
	}
	if _, held, err := s.heldSetup(ctx, a); err != nil || held && openStart(a.Receipt) {
		return err // it is decided when the setup has ended
	}
	if !ok {
		if err := s.learnWorktree(ctx, &a); err != nil {
			return err
		}
		cause, cut := notLaunched(a.Receipt)
		r := s.failed(a, cause)
		r.Cut = cut
		_, err := s.endOwn(ctx, a.Home, r, hub.EvStartFailed, false)
		return err
	}
	if err := s.launched(ctx, &a, in); err != nil && !errors.Is(err, errFenced) {
		return err
	}
	if a.Agent.Paste {
		s.attend(in)
		return s.leaveUnknown(ctx, a, errors.New("the hub was restarted before the prompt was pasted; it is not pasted"))
	}
	if _, err := s.endOwn(ctx, a.Home, a.Receipt, hub.EvStarted, false); err != nil {
		return err
	}
	s.attend(in)
	return nil
}

// notLaunched is why a start that was cut off, or held by its setup, has failed; cut
// says that it was the restart.
func notLaunched(r hub.Receipt) (why error, cut bool) {
	if r.Stage == hub.StageSetupStarted && openStart(r) {
		return errors.New("the worker was not launched: its setup had not ended in the time of the start"), false
	}
	return errors.New("the hub was restarted before the worker was launched"), true
}

func (s *Service) leaveUnknown(ctx context.Context, a hub.Attachment, cause error) error {
	_, err := s.endOwn(ctx, a.Home, s.unknown(a, cause), hub.EvStartLost, false)
	return err
}

// demote gives the home's Dispatches that were under way the state that is
// known of them: unknown, until their owner has been asked.
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
		if r.Queued() {
			_, err := dispatch.RecordQueued(tx, d.ID, r) // it waits for its attached worker, as before
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
