//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// site is where workers work: on the Run's own hub, or on its peer.
type site struct {
	run   Coordinator
	owner *Hub
	repo  string
	place []string
}

// atEachSite runs a test for workers of the Run's own hub and of a peer's, in a
// git working tree that has src/a.
func atEachSite(t *testing.T, test func(t *testing.T, s site)) {
	t.Parallel()
	files := map[string]string{"src/a": "one\n", ".gitignore": "*.log\n"}
	t.Run("local", func(t *testing.T) {
		h, repo := StartHub(t, "mac"), NewRepo(t, files)
		test(t, site{h.NewRun("here"), h, repo, []string{"--worktree", "path:" + repo, "--agent", "sh"}})
	})
	t.Run("paired", func(t *testing.T) {
		p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: NewRepo(t, files)}
		Pair(t, p.Home, p.Worker, p.Root, "")
		test(t, site{p.Home.NewRun("there"), p.Worker, p.Root, p.Place()})
	})
}

// worked starts a Task and waits for its end.
func (s site) worked(task string, more ...string) (api.StartReceipt, api.Message, found) {
	s.run.hub.t.Helper()
	start := s.run.Begin(task, append(slices.Clone(s.place), more...)...)
	m := s.run.Done(start.DispatchId)
	var f found
	must(s.run.hub.t, json.Unmarshal(m.Payload, &f))
	return start, m, f
}

// found is what a worker_done says besides the report.
type found struct {
	report
	api.Findings
}

func TestAcceptance_V13_AVerificationDecidesASuccess(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		ok := s.run.Task(done+"good", "--verify-cmd", "grep one src/a && pwd", "--verify", "required")
		start, m, f := s.worked(ok)
		if f.VerifyResult != "passed" || f.VerifiedBy != "hub" || f.Outcome != "succeeded" || m.Body != "good" || s.run.State(ok) != "completed" {
			t.Errorf("what passes: %s %+v", m.Body, f)
		}
		if v := f.Verify; v == nil || *v.ExitCode != 0 || v.OutputTail != "one\n"+s.repo+"\n" || v.Command != "grep one src/a && pwd" || v.Attempts != 1 {
			t.Errorf("the verification is %+v", v)
		}
		if d := s.run.Show(start.DispatchId).Dispatch; d.Findings == nil || d.Findings.VerifyResult != "passed" {
			t.Errorf("the Dispatch says %+v", d.Findings)
		}
		bad := []string{"--verify-cmd", "echo looked; exit 4"}
		_, _, f = s.worked(s.run.Task(done+"recorded", bad...))
		if f.Outcome != "succeeded" || f.VerifyResult != "failed" || *f.Verify.ExitCode != 4 || f.Verify.OutputTail != "looked\n" {
			t.Errorf("what is recorded: %+v", f)
		}
		task := s.run.Task(done+"required", append(bad, "--verify", "required")...)
		start, _, f = s.worked(task)
		if f.Outcome != "failed" || f.Reason != "verification_failed" || s.run.State(task) != "failed" {
			t.Errorf("what is required: %+v, Task %s", f, s.run.State(task))
		}
		shown := s.run.CLI("worker", "show", start.DispatchId).Stdout + s.run.CLI("task", "show", task).Stdout
		if strings.Count(shown, "verification: failed, by the hub") != 2 || !strings.Contains(shown, "verify (required): echo looked; exit 4") {
			t.Errorf("people are shown\n%s", shown)
		}
	})
}

// A success by exit is verified too; the credential is not the verification's.
func TestAcceptance_V13_AnExitIsVerifiedWithoutTheCredential(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		cmd := `env | grep WAVEHUB_DISPATCH_FILE; WAVEHUB_HOME='` + s.owner.Home + `' '` + wavehubBin + `' status; echo "exit $?"; exit 1`
		_, m, f := s.worked(s.run.Task("true", "--verify-cmd", cmd, "--verify", "required"))
		if f.Evidence != "exit" || m.From != "hub" || f.Reason != "verification_failed" {
			t.Errorf("from %s: %+v", m.From, f)
		}
		if tail := f.Verify.OutputTail; strings.Contains(tail, "WAVEHUB_DISPATCH_FILE") || !strings.Contains(tail, "exit 4\n") {
			t.Errorf("the verification said %q", tail)
		}
	})
}

func TestAcceptance_V13_AVerificationHasALimit(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		pidFile := filepath.Join(t.TempDir(), "pid")
		task := s.run.Task(done+"good", "--verify-cmd", "(trap '' TERM; echo $$ > '"+pidFile+"'; sleep 300) & sleep 300", "--verify", "required", "--verify-timeout-secs", "1")
		_, _, f := s.worked(task)
		if f.Reason != "verification_failed" || f.VerifyResult != "failed" || f.Verify.Reason != "timeout" || f.Verify.DurationMs < 1000 {
			t.Errorf("%+v %+v", f, f.Verify)
		}
		if n := verifiers(s.owner); n != 0 {
			t.Errorf("%d verifications run", n)
		}
	})
}

