package dispatch_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

var checks = hub.Checks{VerifyCmd: "make check", Verify: hub.VerifyRequired}

// required is a Task at home that has to be verified, with a Dispatch at the
// owner; ask says whether the owner was told so.
func (p *pair) required(ask bool) (hub.TaskID, hub.DispatchID) {
	p.t.Helper()
	r, _ := p.home.newRun()
	c, err := p.home.runs.CreateTask(context.Background(), p.home.request(operator(), "task.create", hub.NewRequestID()), r,
		hub.Task{Spec: "do it", VerifyCmd: checks.VerifyCmd, Verify: checks.Verify})
	if err != nil {
		p.t.Fatal(err)
	}
	id := p.begin(c.Task.ID)
	if ask {
		p.owner.update(func(tx store.Tx) error {
			a, _, err := tx.Attachment(p.homeAtOwner, id)
			if err != nil {
				return err
			}
			a.Checks = checks
			return tx.SaveAttachment(a)
		})
	}
	return c.Task.ID, id
}

func (p *pair) release(id hub.DispatchID, found hub.Findings) {
	p.t.Helper()
	p.owner.update(func(tx store.Tx) error { return dispatch.Release(tx, p.homeAtOwner, id, found) })
}

func (p *pair) holds() (hs []hub.Hold) {
	p.t.Helper()
	p.owner.view(func(rx store.Rx) (err error) { hs, err = rx.Holds(); return err })
	return hs
}

// Invariants 15, 16 and 18.
func TestAHeldReportComesHomeWithItsFindings(t *testing.T) {
	passed := hub.Findings{VerifyResult: hub.VerifyPassed, VerifiedBy: hub.VerifiedByHub}
	for name, c := range map[string]struct {
		found hub.Findings
		state hub.DispatchState
	}{
		"passed":  {passed, hub.Succeeded},
		"failed":  {hub.Findings{VerifyResult: hub.VerifyFailed, VerifiedBy: hub.VerifiedByHub}, hub.Failed},
		"missing": {hub.Findings{VerifyResult: hub.VerifyMissing, VerifiedBy: hub.VerifiedByHub}, hub.Failed},
		"nothing": {hub.Findings{}, hub.Failed},
	} {
		p := newPair(t)
		task, id := p.required(true)
		in := report(task, id, hub.OutcomeSucceeded, "done")
		in.Report.Claim = hub.VerifyPassed
		in.Report.Findings = passed // what a worker cannot say
		sent, err := p.owner.send(worker(id), in)
		if err != nil || sent.State != dispatch.SentQueued || len(p.outbox()) != 0 || len(p.holds()) != 1 {
			t.Fatalf("%s: %+v %v, %d items", name, sent, err, len(p.outbox()))
		}
		p.release(id, c.found)
		p.release(id, passed) // only the first one counts
		items := p.outbox()
		if len(items) != 1 || items[0].ID != sent.Message || len(p.holds()) != 0 {
			t.Fatalf("%s: let go are %+v", name, items)
		}
		p.ackOwner(p.importHome(items).Acks)
		tk, d := p.home.states(task, id)
		if d.State != c.state || (d.Reason == hub.ReasonVerificationFailed) != (c.state == hub.Failed) || tk.State != hub.TaskStateFor(c.state) {
			t.Errorf("%s: Dispatch %s (%s), Task %s", name, d.State, d.Reason, tk.State)
		}
		if got := p.owner.posted(sent.Message); got.Verdict != hub.VerdictAccepted || p.capability(id) != hub.CapSettled {
			t.Errorf("%s: the verdict is %s, the capability %s", name, got.Verdict, p.capability(id))
		}
		again, err := p.owner.send(worker(id), in)
		if err != nil {
			t.Fatal(err)
		}
		p.ackOwner(p.importHome(p.outbox()).Acks)
		if got := p.owner.posted(again.Message); got.Verdict != hub.VerdictDuplicate {
			t.Errorf("%s: the same again is %s", name, got.Verdict)
		}
	}
}

// An owner that verified nothing, or says so on the worker's word alone, proves
// nothing. Invariant 18.
func TestAWorkersWordIsNoVerification(t *testing.T) {
	p := newPair(t)
	task, id := p.required(false)
	in := report(task, id, hub.OutcomeSucceeded, "done")
	in.Report.Claim = hub.VerifyPassed
	in.Report.Findings = hub.Findings{VerifyResult: hub.VerifyPassed, VerifiedBy: hub.VerifiedByHub}
	if _, err := p.owner.send(worker(id), in); err != nil {
		t.Fatal(err)
	}
	p.importHome(p.outbox())
	if _, d := p.home.states(task, id); d.Reason != hub.ReasonVerificationFailed || d.Findings == nil || d.Findings.VerifiedBy != hub.VerifiedByWorker {
		t.Errorf("%s (%s), %+v", d.State, d.Reason, d.Findings)
	}
}

