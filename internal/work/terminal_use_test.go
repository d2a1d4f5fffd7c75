package work_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// at asks for a start in an existing terminal.
func at(task hub.TaskID, terminal hub.TerminalID) work.StartInput {
	return work.StartInput{Task: task, Spec: hub.StartSpec{Worktree: "path:/demo", Terminal: terminal}}
}

// bracketed is a terminal whose agent takes pastes in brackets.
func (m *machine) bracketed(t *testing.T, s *work.Service) (hub.Terminal, *screen) {
	t.Helper()
	made := createOf(t, s, inDemo)
	p, _ := m.terms.find(made.ID)
	p.screen.be(func(st *hub.TerminalState) { st.BracketedPaste = true })
	return made, p.screen
}

func startIn(t *testing.T, s *work.Service, in work.StartInput) hub.Receipt {
	t.Helper()
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// W2: an existing terminal gets the prompt once, behind its authority; it is
// free again at the settlement, and its end changes nothing of what settled.
func TestAcceptance_W02_AnExistingTerminalIsUsed(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made, screen := m.bracketed(t, s)
	task := m.newTask()
	r := startIn(t, s, at(task, made.ID))
	if r.State != hub.StartReady || r.Stage != hub.StageInputAccepted || len(r.Residuals) != 0 || m.terms.launches != 1 {
		t.Fatalf("%+v", r)
	}
	if e := r.Effects[0]; e.Kind != "terminal" || e.Action != "reused" || e.ID != string(made.ID) {
		t.Errorf("effects %+v", r.Effects)
	}
	want := "\x1b[200~work on " + string(r.Dispatch) + "\rtrue\x1b[201~"
	if got := screen.inputs(); len(got) != 2 || got[0] != want || got[1] != "\r" {
		t.Errorf("typed %q, want %q and Enter", got, want)
	}
	second := m.newTask()
	in := at(second, made.ID)
	_, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if !hub.IsCode(err, hub.CodeTerminalBusy) || !strings.Contains(err.Error(), string(r.Dispatch)) {
		t.Errorf("busy: %v", err)
	}
	m.settle(r.Dispatch, task)
	next := startIn(t, s, in)
	if next.State != hub.StartReady || len(screen.inputs()) != 4 {
		t.Fatalf("the next one: %+v", next)
	}
	m.settle(next.Dispatch, second)
	m.exit(made.ID, 1)
	within(t, "the end is on record", func() bool { return m.terminal(made.ID).Over() })
	for _, id := range []hub.TaskID{task, second} {
		if tk, d := m.task(id); d.State != hub.Succeeded || tk.State != hub.TaskCompleted {
			t.Errorf("after the exit: %s is %s, its Task %s", d.ID, d.State, tk.State)
		}
	}
}

// An exit before the report fails the Dispatch that the terminal works for.
func TestExitOfAnExistingTerminal(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made, _ := m.bracketed(t, s)
	task := m.newTask()
	if r := startIn(t, s, at(task, made.ID)); r.State != hub.StartReady {
		t.Fatalf("%+v", r)
	}
	m.exit(made.ID, 3)
	within(t, "the Dispatch has failed", func() bool { return m.state(task) == hub.Failed })
	if _, d := m.task(task); d.Evidence != hub.EvidenceExit || d.ExitCode == nil || *d.ExitCode != 3 {
		t.Errorf("%+v", d)
	}
}

// W2: every terminal that cannot be used is refused before any effect.
func TestAcceptance_W02_RefusalsHaveNoEffect(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	shell := createOf(t, s, work.TerminalCreate{Dir: "/demo", Command: "top"})
	elsewhere := createOf(t, s, work.TerminalCreate{Dir: "/other", Agent: "other"})
	ended := createOf(t, s, inDemo)
	m.exit(ended.ID, 0)
	working, screen := m.bracketed(t, s)
	screen.be(func(st *hub.TerminalState) { st.Title = "⠂ demo" })
	unproven := createOf(t, s, inDemo)
	m.terms.mu.Lock()
	delete(m.terms.live, unproven.ID)
	m.terms.mu.Unlock()
	closing := createOf(t, s, inDemo)
	c := closing
	c.ClosedAt = 1
	if err := m.store.Update(t.Context(), store.New, func(tx store.Tx) error { return tx.SaveTerminal(c) }); err != nil {
		t.Fatal(err)
	}
	task := m.newTask()
	for name, c := range map[string]struct {
		id   hub.TerminalID
		code hub.Code
	}{
		"none":      {hub.NewTerminalID(), hub.CodeTerminalNotFound},
		"a shell":   {shell.ID, hub.CodeInvalidArgument},
		"elsewhere": {elsewhere.ID, hub.CodeTerminalWorktreeMismatch},
		"ended":     {ended.ID, hub.CodeTerminalNotFound},
		"working":   {working.ID, hub.CodeTerminalBusy},
		"unproven":  {unproven.ID, hub.CodePreconditionFailed},
		"closing":   {closing.ID, hub.CodeTerminalNotFound},
	} {
		in := at(task, c.id)
		if _, err := s.Start(t.Context(), startRequest(t, "", in), in); !hub.IsCode(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if tk, _ := m.task(task); tk.Latest != "" || tk.State != hub.TaskReady {
		t.Errorf("a refusal has made %+v", tk)
	}
	if got := screen.inputs(); len(got) != 0 {
		t.Errorf("a refusal has typed %q", got)
	}
}

// A prompt that one paste cannot carry goes by file.
func TestPromptByFile(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made := createOf(t, s, inDemo) // no brackets: each line would be submitted
	p, _ := m.terms.find(made.ID)
	if r := startIn(t, s, at(m.newTask(), made.ID)); r.State != hub.StartReady {
		t.Fatalf("%+v", r)
	}
	if got := p.screen.inputs(); len(got) != 2 || got[0] != "read /private/prompt.md" || got[1] != "\r" {
		t.Errorf("typed %q", got)
	}
}

// What a failure of typing proves: nothing written is failed, and the terminal
// is free; else it is unknown, and is never typed again.
func TestTypingThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		at    int // the input that fails: the paste, or Enter
		err   error
		state hub.DispatchState
		typed int
	}{
		"refused":      {1, hub.Errorf(hub.CodePreconditionFailed, "not proven"), hub.Failed, 0},
		"paste lost":   {1, hub.Errorf(hub.CodeOutcomeUnknown, "no answer"), hub.StartUnknown, 1},
		"no room":      {1, hub.Errorf(hub.CodeTerminalBusy, "3 of 9 bytes were written"), hub.StartUnknown, 0},
		"Enter fails":  {2, hub.Errorf(hub.CodePreconditionFailed, "not proven"), hub.StartUnknown, 1},
		"out of time":  {1, context.DeadlineExceeded, hub.StartUnknown, 0},
		"it has ended": {1, hub.Errorf(hub.CodeDispatchInactive, "it has ended"), hub.Failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			s := m.hubOf(m.store)
			made, screen := m.bracketed(t, s)
			screen.mu.Lock()
			screen.fail = func(n int) error {
				if n == c.at {
					return c.err
				}
				return nil
			}
			screen.mu.Unlock()
			task, key := m.newTask(), hub.NewRequestID()
			in := at(task, made.ID)
			for range 2 {
				r, err := s.Start(t.Context(), startRequest(t, key, in), in)
				if err != nil {
					t.Fatal(err)
				}
				if left := r.Residuals; c.state == hub.StartUnknown && (len(left) != 1 || left[0].ID != string(made.ID) || left[0].Liveness != hub.Unverifiable) {
					t.Errorf("W8: left over is %+v", left)
				}
			}
			if err := m.hubOf(m.store).Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := m.state(task); got != c.state {
				t.Errorf("the Dispatch is %s, want %s", got, c.state)
			}
			if got := screen.inputs(); len(got) != c.typed {
				t.Errorf("typed %q", got)
			}
			shown, err := s.ShowTerminal(t.Context(), operator, made.ID)
			if err != nil || shown.Busy != (c.state == hub.StartUnknown) {
				t.Errorf("the terminal is busy: %v %v", shown.Busy, err)
			}
		})
	}
}

