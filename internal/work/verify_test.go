package work_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

var required = hub.Task{VerifyCmd: "make check", Verify: hub.VerifyRequired}

// TestAcceptance_V13_VerificationDecides: what a verification comes to, by its
// policy, and that its command, code and tail are on record.
func TestAcceptance_V13_VerificationDecides(t *testing.T) {
	for name, c := range map[string]struct {
		script []string
		verify string
		state  hub.DispatchState
		result string
		reason string // of the verification
		runs   int
	}{
		"required passes":      {[]string{runPasses}, hub.VerifyRequired, hub.Succeeded, hub.VerifyPassed, "", 1},
		"required fails":       {[]string{runFails}, hub.VerifyRequired, hub.Failed, hub.VerifyFailed, "", 1},
		"recorded failure":     {[]string{runFails}, hub.VerifyRecord, hub.Succeeded, hub.VerifyFailed, "", 1},
		"lost, then passes":    {[]string{runLost, runPasses}, hub.VerifyRequired, hub.Succeeded, hub.VerifyPassed, "", 2},
		"lost for good":        {[]string{runLost}, hub.VerifyRequired, hub.Failed, hub.VerifyMissing, hub.ReasonLost, 3},
		"broken, then passes":  {[]string{runBroken, runBroken, runPasses}, hub.VerifyRequired, hub.Succeeded, hub.VerifyPassed, "", 3},
		"cannot be launched":   {[]string{runBroken}, hub.VerifyRequired, hub.Failed, hub.VerifyMissing, hub.ReasonLost, 3},
		"missing but recorded": {[]string{runLost}, hub.VerifyRecord, hub.Succeeded, hub.VerifyMissing, hub.ReasonLost, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newChecked(t, c.script...)
			s := w.hub(w.store)
			task := w.taskOf(hub.Task{VerifyCmd: "make check", Verify: c.verify})
			id := w.begin(s, task, "")
			if out := w.report(task, id, hub.OutcomeSucceeded, "did it"); out.State != dispatch.SentAccepted || out.Verdict != hub.VerdictNone {
				t.Errorf("the report is answered with %+v", out)
			}
			d := w.awaits(id, c.state)
			ms, rs := w.mail(task, hub.TypeWorkerDone)
			if len(ms) != 1 || len(w.v.runs()) != c.runs {
				t.Fatalf("%d worker_done, %d runs", len(ms), len(w.v.runs()))
			}
			r, v := rs[0], rs[0].Verification
			if r.VerifyResult != c.result || r.VerifiedBy != hub.VerifiedByHub || r.Claim != hub.VerifyPassed || ms[0].Body != "did it" {
				t.Errorf("the payload says %+v", r)
			}
			if v == nil || v.Command != "make check" || v.Attempts != c.runs || v.Reason != c.reason {
				t.Errorf("the verification is %+v", v)
			}
			if code := v.ExitCode; (code == nil) != (c.result == hub.VerifyMissing) || code != nil && (*code == 0) != (c.result == hub.VerifyPassed) ||
				code != nil && v.OutputTail != "output [redacted]" {
				t.Errorf("code %v, output %q", code, v.OutputTail)
			}
			want := ""
			if c.state == hub.Failed {
				want = hub.ReasonVerificationFailed
			}
			if d.Reason != want || r.Reason != want || (r.Outcome == hub.OutcomeFailed) != (want != "") || d.Findings == nil || d.Findings.VerifyResult != c.result {
				t.Errorf("Dispatch %q, payload %s %q, findings %+v", d.Reason, r.Outcome, r.Reason, d.Findings)
			}
			if _, open := w.hold("", id); open {
				t.Error("something is still held")
			}
		})
	}
}

