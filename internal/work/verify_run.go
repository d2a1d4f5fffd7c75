package work

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	// verifyRuns is how often a verification is begun, at most: one whose end
	// nobody knows is run again.
	verifyRuns  = 3
	verifyGrace = 5 * time.Second
	// launchLimit bounds the launch of a verification.
	launchLimit = 30 * time.Second
	// verifyOutput is what a verification's terminal keeps on disk.
	verifyOutput = 1 << 20
)

// errVerifier says that a verification's process can be neither seen nor ended.
var errVerifier = errors.New("the process can be neither verified nor signalled")

// verify makes the next step of a verification: its run is journalled before it
// is launched, its process is committed before it is waited for.
func (s *Service) verify(ctx context.Context, a hub.Attachment, h hub.Hold) error {
	switch {
	case h.Process != nil:
		return s.awaitVerification(ctx, a, h)
	case h.Terminal != "":
		return s.findVerification(ctx, a, h)
	case h.Attempts == verifyRuns:
		return s.conclude(ctx, a, h, ending{result: hub.VerifyMissing, reason: hub.ReasonLost})
	}
	h, err := s.progress(ctx, h, func(now hub.Micros, h *hub.Hold) {
		h.Terminal, h.Began = hub.NewTerminalID(), now // one run of this is committed
		h.Attempts++
	})
	if err != nil || h.Fenced() {
		return err
	}
	return s.launchVerification(ctx, a, h)
}

// launchVerification starts the run that was journalled. One that is proven not
// to have started counts, and is begun anew.
func (s *Service) launchVerification(ctx context.Context, a hub.Attachment, h hub.Hold) error {
	ctx, cancel := context.WithTimeout(ctx, launchLimit)
	defer cancel()
	spec, err := s.planVerification(a, h)
	if err == nil {
		var in hub.Incarnation
		if in, err = s.Terminals.Launch(ctx, spec); err == nil {
			_, err = s.progress(context.WithoutCancel(ctx), h, func(_ hub.Micros, h *hub.Hold) { h.Process = &in })
			return err
		}
	}
	if hub.IsCode(err, hub.CodeOutcomeUnknown) || ctx.Err() != nil {
		return err
	}
	s.Log.Warn("launching a verification", "dispatch_id", h.Dispatch, "attempt", h.Attempts, "error", err)
	return s.loseRun(ctx, h)
}

// planVerification is the run in the worker's folder, with the worker's
// environment and without its capability.
func (s *Service) planVerification(a hub.Attachment, h hub.Hold) (hub.LaunchSpec, error) {
	private, err := s.Authority.Private(h.Terminal)
	if err != nil {
		return hub.LaunchSpec{}, err
	}
	spec, err := s.Agents.Script(Script{Terminal: h.Terminal, Dir: a.Dir, Private: private, Text: a.Checks.VerifyCmd})
	spec.OutputCap = verifyOutput
	return spec, err
}

// loseRun commits that the present run is over and nobody knows how.
func (s *Service) loseRun(ctx context.Context, h hub.Hold) error {
	_, err := s.progress(ctx, h, func(_ hub.Micros, h *hub.Hold) { h.Terminal, h.Process = "", nil })
	if err == nil {
		s.forgetTerminal(h)
	}
	return err
}

// findVerification finds out whether a launch that was cut off took place.
func (s *Service) findVerification(ctx context.Context, a hub.Attachment, h hub.Hold) error {
	in, ok, err := s.Terminals.Recover(ctx, h.Terminal)
	switch {
	case err != nil && ctx.Err() == nil && s.remaining(a, h) <= 0:
		return s.conclude(ctx, a, h, ending{result: hub.VerifyMissing, reason: hub.ReasonUnverifiable})
	case err != nil:
		return err
	case !ok:
		return s.loseRun(ctx, h)
	}
	_, err = s.progress(ctx, h, func(_ hub.Micros, h *hub.Hold) { h.Process = &in })
	return err
}

// remaining is what is left of a run's time. It goes on while the hub is down.
func (s *Service) remaining(a hub.Attachment, h hub.Hold) time.Duration {
	return s.limit(a) - time.Duration(hub.MicrosOf(time.Now())-h.Began)*time.Microsecond
}

