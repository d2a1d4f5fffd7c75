package work

import (
	"context"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Verifications looks into the reports that are held back, also those that a
// restart left, and lets them go. Each is looked into by one goroutine, whose
// every step is committed: a restart goes on with the next one. It runs until
// ctx ends.
func (s *Service) Verifications(ctx context.Context) error {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicHold), "")
	defer cancel()
	var pause patience
	for {
		if err := s.lookAtHolds(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("looking for held reports", "error", err)
			pause.wait(ctx)
			continue
		}
		pause = patience{}
		select {
		case <-woken:
		case <-s.looked:
		case <-ctx.Done():
			return nil
		}
	}
}

// lookAtHolds has every hold looked into that is not yet.
func (s *Service) lookAtHolds(ctx context.Context) error {
	var all []hub.Hold
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		all, err = rx.Holds()
		return err
	})
	for _, h := range all {
		who := attempt{h.Home, h.Dispatch}
		if s.looks.busy(who) {
			continue // it looks again when it has ended
		}
		s.Spawn(func(ctx context.Context) { s.lookInto(ctx, who) })
	}
	return err
}

// lookInto takes one hold to its end.
func (s *Service) lookInto(ctx context.Context, who attempt) {
	release, err := s.looks.take(ctx, who)
	if err != nil {
		return
	}
	defer func() {
		release()
		select { // another may have come while this one ended
		case s.looked <- struct{}{}:
		default:
		}
	}()
	var pause patience
	for {
		done, err := s.lookOnce(ctx, who)
		if done || ctx.Err() != nil {
			return
		}
		if err == nil {
			pause = patience{}
			continue
		}
		s.Log.Warn("looking into a held report", "dispatch_id", who.id, "error", err)
		if !pause.wait(ctx) {
			return
		}
	}
}

// lookOnce makes the next step of a hold, as the store has it. An error has the
// step made again later.
func (s *Service) lookOnce(ctx context.Context, who attempt) (done bool, err error) {
	h, a, open, err := s.held(ctx, who)
	switch {
	case err != nil || !open:
		return err == nil, err
	case h.Fenced():
		return s.endVerification(ctx, h)
	case !h.Scoped:
		return false, s.lookAtChanges(ctx, a, h)
	case a.Checks.VerifyCmd != "" && h.Findings.VerifyResult == "":
		return false, s.verify(ctx, a, h)
	}
	return false, s.letGo(ctx, a, h)
}

// held reads a hold and its attachment.
func (s *Service) held(ctx context.Context, who attempt) (h hub.Hold, a hub.Attachment, open bool, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) (err error) {
		if h, open, err = rx.Hold(who.home, who.id); err != nil || !open {
			return err
		}
		var ok bool
		if a, ok, err = rx.Attachment(who.home, who.id); err != nil {
			return err
		}
		return missing(who.id, ok)
	})
	return h, a, open, err
}

// progress commits one step; it may run twice.
func (s *Service) progress(ctx context.Context, h hub.Hold, change func(now hub.Micros, h *hub.Hold)) (out hub.Hold, err error) {
	err = s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		out, _, err = dispatch.Progress(tx, h.Home, h.Dispatch, func(h *hub.Hold) { change(tx.Now(), h) })
		return err
	})
	return out, err
}

// letGo looks at the notes and lets the report go with everything that was found.
func (s *Service) letGo(ctx context.Context, a hub.Attachment, h hub.Hold) error {
	found := h.Findings
	if a.Checks.HandoffPath != "" {
		notes, err := s.Git.Handoff(a.Dir, a.Checks.HandoffPath)
		if err != nil {
			s.Log.Warn("reading a worker's notes", "dispatch_id", a.Dispatch, "error", err)
		}
		found.Handoff = &notes
	}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		return dispatch.Release(tx, h.Home, h.Dispatch, found)
	})
}

// endVerification ends the process of a hold that was fenced; done says that it
// is proven gone and the hold with it.
func (s *Service) endVerification(ctx context.Context, h hub.Hold) (done bool, err error) {
	in, ok, err := s.verifier(ctx, h)
	if err != nil {
		return false, err
	}
	if ok {
		proof, err := s.Terminals.Stop(ctx, in, verifyGrace)
		if err != nil {
			return false, err
		}
		if proof.State.Liveness != hub.Exited {
			return false, errVerifier
		}
	}
	err = s.Store.Update(ctx, store.Settle, func(tx store.Tx) error { return dispatch.Unhold(tx, h.Home, h.Dispatch) })
	if err == nil {
		s.forgetTerminal(h)
	}
	return err == nil, err
}

// verifier is the process of a hold's verification; false is proof that there is
// none and will be none.
func (s *Service) verifier(ctx context.Context, h hub.Hold) (hub.Incarnation, bool, error) {
	switch {
	case h.Process != nil:
		return *h.Process, true, nil
	case h.Terminal == "":
		return hub.Incarnation{}, false, nil
	}
	return s.Terminals.Recover(ctx, h.Terminal)
}

// stopVerification ends what a stop has left of a verification, so that nothing
// of a stopped Dispatch runs. What cannot be proved takes the proof of the stop.
func (s *Service) stopVerification(ctx context.Context, a hub.Attachment, ev hub.StopEvidence) hub.StopEvidence {
	h, _, open, err := s.held(ctx, attempt{a.Home, a.Dispatch})
	if err == nil && open && h.Fenced() {
		_, err = s.endVerification(ctx, h)
	}
	if err != nil {
		ev.Proved, ev.LastError = false, "the verification: "+err.Error()
	}
	return ev
}

// forgetTerminal removes the terminal of a verification that has ended. What it
// wrote is on record as far as it is kept.
func (s *Service) forgetTerminal(h hub.Hold) {
	if h.Terminal == "" {
		return
	}
	if err := s.Terminals.Remove(h.Terminal); err != nil {
		s.Log.Warn("removing the terminal of a verification", "dispatch_id", h.Dispatch, "error", err)
	}
}

// limit is how long one run of a verification may take.
func (s *Service) limit(a hub.Attachment) time.Duration {
	if a.Checks.VerifyTimeoutSecs > 0 {
		return time.Duration(a.Checks.VerifyTimeoutSecs) * time.Second
	}
	return s.VerifyTimeout
}
