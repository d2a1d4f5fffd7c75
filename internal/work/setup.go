package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// SetupLaunch asks how to run the setup of a new worktree.
type SetupLaunch struct {
	Terminal hub.TerminalID
	Dir      string // the worktree
	Private  string // 0700 folder of the terminal, for the script
	Run      string // text for the platform's shell
	Env      map[string]string
}

// setupGrace is between the polite and the forced end of a setup.
const setupGrace = 5 * time.Second

// errSetupRuns is the end of a start's time before that of the setup which holds
// it: neither has failed.
var errSetupRuns = errors.New("the setup runs on, and the time of the start is over; the worker has not been launched")

// setUp runs the setup of a start's new worktree. Where it holds the start it
// waits for the setup's success, and says so: that time is not the agent's.
func (s *Service) setUp(ctx context.Context, a *hub.Attachment, p place) (waited bool, err error) {
	if !p.spec.New() || p.setup.Effective != hub.SetupRun {
		return false, nil
	}
	terminal := hub.NewTerminalID()
	err = s.stageTx(ctx, a, hub.StageSetupStarted, func(tx store.Tx, a *hub.Attachment) error {
		w, err := beginSetup(tx, a.Worktree, terminal)
		a.Receipt.NoteSetup(w.Setup.Report)
		return err
	})
	if err != nil {
		return false, err
	}
	if err := s.launchSetup(ctx, a.Worktree, a.Dir, p.hook.Run); err != nil {
		return false, err
	}
	if p.setup.Gates() {
		err = s.awaitSetup(ctx, *a)
		waited = true
	}
	now, readErr := s.attachment(context.WithoutCancel(ctx), a.Home, a.Dispatch)
	if readErr == nil {
		*a = now
	}
	return waited, errors.Join(err, readErr)
}

// beginSetup commits that a setup is about to be launched in the terminal.
func beginSetup(tx store.Tx, id hub.WorktreeID, terminal hub.TerminalID) (hub.Worktree, error) {
	w, err := tx.Worktree(id)
	if err != nil {
		return w, err
	}
	w.Setup.Report.Terminal, w.Setup.Report.State = terminal, hub.SetupUnknown
	row := hub.Terminal{ID: terminal, Role: hub.TerminalSetup, Worktree: id, Dir: w.Path, Name: "setup of " + w.Name, CreatedAt: tx.Now()}
	return w, errors.Join(tx.SaveWorktree(w), tx.PutTerminal(row))
}

// launchSetup launches the setup that has begun, commits what came of it, and
// follows it to its end. A setup that cannot be launched has failed, which is no
// error here.
func (s *Service) launchSetup(ctx context.Context, id hub.WorktreeID, dir, run string) error {
	w, err := s.worktree(ctx, id)
	if err != nil {
		return err
	}
	in, err := s.spawnSetup(ctx, w, dir, run)
	detached := context.WithoutCancel(ctx) // it may run: that is committed whatever has become of the budget
	switch {
	case hub.IsCode(err, hub.CodeOutcomeUnknown): // who follows it finds out
	case err != nil:
		return s.noteSetup(detached, id, neverLaunched(err.Error()))
	default:
		if err := s.noteSetup(detached, id, launchedAs(in)); err != nil {
			return err
		}
	}
	s.followSetup(id)
	return nil
}

func (s *Service) spawnSetup(ctx context.Context, w hub.Worktree, dir, run string) (hub.Incarnation, error) {
	terminal := w.Setup.Report.Terminal
	private, err := s.Authority.Private(terminal)
	if err != nil {
		return hub.Incarnation{}, err
	}
	spec, err := s.Agents.Setup(SetupLaunch{Terminal: terminal, Dir: dir, Private: private, Run: run, Env: map[string]string{
		"WAVEHUB_TERMINAL_ID": string(terminal),
		"WAVEHUB_BIN":         s.Bin,
		"WAVEHUB_WORKTREE_ID": string(w.ID),
		"WAVEHUB_WORKTREE":    dir,
	}})
	if err != nil {
		return hub.Incarnation{}, err
	}
	return s.Terminals.Launch(ctx, spec)
}

// Changes of what is known of a setup.

func launchedAs(in hub.Incarnation) func(*hub.WorktreeSetup) {
	return func(w *hub.WorktreeSetup) {
		w.Process, w.Report.Launched, w.Report.State = &in, true, hub.SetupRunning
	}
}