// The hub dies before or after each commit of such a start: the prompt is typed
// at most once, and what is not proven is unknown.
func TestUseOfATerminalKilledAtEachCommit(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			m := newMachine(t)
			made, screen := m.bracketed(t, m.hubOf(m.store))
			task, key := m.newTask(), hub.NewRequestID()
			in := at(task, made.ID)
			f := &frozen{Store: m.store, left: n, after: after, died: make(chan struct{}), never: make(chan struct{})}
			t.Cleanup(func() { close(f.never) })
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := m.hubOf(f).Start(context.Background(), startRequest(t, key, in), in); err != nil {
					t.Logf("the dying hub: %v", err)
				}
			}()
			select {
			case <-f.died:
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("neither died nor done")
			}
			m.judgeUse(t, screen, task, startRequest(t, key, in), in)
			select {
			case <-done:
				if n < 5 {
					t.Fatalf("such a start has only %d commits", n-1)
				}
			default:
				continue
			}
			break
		}
	}
}

func (m *machine) judgeUse(t *testing.T, screen *screen, task hub.TaskID, q receipt.Request, in work.StartInput) {
	t.Helper()
	typed := len(screen.inputs())
	s := m.hubOf(m.store)
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	tk, d := m.task(task)
	switch {
	case tk.Latest == "" && typed == 0:
		return // it left nothing behind
	case d.State == hub.Failed && typed == 0, d.State == hub.StartUnknown, d.State == hub.Ready && typed == 2:
	default:
		t.Fatalf("typed %d times, Dispatch %s (%s)", typed, d.State, d.Reason)
	}
	r, err := s.Start(t.Context(), q, in)
	if err != nil || r.Dispatch != d.ID || len(screen.inputs()) != typed {
		t.Errorf("the repeated request: %+v %v, typed %d times", r, err, len(screen.inputs()))
	}
	stopOf(t, s, d.ID) // of an unknown one it ends the process, which proves it
	if st := m.state(task); !st.Final() {
		t.Errorf("stopped it is %s", st)
	}
}

