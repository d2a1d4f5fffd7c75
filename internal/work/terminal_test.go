package work_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

func request(t *testing.T, key hub.RequestID, op string, in any) receipt.Request {
	t.Helper()
	r, err := receipt.New(operator, key, op, in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var inDemo = work.TerminalCreate{Dir: "/demo", Agent: "other"}

func createOf(t *testing.T, s *work.Service, in work.TerminalCreate) hub.Terminal {
	t.Helper()
	r, err := s.CreateTerminal(t.Context(), request(t, "", "create", in), in)
	if err != nil || r.State != hub.TerminalReady || r.Stage != hub.StageTerminalCreated {
		t.Fatalf("creating a terminal: %+v %v", r, err)
	}
	return r.Terminal
}

// terminal reads the record of a terminal.
func (m *machine) terminal(id hub.TerminalID) (t hub.Terminal) {
	m.t.Helper()
	if err := m.store.View(context.Background(), func(rx store.Rx) (err error) { t, err = rx.Terminal(id); return err }); err != nil {
		m.t.Fatal(err)
	}
	return t
}

// within waits until a condition holds.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func (m *machine) exit(id hub.TerminalID, code int) {
	m.t.Helper()
	p, ok := m.terms.find(id)
	if !ok {
		m.t.Fatalf("%s has no process", id)
	}
	p.code = code
	close(p.exited)
}

func TestTerminalIsOnRecordToItsEnd(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made := createOf(t, s, inDemo)
	if made.Process == nil || made.Role != hub.TerminalAgent || made.Dir != "/demo" || made.Size.Rows == 0 || made.Over() {
		t.Fatalf("made %+v", made)
	}
	shown, err := s.ShowTerminal(t.Context(), operator, made.ID)
	if err != nil || shown.Process.Liveness != hub.Live || shown.Busy {
		t.Fatalf("shown %+v %v", shown, err)
	}
	m.exit(made.ID, 7)
	within(t, "the end is on record", func() bool { return m.terminal(made.ID).Over() })
	if end := m.terminal(made.ID); end.ExitCode == nil || *end.ExitCode != 7 {
		t.Errorf("ended %+v", end)
	}
	_, err = s.SendTerminal(t.Context(), request(t, "", "send", "x"), work.SendInput{Terminal: made.ID, Text: "x"})
	if !hub.IsCode(err, hub.CodeTerminalNotFound) {
		t.Errorf("sending to what has ended: %v", err)
	}
}

func TestTerminalThatWasNeverStarted(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	in := work.TerminalCreate{Dir: "/demo", Command: "missing"}
	q := request(t, "", "create", in)
	first, err := s.CreateTerminal(t.Context(), q, in)
	if err != nil || first.State != hub.TerminalFailed || !strings.Contains(first.LastError, "no such program") || !first.Terminal.Over() {
		t.Fatalf("%+v %v", first, err)
	}
	again, err := s.CreateTerminal(t.Context(), q, in)
	if err != nil || again.Terminal.ID != first.Terminal.ID || !again.Mutation.Replayed || m.terms.launches != 0 {
		t.Errorf("again: %+v %v", again, err)
	}
	if got := m.terminal(first.Terminal.ID); got.Process != nil || !got.Over() {
		t.Errorf("on record: %+v", got)
	}
}

// A creation that is cut off before or after each of its commits is decided by
// what its launch left behind, and is never made twice.
func TestTerminalCreationKilledAtEachCommit(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; !killedCreation(t, n, after); n++ {
			if n > 20 {
				t.Fatal("the creation has no end")
			}
		}
	}
}

func killedCreation(t *testing.T, n int, after bool) (completed bool) {
	t.Run(fmt.Sprintf("commit %d, after=%v", n, after), func(t *testing.T) {
		m := newMachine(t)
		f := &frozen{Store: m.store, left: n, after: after, died: make(chan struct{}), never: make(chan struct{})}
		t.Cleanup(func() { close(f.never) })
		key, done := hub.NewRequestID(), make(chan struct{})
		go func() {
			defer close(done)
			if _, err := m.hubOf(f).CreateTerminal(context.Background(), request(t, key, "create", inDemo), inDemo); err != nil {
				t.Logf("the dying hub: %v", err)
			}
		}()
		select {
		case <-f.died:
		case <-done:
			completed = true
		case <-time.After(10 * time.Second):
			t.Fatal("neither died nor done")
		}
		launched := m.terms.launches
		s := m.hubOf(m.store)
		if err := s.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := s.CreateTerminal(t.Context(), request(t, key, "create", inDemo), inDemo)
		if err != nil {
			t.Fatal(err)
		}
		switch begun := r.Mutation.Replayed; {
		case !begun && (launched != 0 || r.State != hub.TerminalReady):
			t.Errorf("a creation that left nothing behind: %+v after %d launches", r, launched)
		case begun && (r.State == hub.TerminalReady) != (launched == 1), begun && m.terms.launches != launched:
			t.Errorf("%s after %d launches, %d in the end", r.State, launched, m.terms.launches)
		}
		if r.State == hub.TerminalReady {
			m.exit(r.Terminal.ID, 0)
			within(t, "the new hub watches it", func() bool { return m.terminal(r.Terminal.ID).Over() })
		}
	})
	return completed
}