func neverLaunched(why string) func(*hub.WorktreeSetup) {
	return func(w *hub.WorktreeSetup) {
		w.Report.State, w.Report.Ended, w.Report.LastError = hub.SetupFailed, true, line(why)
	}
}

func endedWith(st hub.ProcessState) func(*hub.WorktreeSetup) {
	return func(w *hub.WorktreeSetup) {
		r := &w.Report
		r.Ended, r.ExitCode = true, st.ExitCode
		switch {
		case st.ExitCode == nil:
			r.State, r.LastError = hub.SetupUnknown, "it has ended, and its exit code is not known"
		case *st.ExitCode == 0:
			r.State = hub.SetupSucceeded
		default:
			r.State, r.LastError = hub.SetupFailed, fmt.Sprintf("exit code %d", *st.ExitCode)
		}
		if st.Signal != "" {
			r.LastError = "ended by " + st.Signal
		}
	}
}

// line bounds what is kept of an error, as a notice's subject is bounded.
func line(text string) string {
	text = hub.PlainText([]byte(text))
	return text[:min(len(text), hub.MaxSubjectBytes/2)]
}

// noteSetup commits a change of what is known of a setup, on the worktree, on
// the Dispatch's records, and to whoever waits. After its end nothing changes.
func (s *Service) noteSetup(ctx context.Context, id hub.WorktreeID, change func(*hub.WorktreeSetup)) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		w, err := tx.Worktree(id)
		if err != nil || w.Setup.Report.Over() {
			return err
		}
		change(&w.Setup)
		if err := errors.Join(tx.SaveWorktree(w), noteSetupTerminal(tx, w.Setup)); err != nil {
			return err
		}
		tx.Signal(hub.Signal{Topic: hub.TopicWorktree, Key: string(id)})
		if w.Setup.Dispatch == "" {
			return nil
		}
		return dispatch.NoteSetup(tx, w.Setup.Home, w.Setup.Dispatch, w.Setup.Report)
	})
}

// noteSetupTerminal keeps the record of a setup's terminal up to date.
func noteSetupTerminal(tx store.Tx, s hub.WorktreeSetup) error {
	switch {
	case s.Report.Terminal == "":
		return nil
	case s.Report.Over():
		_, err := endTerminal(tx, s.Report.Terminal, hub.ProcessState{ExitCode: s.Report.ExitCode})
		return err
	case s.Process != nil:
		_, err := startedTerminal(tx, s.Report.Terminal, *s.Process)
		return err
	}
	return nil
}

// followSetup commits the end of a setup when it is proven, and what follows
// from it for a start that was held by it.
func (s *Service) followSetup(id hub.WorktreeID) {
	s.Spawn(func(ctx context.Context) {
		var pause patience
		for {
			done, err := s.awaitSetupEnd(ctx, id)
			if done || ctx.Err() != nil {
				return
			}
			if err != nil {
				s.Log.Error("watching a setup", "worktree_id", id, "error", err)
			}
			if !pause.wait(ctx) {
				return
			}
		}
	})
}

func (s *Service) awaitSetupEnd(ctx context.Context, id hub.WorktreeID) (done bool, err error) {
	w, err := s.worktree(ctx, id)
	if err != nil || !w.Setup.Open() {
		return err == nil, err
	}
	if w.Setup.Process == nil {
		if err := s.recoverSetup(ctx, w); err != nil {
			return false, err
		}
		return s.awaitSetupEnd(ctx, id)
	}
	st, err := s.Terminals.Wait(ctx, *w.Setup.Process)
	if err != nil || st.Liveness != hub.Exited {
		return false, err
	}
	if err := s.noteSetup(ctx, id, endedWith(st)); err != nil {
		return false, err
	}
	return true, s.releaseStart(ctx, w.Setup)
}

// recoverSetup decides a launch that was cut off: the supervisor's record proves
// that it took place, no trace that it never will.
func (s *Service) recoverSetup(ctx context.Context, w hub.Worktree) error {
	terminal := w.Setup.Report.Terminal
	if terminal == "" {
		return s.noteSetup(ctx, w.ID, neverLaunched("the creation was cut off before the setup was launched"))
	}
	in, ok, err := s.Terminals.Recover(ctx, terminal)
	if err != nil {
		return err
	}
	if !ok {
		return s.noteSetup(ctx, w.ID, neverLaunched("it was never launched"))
	}
	return s.noteSetup(ctx, w.ID, launchedAs(in))
}