// Stop ends the terminal's tree, as it does for others.
func TestStopOfAnExistingTerminal(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made, _ := m.bracketed(t, s)
	task := m.newTask()
	r := startIn(t, s, at(task, made.ID))
	if got := stopOf(t, s, r.Dispatch); got.State != hub.Stopped || got.Action != hub.ActionEnded {
		t.Fatalf("%+v", got)
	}
	within(t, "the end is on record", func() bool { return m.terminal(made.ID).Over() })
}

// A stop that arrives when the terminal works for another Dispatch does not end
// that one's worker, and is proven by the end of the process alone.
func TestALateStopLeavesTheNextOneAlone(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	home := m.addPeer(hub.RoleHome)
	made, _ := m.bracketed(t, s)
	first := hub.PeerStart{
		Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Prompt: "x", Spec: at("", made.ID).Spec,
		StoreID: "store_1", Epoch: 1, Contract: hub.ContractFederation,
	}
	as := func(op string) receipt.Request {
		q, err := receipt.New(hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)}, "", op, op)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	if r, err := s.StartFor(t.Context(), as("start"), home, first); err != nil || r.State != hub.StartReady {
		t.Fatalf("%+v %v", r, err)
	}
	// The home says that it has ended; its order to stop comes later.
	err := m.store.Update(t.Context(), store.New, func(tx store.Tx) error {
		a, _, err := tx.Attachment(home.ID, first.Dispatch)
		if err != nil {
			return err
		}
		a.Capability = hub.CapFenced
		return tx.SaveAttachment(a)
	})
	if err != nil {
		t.Fatal(err)
	}
	task := m.newTask()
	if r := startIn(t, s, at(task, made.ID)); r.State != hub.StartReady {
		t.Fatalf("%+v", r)
	}
	stop := hub.PeerStop{StoreID: "store_1", Epoch: 1}
	if ev, err := s.StopFor(t.Context(), as("stop"), home, first.Dispatch, stop); err != nil || ev.Proved {
		t.Errorf("%+v %v", ev, err)
	}
	if got := m.state(task); got != hub.Ready {
		t.Errorf("the next one is %s", got)
	}
	m.exit(made.ID, 0)
	if ev, err := s.StopFor(t.Context(), as("again"), home, first.Dispatch, stop); err != nil || !ev.Proved {
		t.Errorf("after the end: %+v %v", ev, err)
	}
}

func TestTerminalDispatch(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	shell := createOf(t, s, work.TerminalCreate{Dir: "/demo", Command: "top"})
	p, _ := m.terms.find(shell.ID)
	task := m.newTask()
	in := work.TerminalDispatch{Task: task, Terminal: shell.ID, DryRun: true}
	dry, err := s.DispatchTerminal(t.Context(), request(t, "", "dispatch", in), in)
	if err != nil || dry.Dispatch != "" || !strings.Contains(dry.Preamble, "true") || len(dry.Warnings) != 1 {
		t.Fatalf("dry: %+v %v", dry, err)
	}
	if tk, _ := m.task(task); tk.Latest != "" || m.terminal(shell.ID).Dispatch != "" {
		t.Fatalf("a dry run has made %+v", tk)
	}
	in.DryRun, in.Inject = false, true
	if _, err := s.DispatchTerminal(t.Context(), request(t, "", "dispatch", in), in); !hub.IsCode(err, hub.CodeTerminalBusy) {
		t.Errorf("typing into what does not say that it is idle: %v", err)
	}
	in.Inject = false
	q := request(t, "", "dispatch", in)
	r, err := s.DispatchTerminal(t.Context(), q, in)
	if err != nil || r.State != hub.StartReady || r.Stage != hub.StageAuthority || r.Preamble != "work on "+string(r.Dispatch)+"\ntrue" {
		t.Fatalf("%+v %v", r, err)
	}
	again, err := s.DispatchTerminal(t.Context(), q, in)
	if err != nil || !again.Mutation.Replayed || again.Preamble != r.Preamble {
		t.Errorf("again: %+v %v", again, err)
	}
	if got := p.screen.inputs(); len(got) != 0 {
		t.Errorf("typed %q", got)
	}
	if rec := m.receipt(t, q.Key); strings.Contains(string(rec.Body), "work on") {
		t.Error("the preamble is stored in the receipt")
	}
	if got := stopOf(t, s, r.Dispatch); got.State != hub.Stopped {
		t.Errorf("stopped: %+v", got)
	}
}

func TestTerminalDispatchTypes(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made, screen := m.bracketed(t, s)
	screen.be(func(st *hub.TerminalState) { st.Title = "✳ demo" })
	in := work.TerminalDispatch{Task: m.newTask(), Terminal: made.ID, Inject: true}
	r, err := s.DispatchTerminal(t.Context(), request(t, "", "dispatch", in), in)
	if err != nil || r.State != hub.StartReady || r.ReadinessSource != "title" || len(screen.inputs()) != 2 {
		t.Fatalf("%+v %v, typed %q", r, err, screen.inputs())
	}
}