// What the worker is and what it says while its report is held, and what it gets
// then.
func TestAHeldReport(t *testing.T) {
	w := newChecked(t, runHangs)
	s := w.hub(w.store)
	task := w.taskOf(required)
	id := w.begin(s, task, "")
	first := w.report(task, id, hub.OutcomeSucceeded, "did it")
	w.awaitRun()
	again, other := w.report(task, id, hub.OutcomeSucceeded, "did it"), w.report(task, id, hub.OutcomeFailed, "it broke after all")
	if again.Message != first.Message || again.Verdict != hub.VerdictNone || other.Message == first.Message || other.Verdict != hub.VerdictNone {
		t.Errorf("again %+v, another %+v", again, other)
	}
	shown, err := s.Show(t.Context(), id)
	if err != nil || shown.Observation.WaitingFor != "verification" || shown.Dispatch.State != hub.Ready {
		t.Errorf("it is shown as %s, waiting for %q, %v", shown.Dispatch.State, shown.Observation.WaitingFor, err)
	}
	if a := w.attachment("", id); a.Capability != hub.CapReported {
		t.Errorf("the capability is %s", a.Capability)
	}
	posted, err := (&dispatch.Service{Store: w.store}).Message(t.Context(), operator, first.Message)
	if err != nil || posted.Delivery != dispatch.Queued || posted.Verdict != hub.VerdictNone {
		t.Errorf("the report is %s, %s, %v", posted.Delivery, posted.Verdict, err)
	}
	if ms, _ := w.mail(task, hub.TypeWorkerDone); len(ms) != 0 {
		t.Errorf("the Run knows of it already: %+v", ms)
	}
	p := w.endRun(t, 0)
	if strings.Contains(strings.Join(p.Env, " "), "DISPATCH") || p.Dir != "/wt/shared" {
		t.Errorf("the verification got %+v", p)
	}
	w.awaits(id, hub.Succeeded)
	worker := hub.Principal{Kind: hub.DispatchCap, ID: string(id), Credential: "cap-" + string(id)}
	for sent, want := range map[hub.MessageID]hub.Verdict{first.Message: hub.VerdictAccepted, other.Message: hub.VerdictStale} {
		v, err := w.mailbox().AwaitVerdict(t.Context(), worker, sent, 20*time.Second)
		if err != nil || v.Verdict != want {
			t.Errorf("%s: %+v %v", sent, v, err)
		}
	}
	if ms, _ := w.mail(task, hub.TypeWorkerDone); len(ms) != 2 || !ms[0].Live() || !ms[1].Stale || ms[0].ID != first.Message {
		t.Errorf("the mail is %+v", ms)
	}
}

// endRun ends the latest run of a verification, and returns what was launched.
func (c checked) endRun(t *testing.T, code int) hub.LaunchSpec {
	t.Helper()
	runs := c.v.runs()
	spec := runs[len(runs)-1]
	p, _ := c.terms.find(spec.Terminal)
	p.code = code
	close(p.exited)
	return spec
}

// A worker that ends while its report is held has reported first.
func TestAnExitStaysBehindTheHeldReport(t *testing.T) {
	w := newChecked(t, runHangs)
	s := w.hub(w.store)
	task := w.taskOf(required)
	id := w.begin(s, task, "")
	w.report(task, id, hub.OutcomeSucceeded, "did it")
	w.awaitRun()
	w.endWorker(t, "", id, 1)
	if h, _ := w.hold("", id); h.Exit == nil || *h.Exit.ExitCode != 1 {
		t.Errorf("the hold is %+v", h)
	}
	if shown, err := s.Show(t.Context(), id); err != nil || shown.Dispatch.State != hub.Ready || shown.Observation.WaitingFor != "verification" {
		t.Errorf("%s, waiting for %s, %v", shown.Dispatch.State, shown.Observation.WaitingFor, err)
	}
	w.endRun(t, 0)
	if d := w.awaits(id, hub.Succeeded); d.Evidence != hub.EvidenceReport {
		t.Errorf("it rests on %s", d.Evidence)
	}
}

// endWorker ends the worker's process and waits until its end is committed.
func (c checked) endWorker(t *testing.T, home hub.PeerID, id hub.DispatchID, code int) {
	t.Helper()
	p, _ := c.terms.find(c.attachment(home, id).Terminal)
	p.code = code
	close(p.exited)
	for end := time.Now().Add(20 * time.Second); !c.attachment(home, id).ExitDone; {
		if time.Now().After(end) {
			t.Fatal("the exit was not committed")
		}
	}
}

// A success by exit is held and verified like one by report.
func TestASuccessByExitIsVerified(t *testing.T) {
	w := newChecked(t, runFails)
	s := w.hub(w.store)
	task := w.taskOf(required)
	id := w.begin(s, task, "")
	w.endWorker(t, "", id, 0)
	if d := w.awaits(id, hub.Failed); d.Reason != hub.ReasonVerificationFailed || d.Evidence != hub.EvidenceExit {
		t.Errorf("%s by %s", d.Reason, d.Evidence)
	}
	if ms, rs := w.mail(task, hub.TypeWorkerDone); len(ms) != 1 || ms[0].From != "hub" || rs[0].VerifyResult != hub.VerifyFailed {
		t.Errorf("%+v %+v", ms, rs)
	}
}

