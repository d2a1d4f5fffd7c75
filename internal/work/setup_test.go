package work_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// withHook gives every base of the machine a setup hook.
func (m *machine) withHook(policy string) {
	m.trees.hook = hub.SetupHook{Found: true, Run: "make", Policy: policy, Hash: "h"}
}

// setup is the only setup that was launched, when it was.
func (m *machine) setup(t *testing.T) *process {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		m.terms.mu.Lock()
		n := len(m.terms.setups)
		m.terms.mu.Unlock()
		if n == 1 {
			return m.terms.setups[0]
		}
	}
	t.Fatal("no setup was launched")
	return nil
}

func (p *process) exit(code int) { p.code = code; close(p.exited) }

// shows waits until the receipt of a Dispatch says this of its setup.
func (m *machine) shows(t *testing.T, s *work.Service, id hub.DispatchID, state string) work.Shown {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		shown, err := s.Show(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if shown.Receipt.Setup.State == state {
			return shown
		}
		if time.Now().After(deadline) {
			t.Fatalf("the setup is %+v, want %s", shown.Receipt.Setup, state)
		}
	}
}

// notices counts the notices in a Run's mail that wait, and all.
func (m *machine) notices(t *testing.T, run hub.RunID) (live, all int) {
	t.Helper()
	err := m.store.View(t.Context(), func(rx store.Rx) error {
		ms, _, err := rx.History(run.Box(), store.HistoryFilter{Limit: 100, Types: []hub.MessageType{hub.TypeNotice}})
		all = len(ms)
		for _, msg := range ms {
			if msg.Live() {
				live++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return live, all
}

// Invariant 11: the end of a setup beside the agent is committed once, also
// across a restart, and changes nothing of the Dispatch.
func TestAcceptance_W04_SetupBesideTheAgent(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		m := newMachine(t)
		m.withHook(hub.PolicyImmediate)
		s := m.hubOf(m.store)
		_, r := m.started(t, s)
		if r.Setup.State != hub.SetupRunning || r.Setup.Hash != "h" || m.terms.launches != 1 {
			t.Fatalf("%d agents, setup %+v", m.terms.launches, r.Setup)
		}
		if restarted {
			s = m.hubOf(m.store)
			if err := s.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		m.setup(t).exit(7)
		shown := m.shows(t, s, r.Dispatch, hub.SetupFailed)
		if shown.Dispatch.State != hub.Ready || shown.Receipt.Setup.ExitCode == nil || *shown.Receipt.Setup.ExitCode != 7 {
			t.Errorf("%s, setup %+v", shown.Dispatch.State, shown.Receipt.Setup)
		}
		if live, all := m.notices(t, r.Run); live != 1 || all != 1 {
			t.Errorf("%d notices wait, of %d", live, all)
		}
	}
}

func TestAcceptance_W05_SetupHoldsTheStart(t *testing.T) {
	m := newMachine(t)
	m.withHook(hub.PolicyWait)
	s := m.hubOf(m.store)
	in := startInput(m.newTask())
	got := make(chan hub.Receipt, 1)
	go func() {
		r, err := s.Start(context.Background(), startRequest(t, "", in), in)
		if err != nil {
			t.Error(err)
		}
		got <- r
	}()
	p := m.setup(t)
	if m.terms.launches != 0 {
		t.Error("the agent was launched beside the setup")
	}
	p.exit(5)
	r := <-got
	if r.State != hub.StartFailed || r.FailedStage != hub.StageSetupStarted || r.Setup.State != hub.SetupFailed || *r.Setup.ExitCode != 5 || m.terms.launches != 0 {
		t.Errorf("%s at %s, setup %+v, %d agents", r.State, r.FailedStage, r.Setup, m.terms.launches)
	}
	if _, all := m.notices(t, r.Run); all != 0 {
		t.Errorf("%d notices of what the start told", all)
	}
}

// A start whose time is over before that of the setup which holds it stays open
// until the setup has ended, and then has failed: nothing is resumed.
func TestAcceptance_W05_TimeOutOfASetup(t *testing.T) {
	m := newMachine(t)
	m.withHook(hub.PolicyWait)
	s := m.hubOf(m.store)
	in := startInput(m.newTask())
	in.Spec.TimeoutMS = 50
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil || r.State != hub.StartOutcomeUnknown || r.Setup.State != hub.SetupRunning || r.FailedStage != hub.StageSetupStarted {
		t.Fatalf("%+v %v", r, err)
	}
	if shown := m.shows(t, s, r.Dispatch, hub.SetupRunning); shown.Dispatch.State != hub.StartUnknown {
		t.Errorf("while it runs on: %s", shown.Dispatch.State)
	}
	m.setup(t).exit(0)
	m.shows(t, s, r.Dispatch, hub.SetupSucceeded)
	for deadline := time.Now().Add(10 * time.Second); m.state(in.Task) != hub.Failed; {
		if time.Now().After(deadline) {
			t.Fatalf("when it has ended: %s", m.state(in.Task))
		}
	}
	if m.terms.launches != 0 {
		t.Error("the agent was launched")
	}
}

// A hub that dies at any commit of a start with a setup leaves at most one of
// each process, all of them on record.
func TestAcceptance_Q05_StartWithSetupKilledAtEachStage(t *testing.T) {
	everyCommit(t, 8, func(t *testing.T, n int, after bool) bool {
		m := newMachine(t)
		m.withHook(hub.PolicyImmediate)
		in, key := startInput(m.newTask()), hub.NewRequestID()
		completed := m.dies(t, n, after, func(s *work.Service) {
			if _, err := s.Start(context.Background(), startRequest(t, key, in), in); err != nil {
				t.Logf("the dying hub: %v", err)
			}
		})
		m.restartAndJudge(t, in.Task, key, in)
		w, known := m.worktrees(t)["one"]
		if n := len(m.terms.setups); n > 1 || n == 1 && (!known || w.Setup.Process == nil || w.Setup.Report.State != hub.SetupRunning) {
			t.Errorf("%d setups, on record %+v", n, w.Setup)
		}
		if len(m.terms.setups) == 0 && known && !w.Setup.Report.Over() {
			t.Errorf("never launched, and on record as %+v", w.Setup.Report)
		}
		return completed
	})
}

func TestASetupThatCannotBeLaunched(t *testing.T) {
	m := newMachine(t)
	m.withHook(hub.PolicyImmediate)
	m.terms.noSetup = errors.New("no shell")
	s := m.hubOf(m.store)
	_, r := m.started(t, s)
	if r.Setup.State != hub.SetupFailed || r.Setup.LastError != "no shell" || r.Setup.ExitCode != nil {
		t.Errorf("%+v", r.Setup)
	}
	for _, e := range append(r.Effects, r.Residuals...) {
		if e.OfSetup() {
			t.Errorf("it is listed: %+v", e)
		}
	}
	if live, _ := m.notices(t, r.Run); live != 1 {
		t.Errorf("%d notices", live)
	}
}