// verifiers counts the supervised processes of a hub that live and are no
// workers'.
func verifiers(h *Hub) (n int) {
	h.t.Helper()
	for _, s := range h.spawns() {
		raw, err := os.ReadFile(h.Data("terminals", string(s.Incarnation.Terminal), "spec.json"))
		if err == nil && strings.Contains(string(raw), "verify.sh") && alive(s.Incarnation.PID) {
			n++
		}
	}
	return n
}

func TestAcceptance_V14_ChangesOutsideOfTheScopeAreNamed(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		must(t, os.WriteFile(filepath.Join(s.repo, "before"), []byte("was dirty\n"), 0o600))
		edit := "echo two > src/a; echo x > src/new; echo x > noise.log\n"
		clean := s.run.Task(edit+done+"clean", "--write-scope", "./src/", "--scope", "enforce", "--handoff-path", "src/new")
		_, _, f := s.worked(clean)
		if f.ScopeCheck != "clean" || f.ScopeSource != "hub" || len(f.ScopeViolations) != 0 || f.Outcome != "succeeded" {
			t.Errorf("within: %+v", f)
		}
		if h := f.Handoff; h == nil || !h.Present || h.Bytes != 2 || len(h.Sha256) != 64 {
			t.Errorf("the notes: %+v", h)
		}
		stray := "git -c user.name=w -c user.email=w@example.org commit -qam w; git mv src/a moved; echo y >> before\n"
		enforced := s.run.Task(stray+done+"strayed", "--write-scope", "src", "--scope", "enforce")
		_, _, f = s.worked(enforced)
		if f.Reason != "scope_violation" || !slices.Equal(f.ScopeViolations, []string{"before", "moved"}) || f.ScopeViolationCount != 2 || s.run.State(enforced) != "failed" {
			t.Errorf("enforced: %+v", f)
		}
		advisory := s.run.Task("echo z > elsewhere\n"+done+"strayed", "--write-scope", "src")
		start := s.run.Begin(advisory, s.place...)
		notice := s.run.Check("--types", "notice")
		var n struct {
			Kind       string   `json:"kind"`
			Dispatch   string   `json:"dispatch_id"`
			Violations []string `json:"scope_violations"`
		}
		for _, m := range notice.Messages {
			if m.Type == "notice" {
				must(t, json.Unmarshal(m.Payload, &n))
			}
		}
		if n.Kind != "scope_violation" || n.Dispatch != start.DispatchId || !slices.Equal(n.Violations, []string{"elsewhere"}) || s.run.State(advisory) != "completed" {
			t.Errorf("advisory: %+v, Task %s", n, s.run.State(advisory))
		}
	})
}

// A worktree that the hub made is compared with its base; its worker commits.
func TestAcceptance_V14_ChangesInAWorktreeOfTheHubs(t *testing.T) {
	t.Parallel()
	h, repo := StartHub(t, "mac"), NewRepo(t, map[string]string{"src/a": "one\n"})
	run := h.NewRun("made by the hub")
	get[api.RepoResult](t, h.Caller(), "repo", "add", repo, "--name", "demo")
	task := run.Task("echo two > src/a; echo x > stray; git add -A; git -c user.name=w -c user.email=w@example.org commit -qm w\n"+done+"committed",
		"--write-scope", "src", "--verify-cmd", "git log --format=%s -1", "--verify", "required")
	start := run.Begin(task, "--repo", "demo", "--worktree", "new-top-level", "--name", "vet", "--agent", "sh")
	var f found
	must(t, json.Unmarshal(run.Done(start.DispatchId).Payload, &f))
	if f.Outcome != "succeeded" || f.Verify.OutputTail != "w\n" || f.ScopeCheck != "violated" || !slices.Equal(f.ScopeViolations, []string{"stray"}) {
		t.Errorf("%+v %+v", f, f.Verify)
	}
}

// Without a git worktree nothing can be said, and what the worker says is
// labelled as its word.
func TestAcceptance_V14_WithoutAWorktreeItIsUnavailable(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("a plain folder")
	task := run.Task("echo x > outside; "+`"$WAVEHUB_BIN" send --type worker_done --subject s --body b --outcome succeeded --files-modified outside,src/a `+
		`--task-id `+`"$(sed -n 's/.*"task_id": *"\([^"]*\)".*/\1/p' "$WAVEHUB_DISPATCH_FILE")" --dispatch-id "$(sed -n 's/.*"dispatch_id": *"\([^"]*\)".*/\1/p' "$WAVEHUB_DISPATCH_FILE")"`,
		"--write-scope", "src", "--scope", "enforce")
	start := run.Begin(task)
	var f found
	must(t, json.Unmarshal(run.Done(start.DispatchId).Payload, &f))
	if f.Outcome != "succeeded" || f.ScopeCheck != "unavailable" || f.ScopeSource != "worker" || !slices.Equal(f.ScopeViolations, []string{"outside"}) || f.ScopeReason == "" {
		t.Errorf("%+v", f)
	}
}