// Close ends exactly the process and says so only by proof.
func TestTerminalClose(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made := createOf(t, s, inDemo)
	in := work.CloseInput{Terminal: made.ID}
	got, err := s.CloseTerminal(t.Context(), request(t, "", "close", in), in)
	if err != nil || got.State != hub.TerminalClosed || got.Action != hub.ActionEnded || !m.terminal(made.ID).Over() {
		t.Fatalf("%+v %v", got, err)
	}
	again, err := s.CloseTerminal(t.Context(), request(t, "", "close", in), in)
	if err != nil || !again.AlreadyClosed || again.ExitCode == nil {
		t.Errorf("again: %+v %v", again, err)
	}
	lost := createOf(t, s, inDemo)
	m.terms.mu.Lock()
	delete(m.terms.live, lost.ID) // nobody can be asked
	m.terms.mu.Unlock()
	in.Terminal = lost.ID
	q := request(t, "", "close", in)
	for range 2 {
		got, err = s.CloseTerminal(t.Context(), q, in)
		if err != nil || got.State != hub.TerminalUnknown || m.terminal(lost.ID).Over() {
			t.Errorf("without proof: %+v %v", got, err)
		}
	}
}

func TestTerminalSend(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made := createOf(t, s, inDemo)
	p, _ := m.terms.find(made.ID)
	send := func(in work.SendInput) hub.TerminalInput {
		t.Helper()
		in.Terminal = made.ID
		got, err := s.SendTerminal(t.Context(), request(t, "", "send", in), in)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	send(work.SendInput{Text: "ls\n", Keys: []string{"ctrl-c", "up"}, Enter: true})
	send(work.SendInput{Text: "two\nlines", Paste: true})
	p.screen.be(func(st *hub.TerminalState) { st.BracketedPaste = true })
	began := time.Now()
	if got := send(work.SendInput{Text: "two\r\nlines", Paste: true, Enter: true}); got.State != hub.TerminalSent {
		t.Errorf("%+v", got)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("Enter came %s after the paste", took)
	}
	want := []string{"ls\n\x03\x1b[A\r", "two\rlines", "\x1b[200~two\rlines\x1b[201~", "\r"}
	if got := p.screen.inputs(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("typed %q, want %q", got, want)
	}
}

// What may have been written is unknown and is written once; W9 and W13: to a
// process that is not proven nothing is written.
func TestTerminalInputIsSentAtMostOnce(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made := createOf(t, s, inDemo)
	p, _ := m.terms.find(made.ID)
	p.screen.mu.Lock()
	p.screen.fail = func(int) error { return hub.Errorf(hub.CodeOutcomeUnknown, "no answer") }
	p.screen.mu.Unlock()
	in := work.SendInput{Terminal: made.ID, Text: "rm x", Enter: true}
	q := request(t, "", "send", in)
	for range 2 {
		if got, err := s.SendTerminal(t.Context(), q, in); err != nil || got.State != hub.TerminalUnknown {
			t.Errorf("%+v %v", got, err)
		}
	}
	if got := p.screen.inputs(); len(got) != 1 {
		t.Errorf("typed %q", got)
	}
	p.in.Nonce = "another"
	got, err := s.SendTerminal(t.Context(), request(t, "", "send", in), in)
	if err != nil || got.State != hub.TerminalFailed || len(p.screen.inputs()) != 1 {
		t.Errorf("to another incarnation: %+v %v, typed %q", got, err, p.screen.inputs())
	}
}

// A send that a restart cut off is never repeated.
func TestTerminalInputAcrossARestart(t *testing.T) {
	m := newMachine(t)
	made := createOf(t, m.hubOf(m.store), inDemo)
	p, _ := m.terms.find(made.ID)
	f := &frozen{Store: m.store, left: 2, died: make(chan struct{}), never: make(chan struct{})}
	t.Cleanup(func() { close(f.never) })
	in := work.SendInput{Terminal: made.ID, Text: "x"}
	q := request(t, "", "send", in)
	go func() {
		if _, err := m.hubOf(f).SendTerminal(context.Background(), q, in); err != nil {
			t.Logf("the dying hub: %v", err)
		}
	}()
	<-f.died // typed, and its end not on record
	got, err := m.hubOf(m.store).SendTerminal(t.Context(), q, in)
	if err != nil || got.State != hub.TerminalUnknown || !got.Mutation.Replayed || len(p.screen.inputs()) != 1 {
		t.Errorf("%+v %v, typed %q", got, err, p.screen.inputs())
	}
}

func TestTerminalWaits(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made := createOf(t, s, inDemo)
	p, _ := m.terms.find(made.ID)
	wait := func(q work.WaitQuery) <-chan work.Waited {
		out := make(chan work.Waited, 1)
		go func() {
			got, err := s.WaitTerminal(context.Background(), made.ID, q)
			if err != nil {
				t.Errorf("%+v: %v", q, err)
			}
			out <- got
		}()
		return out
	}
	text := wait(work.WaitQuery{For: work.WaitText, Text: "^do+ne$", Wait: 10 * time.Second})
	idle := wait(work.WaitQuery{For: work.WaitIdle, Wait: 10 * time.Second})
	p.screen.write("busy\n")
	p.screen.be(func(st *hub.TerminalState) { st.Agent = "state=idle:app=x" })
	p.screen.write("dooone\n")
	if got := <-text; !got.Met || got.Line != "dooone" {
		t.Errorf("text: %+v", got)
	}
	if got := <-idle; !got.Met || got.Source != "title" {
		t.Errorf("idle: %+v", got)
	}
	if got := <-wait(work.WaitQuery{For: work.WaitOutput, Wait: time.Millisecond}); got.Met || !got.TimedOut || got.Process.Liveness != hub.Live {
		t.Errorf("no output: %+v", got)
	}
	never, exit := wait(work.WaitQuery{For: work.WaitText, Text: "never", Wait: 10 * time.Second}), wait(work.WaitQuery{For: work.WaitExit, Wait: 10 * time.Second})
	m.exit(made.ID, 0)
	if got := <-never; got.Met || got.TimedOut || got.Process.Liveness != hub.Exited {
		t.Errorf("it ended first: %+v", got)
	}
	if got := <-exit; !got.Met {
		t.Errorf("exit: %+v", got)
	}
}

func TestTerminalOutputIsWaitedFor(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	made := createOf(t, s, inDemo)
	p, _ := m.terms.find(made.ID)
	type reading struct {
		data  string
		ended bool
	}
	read := func(from int64, wait time.Duration) <-chan reading {
		out := make(chan reading, 1)
		go func() {
			got, ended, err := s.ReadRange(context.Background(), made.ID, work.RangeQuery{From: from, Wait: wait})
			if err != nil {
				t.Error(err)
			}
			out <- reading{string(got.Data), ended}
		}()
		return out
	}
	first := read(0, 10*time.Second)
	p.screen.write("one")
	if got := <-first; got.data != "one" || got.ended {
		t.Errorf("%+v", got)
	}
	if got := <-read(3, time.Millisecond); got.data != "" || got.ended {
		t.Errorf("nothing new: %+v", got)
	}
	last := read(3, 10*time.Second)
	m.exit(made.ID, 0)
	if got := <-last; got.data != "" || !got.ended {
		t.Errorf("the end: %+v", got)
	}
	lost := createOf(t, s, inDemo)
	other, _ := m.terms.find(lost.ID)
	other.in.Nonce = "another"
	_, _, err := s.ReadRange(t.Context(), lost.ID, work.RangeQuery{Wait: 10 * time.Second})
	if !hub.IsCode(err, hub.CodePreconditionFailed) {
		t.Errorf("waiting for what nobody can be asked about: %v", err)
	}
}

// The terminals of workers are on record with their stages.
func TestWorkersHaveTerminals(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	_, r := m.started(t, s)
	ts, _, err := s.ListTerminals(t.Context(), operator, store.TerminalFilter{Live: true}, store.Page{Limit: 10})
	if err != nil || len(ts) != 1 || ts[0].Dispatch != r.Dispatch || !ts[0].Busy || ts[0].Agent != "sh" || ts[0].Process.Liveness != hub.Live {
		t.Fatalf("%+v %v", ts, err)
	}
	in := work.CloseInput{Terminal: ts[0].ID}
	_, err = s.CloseTerminal(t.Context(), request(t, "", "close", in), in)
	if !hub.IsCode(err, hub.CodeTerminalBusy) || !strings.Contains(err.Error(), string(r.Dispatch)) {
		t.Errorf("closing it: %v", err)
	}
	stopOf(t, s, r.Dispatch)
	within(t, "its end is on record", func() bool { return m.terminal(ts[0].ID).Over() })
}

// settle reports that the work of a Dispatch is done.
func (m *machine) settle(id hub.DispatchID, task hub.TaskID) {
	m.t.Helper()
	p := hub.Principal{Kind: hub.DispatchCap, ID: string(id), Credential: "cap-" + string(id)}
	in := dispatch.SendInput{Type: hub.TypeWorkerDone, Body: "done", Report: hub.Report{Task: task, Dispatch: id, Outcome: hub.OutcomeSucceeded}}
	r, err := receipt.New(p, "", "send", in)
	if err == nil {
		_, err = (&dispatch.Service{Store: m.store}).Send(context.Background(), r, in)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}