// Findings that no hub makes are rejected; the worker may report again.
func TestOddFindingsAreRejected(t *testing.T) {
	p := newPair(t)
	task, id := p.required(true)
	sent, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done"))
	if err != nil {
		t.Fatal(err)
	}
	p.release(id, hub.Findings{VerifyResult: "splendid", VerifiedBy: hub.VerifiedByHub})
	p.ackOwner(p.importHome(p.outbox()).Acks)
	if got := p.owner.posted(sent.Message); got.Verdict != hub.VerdictRejected || p.capability(id) != hub.CapActive {
		t.Errorf("%s (%s), the capability is %s", got.Verdict, got.Reason, p.capability(id))
	}
	if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done")); err != nil || len(p.holds()) != 1 {
		t.Errorf("%d held, %v", len(p.holds()), err)
	}
}

// A home's fence lets the held report go, and finds it stale. What may still run
// is left as an order. Invariant 17.
func TestAFenceOfTheHomeComesFirst(t *testing.T) {
	for _, runs := range []bool{false, true} {
		p := newPair(t)
		task, id := p.required(true)
		sent, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done"))
		if err != nil {
			t.Fatal(err)
		}
		p.owner.update(func(tx store.Tx) error {
			_, open, err := dispatch.Progress(tx, p.homeAtOwner, id, func(h *hub.Hold) {
				if runs {
					h.Terminal = hub.NewTerminalID()
				}
			})
			if !open {
				t.Error("nothing is held")
			}
			return err
		})
		p.home.update(func(tx store.Tx) error {
			_, _, err := dispatch.Fence(tx, id, hub.FenceItem{Request: hub.NewRequestID()})
			return err
		})
		p.toOwner()
		hs := p.holds()
		if len(p.outbox()) != 1 || runs != (len(hs) == 1) || runs && (!hs[0].Fenced() || hs[0].Terminal == "") {
			t.Errorf("runs %v: %d items, left is %+v", runs, len(p.outbox()), hs)
		}
		p.release(id, hub.Findings{VerifyResult: hub.VerifyPassed, VerifiedBy: hub.VerifiedByHub})
		p.ackOwner(p.importHome(p.outbox()).Acks)
		if got := p.owner.posted(sent.Message); got.Verdict != hub.VerdictStale || len(p.outboxAll(id)) != 1 {
			t.Errorf("runs %v: the verdict is %s, %d items", runs, got.Verdict, len(p.outboxAll(id)))
		}
		p.owner.update(func(tx store.Tx) error { return dispatch.Unhold(tx, p.homeAtOwner, id) })
		if left := p.holds(); len(left) != 0 {
			t.Errorf("left is %+v", left)
		}
	}
}

// An owner that learns from the relay that its home has given the Dispatch up
// holds nothing any longer. Invariants 10 and 17.
func TestWhatALateVerdictSaysOfAHold(t *testing.T) {
	for name, first := range map[string]dispatch.SendInput{"message": status("going well"), "question": {Type: hub.TypeQuestion, Body: "may I?"}} {
		p := newPair(t)
		task, id := p.required(true)
		if _, err := p.owner.send(worker(id), first); err != nil {
			t.Fatal(err)
		}
		items := p.outbox()
		if first.Type == hub.TypeQuestion {
			p.ackOwner(p.importHome(items).Acks)
		}
		sent, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done"))
		if err != nil || len(p.holds()) != 1 {
			t.Fatal(err)
		}
		p.abandon(id)
		if first.Type == hub.TypeQuestion {
			p.toOwner()
		} else {
			p.ackOwner(p.importHome(items).Acks)
		}
		if left := p.holds(); len(left) != 0 {
			t.Errorf("%s: left is %+v", name, left)
		}
		p.ackOwner(p.importHome(p.outbox()).Acks)
		if got := p.owner.posted(sent.Message); got.Verdict != hub.VerdictStale {
			t.Errorf("%s: the held report is %s", name, got.Verdict)
		}
	}
}

// What comes behind a held report has the quota of late ones.
func TestWhatComesBehindIsBounded(t *testing.T) {
	p := newPair(t)
	task, id := p.required(true)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		_, err = p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done"+strings.Repeat("!", n)))
	}
	if !hub.IsCode(err, hub.CodeRelayQuotaExceeded) || n != 18 || len(p.holds()[0].Reports) != 17 {
		t.Errorf("%d taken, %v", n-1, err)
	}
}

// A Task's paths are kept in their one form, and what no hub can check is
// refused.
func TestChecksOfATask(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	create := func(tk hub.Task) (run.Created, error) {
		tk.Spec = "do it"
		return w.runs.CreateTask(context.Background(), w.request(operator(), "task.create", hub.NewRequestID()), r, tk)
	}
	c, err := create(hub.Task{WriteScope: []string{"./src/", `docs\*.md`, "src"}, Scope: hub.ScopeEnforce, HandoffPath: "./notes//a.md"})
	if err != nil || strings.Join(c.Task.WriteScope, " ") != "src docs/*.md" || c.Task.HandoffPath != "notes/a.md" {
		t.Errorf("%+v %v", c.Task, err)
	}
	for name, bad := range map[string]hub.Task{
		"out": {WriteScope: []string{"../x"}}, "absolute": {WriteScope: []string{"/x"}}, "notes": {HandoffPath: ".."}, "a folder": {HandoffPath: "."},
		"no command": {Verify: hub.VerifyRequired}, "nothing": {VerifyCmd: " "}, "long": {VerifyCmd: "x", VerifyTimeoutSecs: hub.MaxVerifyTimeoutSecs + 1},
	} {
		if _, err := create(bad); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