// TestAcceptance_V23_DependentsWaitForTheVerification: what fails its
// verification unlocks nothing; the retry that passes does.
func TestAcceptance_V23_DependentsWaitForTheVerification(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		task := s.run.Task("echo tried >> src/a; "+done+"tried", "--verify-cmd", `[ "$(grep -c tried src/a)" = 2 ]`, "--verify", "required", "--write-scope", "src", "--scope", "enforce")
		dependent := s.run.Task("true", "--deps", task)
		first, _, f := s.worked(task)
		if f.Reason != "verification_failed" || s.run.State(task) != "failed" || s.run.State(dependent) != "pending" {
			t.Errorf("first: %+v, Task %s, dependent %s", f, s.run.State(task), s.run.State(dependent))
		}
		_, _, f = s.worked(task, "--retry-of", first.DispatchId)
		if f.VerifyResult != "passed" || f.ScopeCheck != "clean" || s.run.State(task) != "completed" || s.run.State(dependent) != "ready" {
			t.Errorf("the retry: %+v, Task %s, dependent %s", f, s.run.State(task), s.run.State(dependent))
		}
	})
}

// A verification outlives the hub as a worker does, and its end is found.
func TestAcceptance_W12_AVerificationOutlivesTheHub(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		g, witness := newGate(t), filepath.Join(t.TempDir(), "witness")
		task := s.run.Task(done+"good", "--verify-cmd", "echo run >> '"+witness+"'; "+g.wait(), "--verify", "required")
		start := s.run.Begin(task, s.place...)
		eventually(t, "the verification runs", 20*time.Second, func() bool { return exists(witness) })
		if o := s.run.Show(start.DispatchId); o.Dispatch.State != "ready" || orNone(o.Observation.WaitingFor) != "verification" {
			t.Errorf("%s, waiting for %s", o.Dispatch.State, orNone(o.Observation.WaitingFor))
		}
		s.owner.Kill()
		g.open(t, 1)
		s.owner.Start()
		var f found
		must(t, json.Unmarshal(s.run.Done(start.DispatchId).Payload, &f))
		if f.VerifyResult != "passed" || f.Verify.Attempts != 1 {
			t.Errorf("%+v %+v", f, f.Verify)
		}
		if raw, err := os.ReadFile(witness); err != nil || string(raw) != "run\n" {
			t.Errorf("it ran %q %v", raw, err)
		}
		if all := get[api.HistoryPage](t, s.run.Caller, "check", "--all"); len(all.Messages) != 1 {
			t.Errorf("the mail is %+v", all.Messages)
		}
	})
}

// A stop while the report is held: the report is stale, nothing runs any more.
func TestAStopEndsTheVerification(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		w, script := newWorker(t, s.owner)
		w.StartReceipt = s.run.Begin(s.run.Task(script, "--verify-cmd", "sleep 300", "--verify", "required"), s.place...)
		w = w.identified(t)
		sent := get[api.SendResult](t, w.Caller(), w.report("succeeded", "good")...)
		if sent.Verdict != nil {
			t.Errorf("the held report is %s", *sent.Verdict)
		}
		eventually(t, "the verification runs", 20*time.Second, func() bool { return verifiers(s.owner) == 1 })
		stopped := get[api.StopResult](t, s.run.Caller, "worker", "stop", w.DispatchId)
		if stopped.State != "stopped" || verifiers(s.owner) != 0 {
			t.Errorf("the stop is %s, %d verifications run", stopped.State, verifiers(s.owner))
		}
		v, err := w.Client().Verdict(t.Context(), sent.Message.MessageId, 20*time.Second)
		if err != nil || orNone(v.Verdict) != "stale" {
			t.Errorf("the verdict is %+v %v", v, err)
		}
	})
}

// --wait-verdict waits for the verification.
func TestAWorkerMayWaitForItsVerification(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		out := filepath.Join(t.TempDir(), "out")
		task := s.run.Task(done+"good --wait-verdict --json > '"+out+".tmp'; mv '"+out+".tmp' '"+out+"'", "--verify-cmd", "true")
		s.worked(task)
		eventually(t, "the worker has its verdict", 20*time.Second, func() bool { return exists(out) })
		raw, err := os.ReadFile(out)
		must(t, err)
		if got := decode[api.SendResult](t, string(raw)); orNone(got.Verdict) != "accepted" {
			t.Errorf("the worker got %s", raw)
		}
	})
}