// What did not succeed is not looked into.
func TestAFailureIsNotVerified(t *testing.T) {
	w := newChecked(t, runPasses)
	s := w.hub(w.store)
	task := w.taskOf(required)
	id := w.begin(s, task, "")
	if out := w.report(task, id, hub.OutcomeFailed, "no"); out.Verdict != hub.VerdictAccepted {
		t.Errorf("%+v", out)
	}
	if d := w.awaits(id, hub.Failed); d.Reason != "" || len(w.v.runs()) != 0 {
		t.Errorf("%s, %d runs", d.Reason, len(w.v.runs()))
	}
}

// The limit ends the whole run: failed, with the reason.
func TestAVerificationHasALimit(t *testing.T) {
	for does, want := range map[string]string{runHangs: hub.VerifyFailed, runBlind: hub.VerifyMissing} {
		w := newChecked(t, does)
		s := w.hub(w.store)
		tk := required
		tk.VerifyTimeoutSecs = 1
		task := w.taskOf(tk)
		id := w.begin(s, task, "")
		w.report(task, id, hub.OutcomeSucceeded, "did it")
		w.awaits(id, hub.Failed)
		_, rs := w.mail(task, hub.TypeWorkerDone)
		v := rs[0].Verification
		reason := map[string]string{runHangs: hub.ReasonTimeout, runBlind: hub.ReasonUnverifiable}[does]
		if rs[0].VerifyResult != want || v.Reason != reason || v.ExitCode != nil || v.DurationMS < 1000 || len(w.v.runs()) != 1 {
			t.Errorf("%s: %s %+v, %d runs", does, rs[0].VerifyResult, v, len(w.v.runs()))
		}
	}
}

// A stop or an abandon makes the held report stale and ends the verification.
func TestAFenceEndsTheVerification(t *testing.T) {
	for name, fence := range map[string]func(*testing.T, *work.Service, hub.DispatchID) hub.StopResult{"stop": stopOf, "abandon": abandonOf} {
		for _, does := range []string{runHangs, runSlow} {
			t.Run(name+" "+does, func(t *testing.T) {
				w := newChecked(t, does)
				s := w.hub(w.store)
				task := w.taskOf(required)
				id := w.begin(s, task, "")
				sent := w.report(task, id, hub.OutcomeSucceeded, "did it")
				w.awaitRun()
				got := fence(t, s, id)
				if !got.State.Fenced() {
					t.Errorf("it is %s", got.State)
				}
				w.look(func(rx store.Rx) error {
					v, reason, err := rx.VerdictOf(sent.Message)
					if v != hub.VerdictStale || reason == "" {
						t.Errorf("the held report is %s (%s)", v, reason)
					}
					return err
				})
				p, _ := w.terms.find(w.v.runs()[0].Terminal)
				select {
				case <-p.exited:
				case <-time.After(20 * time.Second):
					t.Fatal("the verification goes on")
				}
				for end := time.Now().Add(20 * time.Second); ; {
					if _, open := w.hold("", id); !open {
						break
					}
					if time.Now().After(end) {
						t.Fatal("what is left of the hold stays")
					}
				}
				if tk, _ := w.task(task); tk.State != hub.TaskBlocked {
					t.Errorf("the Task is %s", tk.State)
				}
			})
		}
	}
}

// TestAcceptance_V14_ChangesOutsideOfTheScope by policy.
func TestAcceptance_V14_ChangesOutsideOfTheScope(t *testing.T) {
	for name, c := range map[string]struct {
		scope   string
		changed []string
		prepare func(*trees)
		state   hub.DispatchState
		check   string
		named   []string
		notices int
	}{
		"clean":               {hub.ScopeEnforce, []string{"src/a", "docs/x.md"}, nil, hub.Succeeded, hub.ScopeClean, nil, 0},
		"enforced":            {hub.ScopeEnforce, []string{"src/a", "Makefile"}, nil, hub.Failed, hub.ScopeViolated, []string{"Makefile"}, 0},
		"advisory":            {hub.ScopeAdvisory, []string{"src/a", "Makefile"}, nil, hub.Succeeded, hub.ScopeViolated, []string{"Makefile"}, 1},
		"repository replaced": {hub.ScopeEnforce, nil, func(g *trees) { g.replaced = true }, hub.Failed, hub.ScopeViolated, []string{".git"}, 0},
		"git fails":           {hub.ScopeEnforce, nil, func(g *trees) { g.broken = errors.New("broken") }, hub.Succeeded, hub.ScopeUnavailable, nil, 0},
		"no git":              {hub.ScopeEnforce, nil, func(g *trees) { g.plain = true }, hub.Succeeded, hub.ScopeUnavailable, []string{"../up", "Makefile"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newChecked(t)
			w.trees.changed = c.changed
			if c.prepare != nil {
				c.prepare(w.trees)
			}
			s := w.hub(w.store)
			task := w.taskOf(hub.Task{WriteScope: []string{"src/", `docs\*.md`}, Scope: c.scope, HandoffPath: "./notes.md"})
			id := w.begin(s, task, "")
			r := hub.Report{Task: task, Dispatch: id, Outcome: hub.OutcomeSucceeded}
			if w.trees.plain {
				r.Files = []string{"../up", "/wt/shared/src/b", "Makefile", "docs/a.md"}
			}
			if _, err := w.tryReport(r, "did it"); err != nil {
				t.Fatal(err)
			}
			d := w.awaits(id, c.state)
			_, rs := w.mail(task, hub.TypeWorkerDone)
			got := rs[0]
			if got.ScopeCheck != c.check || !slices.Equal(got.Violations, c.named) || got.ViolationCount != len(c.named) || got.ScopeShared {
				t.Errorf("%+v", got.Findings)
			}
			if (d.Reason == hub.ReasonScopeViolation) != (c.state == hub.Failed) || (got.ScopeSource == hub.VerifiedByWorker) != w.trees.plain {
				t.Errorf("%q, by the %s's word", d.Reason, got.ScopeSource)
			}
			if h := got.Handoff; h == nil || !h.Present || h.Bytes != int64(len("/wt/sharednotes.md")) {
				t.Errorf("the notes are %+v", h)
			}
			ns, _ := w.mail(task, hub.TypeNotice)
			if len(ns) != c.notices || len(ns) > 0 && !strings.Contains(string(ns[0].Payload), `"scope_violation"`) {
				t.Errorf("the notices are %+v", ns)
			}
		})
	}
}

