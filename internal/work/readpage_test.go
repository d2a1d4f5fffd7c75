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

// reader is a hub with one ready worker whose output is read.
type reader struct {
	*machine
	hub  *work.Service
	id   hub.DispatchID
	term hub.TerminalID
}

func newReader(t *testing.T, agent string) *reader {
	t.Helper()
	m := newMachine(t)
	r := &reader{machine: m, hub: m.hubOf(m.store)}
	req, err := receipt.New(operator, "", "worker.start", agent)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.hub.Start(t.Context(), req, work.StartInput{Task: m.newTask(), Spec: hub.StartSpec{Worktree: "path:/demo", Agent: agent}})
	if err != nil || got.State != hub.StartReady {
		t.Fatalf("%+v, %v", got, err)
	}
	r.id = got.Dispatch
	r.term = r.attached().Terminal
	return r
}

func (r *reader) attached() (a hub.Attachment) {
	r.t.Helper()
	err := r.store.View(r.t.Context(), func(rx store.Rx) (err error) {
		a, _, err = rx.Attachment("", r.id)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *reader) worker() hub.Principal {
	return hub.Principal{Kind: hub.DispatchCap, ID: string(r.id), Credential: "cap-" + string(r.id)}
}

func (r *reader) hear(name, path string) {
	r.t.Helper()
	if _, err := r.hub.AgentEvent(r.t.Context(), r.worker(), r.id, name, []byte(path)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) read(q work.OutputQuery) hub.OutputPage {
	r.t.Helper()
	page, err := r.hub.Read(r.t.Context(), r.id, q)
	if err != nil {
		r.t.Fatalf("%+v: %v", q, err)
	}
	return page
}

func (r *reader) refused(code hub.Code, q work.OutputQuery) {
	r.t.Helper()
	if _, err := r.hub.Read(r.t.Context(), r.id, q); !hub.IsCode(err, code) {
		r.t.Errorf("%+v: want %s, got %v", q, code, err)
	}
}

func texts(p hub.OutputPage) string {
	var out []string
	for _, m := range p.Transcript.Messages {
		out = append(out, m.ID)
	}
	return strings.Join(out, " ")
}

// Auto says why it falls back, and takes the transcript as soon as a hook has
// named it.
func TestAutoFallsBackWithItsReason(t *testing.T) {
	for agent, want := range map[string]string{"sh": "agent_without_transcript", "other": "session_not_reported"} {
		r := newReader(t, agent)
		if p := r.read(work.OutputQuery{}); p.Source != "terminal" || *p.FallbackReason != want || p.Terminal == nil {
			t.Errorf("%s: %+v", agent, p)
		}
		r.refused(hub.CodeTranscriptRequired, work.OutputQuery{Source: "transcript"})
	}
	r := newReader(t, "other")
	r.hear("session_started", "/gone")
	if p := r.read(work.OutputQuery{}); p.Source != "terminal" || *p.FallbackReason != "transcript_missing" {
		t.Errorf("%+v", p)
	}
	r.notes.write("/gone", "here now")
	if p := r.read(work.OutputQuery{}); p.Source != "transcript" || p.FallbackReason != nil || *p.Provider != "codex" || texts(p) != "here now" {
		t.Errorf("%+v", p)
	}
}

// A cursor goes on where its page ended, in the same source, and is good for
// nothing else.
func TestACursorIsPinned(t *testing.T) {
	r := newReader(t, "other")
	r.hear("session_started", "/t")
	r.notes.write("/t", "a", "b", "c")
	first := r.read(work.OutputQuery{Limit: 2})
	second := r.read(work.OutputQuery{Limit: 2, Cursor: *first.Cursor})
	if texts(first) != "a b" || !first.Transcript.Limited || texts(second) != "c" || second.Transcript.Limited {
		t.Errorf("%s, then %s", texts(first), texts(second))
	}
	r.notes.write("/t", "d")
	if p := r.read(work.OutputQuery{Cursor: *second.Cursor}); texts(p) != "d" {
		t.Errorf("behind the end: %s", texts(p))
	}
	cursor := *first.Cursor
	r.refused(hub.CodeSourceChanged, work.OutputQuery{Cursor: cursor, Source: "terminal"})
	r.refused(hub.CodeCursorInvalid, work.OutputQuery{Cursor: cursor[:len(cursor)-2] + "AA"})
	r.refused(hub.CodeCursorInvalid, work.OutputQuery{Cursor: "x"})
	r.refused(hub.CodeInvalidArgument, work.OutputQuery{WaitMS: 1})
	r.notes.replace("second")
	r.refused(hub.CodeSourceChanged, work.OutputQuery{Cursor: cursor})
	r.notes.drop("/t")
	r.refused(hub.CodeSourceChanged, work.OutputQuery{Cursor: cursor})

	other := &reader{machine: r.machine, hub: r.hub}
	req, err := receipt.New(operator, "", "worker.start", "again")
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.hub.Start(t.Context(), req, work.StartInput{Task: r.newTask(), Spec: hub.StartSpec{Worktree: "path:/demo", Agent: "other"}})
	if err != nil {
		t.Fatal(err)
	}
	other.id = got.Dispatch
	other.refused(hub.CodeCursorDispatchMismatch, work.OutputQuery{Cursor: cursor})

	err = r.store.Update(t.Context(), store.New, func(tx store.Tx) error {
		a, _, err := tx.Attachment("", r.id)
		if err != nil {
			return err
		}
		a.Process.Nonce = "another"
		return tx.SaveAttachment(a)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.refused(hub.CodeWorkerIdentityChanged, work.OutputQuery{Cursor: cursor})
}

// Terminal output begins with its end and goes on in whole lines; no token is
// shown, also none that comes in two parts.
func TestTerminalPages(t *testing.T) {
	r := newReader(t, "sh")
	token := "whd_" + strings.Repeat("A1", 20)
	r.terms.screens.write(r.term, "one\ntwo \x1b[31mred\x1b[0m\nthree\n")
	first := r.read(work.OutputQuery{Limit: 2})
	if first.Terminal.Text != "two red\nthree\n" || !first.Terminal.Truncated {
		t.Errorf("%+v", first.Terminal)
	}
	r.terms.screens.write(r.term, "four\nhalf "+token[:20])
	second := r.read(work.OutputQuery{Cursor: *first.Cursor})
	if second.Terminal.Text != "four\n" || second.Terminal.Truncated {
		t.Errorf("%+v", second.Terminal)
	}
	r.terms.screens.write(r.term, token[20:]+"\nfive\nsix\n")
	third := r.read(work.OutputQuery{Cursor: *second.Cursor, Limit: 2})
	if third.Terminal.Text != "half [redacted]\nfive\n" {
		t.Errorf("%+v", third.Terminal)
	}
	if p := r.read(work.OutputQuery{Cursor: *third.Cursor}); p.Terminal.Text != "six\n" {
		t.Errorf("%+v", p.Terminal)
	}
}

// A read behind the end waits for what comes, and no longer than it was asked to.
func TestAReadWaits(t *testing.T) {
	r := newReader(t, "sh")
	r.terms.screens.write(r.term, "one\n")
	at := r.read(work.OutputQuery{}).Cursor
	got := make(chan hub.OutputPage, 1)
	go func() { got <- r.read(work.OutputQuery{Cursor: *at, WaitMS: 60_000}) }()
	r.terms.screens.write(r.term, "two\n")
	if p := <-got; p.Terminal.Text != "two\n" {
		t.Errorf("%+v", p.Terminal)
	}
	if p := r.read(work.OutputQuery{Cursor: *at, WaitMS: 1}); p.Terminal.Text != "two\n" {
		t.Errorf("what is there waits: %+v", p.Terminal)
	}
	p, _ := r.terms.find(r.term)
	close(p.exited)
	end := r.read(work.OutputQuery{Cursor: *at, WaitMS: 60_000})
	if end = r.read(work.OutputQuery{Cursor: *end.Cursor, WaitMS: 60_000}); end.Terminal.Text != "" {
		t.Errorf("an ended worker said %q", end.Terminal.Text)
	}
}

// The terminal record settles the Dispatch while its process lives; one that
// lingers is ended. A hub that was killed reads the stream again.
func TestAStructuredStreamSettles(t *testing.T) {
	r := newReader(t, "other")
	streaming(t, r)
	again := r.hubOf(r.store)
	if err := again.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.terms.screens.write(r.term, "session s9\nresult all ")
	r.terms.screens.write(r.term, "green\n")
	p, _ := r.terms.find(r.term)
	select {
	case <-p.exited: // by the hub, after the grace
	case <-time.After(20 * time.Second):
		t.Fatal("the process lingers")
	}
	a := r.attached()
	task, d := r.task(a.Task)
	if d.State != hub.Succeeded || d.Evidence != hub.EvidenceResult || task.Result != "all green" || a.Agent.Session.ID != "s9" {
		t.Errorf("%+v of %+v, %+v", d, task, a.Agent)
	}
}

// streaming makes the worker one whose output is structured and ends its attempt.
func streaming(t *testing.T, r *reader) {
	t.Helper()
	err := r.store.Update(t.Context(), store.New, func(tx store.Tx) error {
		a, _, err := tx.Attachment("", r.id)
		if err != nil {
			return err
		}
		a.Completion, a.Agent.Stream, a.Agent.Session.Provider = "result", "lines", "codex"
		return tx.SaveAttachment(a)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What an ended worker said is read when its files are gone.
func TestTheEndOfOutputIsKept(t *testing.T) {
	r := newReader(t, "other")
	r.hear("session_started", "/t")
	r.notes.write("/t", "a", "b")
	p, _ := r.terms.find(r.term)
	close(p.exited)
	deadline, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for kept := false; !kept; {
		if deadline.Err() != nil {
			t.Fatal("the exit was not committed")
		}
		kept = r.attached().ExitDone
	}
	r.notes.drop("/t")
	if got := r.read(work.OutputQuery{}); !got.Archived || texts(got) != "a b" || got.Cursor != nil || got.Source != "transcript" {
		t.Errorf("%+v", got)
	}
}

// An agent test runs the version command and opens the pool.
func TestAnAgentTestOpensThePool(t *testing.T) {
	m := newMachine(t)
	h := m.hubOf(m.store)
	closed := func() int {
		t.Helper()
		as, err := h.ListAgents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, a := range as {
			if a.Pool.Until > 0 {
				n++
			}
		}
		return n
	}
	shut := func(agent string) {
		t.Helper()
		err := m.store.Update(t.Context(), store.New, func(tx store.Tx) error {
			return tx.SaveAgentPool(hub.AgentPool{Agent: agent, Class: hub.ErrorRateLimited, Until: tx.Now() + 1e9, Times: 1})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	shut("other")
	shut("sh")
	test := func(agent string) (work.AgentTested, error) {
		req, err := receipt.New(operator, "", "agent.test", agent)
		if err != nil {
			t.Fatal(err)
		}
		return h.TestAgent(t.Context(), req, agent)
	}
	if n := closed(); n != 2 {
		t.Fatalf("%d pools are closed", n)
	}
	if got, err := test("other"); err != nil || got.Agent.Version != "1.0" || closed() != 1 {
		t.Errorf("%+v, %v, %d closed", got, err, closed())
	}
	if _, err := test("sh"); !hub.IsCode(err, hub.CodeAgentUnconfigured) || closed() != 1 {
		t.Errorf("a failed test opened the pool: %v", err)
	}
	if _, err := test("nobody"); !hub.IsCode(err, hub.CodeAgentNotFound) {
		t.Error(err)
	}
	req, err := receipt.New(operator, "", "worker.start", "closed")
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Start(t.Context(), req, work.StartInput{Task: m.newTask(), Spec: hub.StartSpec{Worktree: "path:/demo", Agent: "sh"}})
	if !hub.IsCode(err, hub.CodeRateLimited) {
		t.Errorf("a start into a closed pool: %v", err)
	}
}