// awaitVerification waits for the end of a run, within its limit and until the
// hold is fenced. The exit record of its supervisor outlives the hub.
func (s *Service) awaitVerification(ctx context.Context, a hub.Attachment, h hub.Hold) error {
	waiting, cancel := context.WithTimeout(ctx, max(s.remaining(a, h), 0))
	defer cancel()
	watched := s.whenFenced(waiting, h, cancel)
	st, err := s.Terminals.Wait(waiting, *h.Process)
	late := errors.Is(waiting.Err(), context.DeadlineExceeded)
	cancel()
	<-watched
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && st.Liveness == hub.Exited:
		return s.exited(ctx, a, h, st)
	case late:
		return s.overdue(ctx, a, h)
	case waiting.Err() != nil && !s.stillHeld(ctx, h):
		return nil // fenced: the next step ends it
	case err != nil:
		return err
	}
	return errVerifier
}

// whenFenced calls cancel once the hold is fenced; the channel is closed when it
// has ended, with ctx at the latest.
func (s *Service) whenFenced(ctx context.Context, h hub.Hold, cancel context.CancelFunc) <-chan struct{} {
	woken, leave := s.Bus.Subscribe(string(hub.TopicHold), string(h.Dispatch))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer leave()
		for s.stillHeld(ctx, h) {
			select {
			case <-woken:
			case <-ctx.Done():
				return
			}
		}
		cancel()
	}()
	return done
}

// stillHeld reports whether the hold was neither fenced nor let go. Not being
// able to look is no answer: it is then still held.
func (s *Service) stillHeld(ctx context.Context, h hub.Hold) bool {
	now, _, open, err := s.held(ctx, attempt{h.Home, h.Dispatch})
	return err != nil || open && !now.Fenced()
}

// exited commits the end of a run, or that nobody knows how it ended.
func (s *Service) exited(ctx context.Context, a hub.Attachment, h hub.Hold, st hub.ProcessState) error {
	if st.ExitCode == nil {
		return s.loseRun(ctx, h)
	}
	e := ending{result: hub.VerifyFailed, code: st.ExitCode, at: st.ExitedAt}
	if *st.ExitCode == 0 {
		e.result = hub.VerifyPassed
	}
	return s.conclude(ctx, a, h, e)
}

// overdue ends a run that has used up its time, with its whole tree.
func (s *Service) overdue(ctx context.Context, a hub.Attachment, h hub.Hold) error {
	proof, err := s.Terminals.Stop(ctx, *h.Process, verifyGrace)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || proof.State.Liveness != hub.Exited:
		return s.conclude(ctx, a, h, ending{result: hub.VerifyMissing, reason: hub.ReasonUnverifiable})
	case proof.Action == hub.ActionNone: // it was quicker
		return s.exited(ctx, a, h, proof.State)
	}
	return s.conclude(ctx, a, h, ending{result: hub.VerifyFailed, reason: hub.ReasonTimeout, at: proof.State.ExitedAt})
}

// ending is how a verification ended. at is when, 0 for now.
type ending struct {
	result, reason string
	code           *int
	at             hub.Micros
}

// conclude commits the result of a verification.
func (s *Service) conclude(ctx context.Context, a hub.Attachment, h hub.Hold, e ending) error {
	tail := s.verifyTail(ctx, h)
	_, err := s.progress(ctx, h, func(now hub.Micros, h *hub.Hold) {
		v := &hub.Verification{
			Command: clip(a.Checks.VerifyCmd, hub.MaxCommandShown), ExitCode: e.code, Reason: e.reason, OutputTail: tail, Attempts: h.Attempts,
		}
		if h.Terminal != "" {
			end := e.at
			if end == 0 {
				end = now
			}
			v.DurationMS = max(int64(end-h.Began)/1000, 0)
		}
		h.Findings.VerifyResult, h.Findings.VerifiedBy, h.Findings.Verification = e.result, hub.VerifiedByHub, v
		h.Terminal, h.Process = "", nil
	})
	if err == nil && e.reason != hub.ReasonUnverifiable {
		s.forgetTerminal(h)
	}
	return err
}

// verifyTail is the end of a run's output. Output that cannot be read holds no
// result back.
func (s *Service) verifyTail(ctx context.Context, h hub.Hold) string {
	if h.Process == nil {
		return ""
	}
	tail, err := s.Terminals.Tail(ctx, h.Terminal, hub.MaxOutputTail)
	if err != nil {
		s.Log.Warn("reading a verification's output", "dispatch_id", h.Dispatch, "error", err)
	}
	text := withoutEscapes(redact(tail.Data))
	return strings.ToValidUTF8(text[max(len(text)-hub.MaxOutputTail, 0):], "")
}

// clip is the beginning of a text, of at most limit bytes.
func clip(text string, limit int) string {
	const more = "…"
	text = hub.PlainText([]byte(text))
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