// Tasks in one worktree may change what any of them may; retries are compared
// with what the first attempt found.
func TestAScopeIsSharedAndItsBaselineKept(t *testing.T) {
	w := newChecked(t)
	s := w.hub(w.store)
	scoped := func(path string) hub.Task { return hub.Task{WriteScope: []string{path}, Scope: hub.ScopeEnforce} }
	before, own, later := w.taskOf(scoped("before")), w.taskOf(scoped("own")), w.taskOf(scoped("later"))
	w.begin(s, before, "")
	first := w.begin(s, own, "")
	snapshots := w.trees.snapshots
	w.begin(s, later, "")
	w.trees.changed = []string{"before/a", "own/a", "later/a", "none/a"}
	w.report(own, first, hub.OutcomeSucceeded, "did it")
	w.awaits(first, hub.Failed)
	second := w.begin(s, own, first)
	if w.trees.snapshots != snapshots+1 { // of later
		t.Errorf("%d snapshots, then %d", snapshots, w.trees.snapshots)
	}
	w.trees.changed = w.trees.changed[:3]
	w.report(own, second, hub.OutcomeSucceeded, "did it better")
	w.awaits(second, hub.Succeeded)
	_, rs := w.mail(own, hub.TypeWorkerDone)
	if !slices.Equal(rs[0].Violations, []string{"none/a"}) || !rs[0].ScopeShared || rs[1].ScopeCheck != hub.ScopeClean || !rs[1].ScopeShared {
		t.Errorf("%+v\n%+v", rs[0].Findings, rs[1].Findings)
	}
}

// A report that would not fit with what is found out about it is refused, and
// the largest one that is taken gets through with less of it.
func TestFindingsFitTheMessage(t *testing.T) {
	w := newChecked(t, runFails)
	for i := range 2000 {
		w.trees.changed = append(w.trees.changed, strings.Repeat("x", 60)+string(rune('a'+i%26)))
	}
	s := w.hub(w.store)
	task := w.taskOf(hub.Task{VerifyCmd: strings.Repeat("true; ", 5000), WriteScope: []string{"src"}})
	id := w.begin(s, task, "")
	r := hub.Report{Task: task, Dispatch: id, Outcome: hub.OutcomeSucceeded, Files: []string{strings.Repeat("f", 155<<10)}}
	body := strings.Repeat("b", hub.MaxBodyBytes)
	for {
		_, err := w.tryReport(r, body)
		if err == nil {
			break
		}
		if !hub.IsCode(err, hub.CodeTooLarge) {
			t.Fatal(err)
		}
		r.Files[0] = r.Files[0][:len(r.Files[0])-64]
	}
	w.awaits(id, hub.Succeeded)
	ms, rs := w.mail(task, hub.TypeWorkerDone)
	if ms[0].Bytes() > hub.MaxMessageBytes || rs[0].ViolationCount != 2000 || rs[0].VerifyResult != hub.VerifyFailed || len(rs[0].Violations) == 0 {
		t.Errorf("%d bytes, %d of %d named", ms[0].Bytes(), len(rs[0].Violations), rs[0].ViolationCount)
	}
}