// withoutSetup notes on the worktree of a start that has failed that its setup
// will not be launched any more.
func (s *Service) withoutSetup(ctx context.Context, a *hub.Attachment) error {
	ctx = context.WithoutCancel(ctx)
	w, err := s.worktree(ctx, a.Worktree)
	if hub.IsCode(err, hub.CodeWorktreeNotFoundOnServer) {
		return nil
	}
	if err != nil || w.Setup.Dispatch != a.Dispatch || !w.Setup.Open() || w.Setup.Report.Terminal != "" {
		return err
	}
	if err := s.noteSetup(ctx, w.ID, neverLaunched("the start ended before the setup was launched")); err != nil {
		return err
	}
	*a, err = s.attachment(ctx, a.Home, a.Dispatch)
	return err
}

// releaseStart ends a start that stayed open because its setup ran on.
func (s *Service) releaseStart(ctx context.Context, w hub.WorktreeSetup) error {
	if w.Dispatch == "" || !w.Report.Gates() {
		return nil
	}
	a, err := s.attachment(ctx, w.Home, w.Dispatch)
	if err == nil {
		_, err = s.settled(ctx, a)
	}
	return err
}

// awaitSetup waits for the success of a setup that holds a start, until ctx ends
// or the Dispatch is fenced, which ends the setup.
func (s *Service) awaitSetup(ctx context.Context, a hub.Attachment) error {
	woken, cancel := s.wakers(a)
	defer cancel()
	for {
		w, fenced, err := s.setupNow(context.WithoutCancel(ctx), a)
		switch {
		case err != nil:
			return err
		case fenced:
			return errors.Join(errFenced, s.endSetup(ctx, w))
		case w.Setup.Report.State == hub.SetupSucceeded:
			return nil
		case w.Setup.Report.Over():
			return fmt.Errorf("the setup, which has to succeed first: %s", w.Setup.Report.LastError)
		}
		if !woken(ctx) {
			return errSetupRuns
		}
	}
}

// wakers waits for the end of the setup or a change of the Dispatch; false when
// ctx ended first.
func (s *Service) wakers(a hub.Attachment) (wait func(context.Context) bool, cancel func()) {
	setup, cancelSetup := s.Bus.Subscribe(string(hub.TopicWorktree), string(a.Worktree))
	fence, cancelFence := s.Bus.Subscribe(string(hub.TopicFence), string(a.Dispatch))
	state, cancelState := s.Bus.Subscribe(string(hub.TopicDispatch), string(a.Dispatch))
	wait = func(ctx context.Context) bool {
		select {
		case <-setup:
		case <-fence:
		case <-state:
		case <-ctx.Done():
			return false
		}
		return true
	}
	return wait, func() { cancelSetup(); cancelFence(); cancelState() }
}

func (s *Service) setupNow(ctx context.Context, a hub.Attachment) (w hub.Worktree, fenced bool, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if w, err = rx.Worktree(a.Worktree); err != nil {
			return err
		}
		now, ok, err := rx.Attachment(a.Home, a.Dispatch)
		fenced = now.Fence != nil || now.Capability == hub.CapFenced
		return errors.Join(err, missing(a.Dispatch, ok))
	})
	return w, fenced, err
}

// endSetup ends the process tree of a setup, if it has one, and commits its end.
func (s *Service) endSetup(ctx context.Context, w hub.Worktree) error {
	if !w.Setup.Open() || w.Setup.Process == nil {
		return nil
	}
	proof, err := s.Terminals.Stop(ctx, *w.Setup.Process, setupGrace)
	if err != nil || proof.State.Liveness != hub.Exited {
		return err // it is followed on, and listed
	}
	return s.noteSetup(context.WithoutCancel(ctx), w.ID, endedWith(proof.State))
}

// heldSetup is the worktree of a start that its setup holds, or held when its
// time was over; false if no setup does.
func (s *Service) heldSetup(ctx context.Context, a hub.Attachment) (w hub.Worktree, held bool, err error) {
	if a.Receipt.Stage != hub.StageSetupStarted || !a.Receipt.Setup.Gates() {
		return w, false, nil
	}
	w, err = s.worktree(ctx, a.Worktree)
	return w, w.Setup.Open(), err
}

func (s *Service) worktree(ctx context.Context, id hub.WorktreeID) (w hub.Worktree, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		w, err = rx.Worktree(id)
		return err
	})
	return w, err
}
