//go:build unix

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// setupRepo registers a repository whose worktrees are set up by a script.
func setupRepo(t *testing.T, h *Hub, policy, script string) string {
	t.Helper()
	quoted, err := json.Marshal(script)
	must(t, err)
	repo := NewRepo(t, map[string]string{"a.txt": "one\n", "wavehub.yaml": "setup:\n  run: " + string(quoted) + "\n  policy: " + policy + "\n"})
	get[api.RepoResult](t, h.Caller(), "repo", "add", repo, "--name", "demo")
	return repo
}

func newTree(name string, more ...string) []string {
	return append([]string{"--repo", "demo", "--worktree", "new-top-level", "--name", name, "--agent", "sh"}, more...)
}

// setupNotices are the notices of setups in a Run's mail, delivered or history.
func setupNotices(t *testing.T, run Coordinator) (found []setupNotice) {
	t.Helper()
	for _, m := range get[api.HistoryPage](t, run.Caller, "check", "--all").Messages {
		if m.Type != "notice" {
			continue
		}
		var n setupNotice
		must(t, json.Unmarshal(m.Payload, &n))
		if n.Kind == "setup_state" {
			found = append(found, n)
		}
	}
	return found
}

type setupNotice struct {
	Kind     string `json:"kind"`
	Dispatch string `json:"dispatch_id"`
	State    string `json:"state"`
	ExitCode *int   `json:"exit_code"`
}

func TestAcceptance_W03_ASetupHookRunsByDefault(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("setup")
	repo := setupRepo(t, h, "wait-for-setup", "pwd > made; env | grep WAVEHUB_ | sort > vars")
	start := run.Work("cat made vars; "+done+"\"$(cat made)\"", newTree("one")...)
	s := start.Setup
	if s.Requested != "run" || s.Effective != "run" || s.Source != "default" || !s.HookFound || s.StartupPolicy != "wait-for-setup" ||
		s.State != "succeeded" || s.ExitCode == nil || *s.ExitCode != 0 || len(s.Hash) != 64 {
		t.Errorf("the setup is %+v", s)
	}
	if roles := rolesOf(start.Effects); roles["setup"] != 2 || roles["agent"] != 2 {
		t.Errorf("the effects are %+v", start.Effects)
	}
	if m := run.Done(start.DispatchId); !strings.HasPrefix(m.Body, h.Data("worktrees")) {
		t.Errorf("the setup ran in %q", m.Body)
	}
	text := get[api.OutputPage](t, run.Caller, "worker", "read", start.DispatchId).Terminal.Text
	if !strings.Contains(text, "WAVEHUB_TERMINAL_ID="+s.TerminalId) || strings.Contains(text, "WAVEHUB_DISPATCH_FILE") {
		t.Errorf("the setup's environment: %q", text)
	}
	skipped := run.Work("test ! -e made && "+done+"clean", newTree("two", "--setup", "skip")...)
	if skipped.Setup.State != "skipped" || rolesOf(skipped.Effects)["setup"] != 0 {
		t.Errorf("skip: %+v", skipped.Setup)
	}
	run.Done(skipped.DispatchId)
	get[api.RepoResult](t, h.Caller(), "repo", "add", repo, "--setup", "skip")
	inherited := run.Work(done+"x", newTree("three", "--setup", "inherit")...)
	if i := inherited.Setup; i.State != "skipped" || i.Source != "repository" || i.Requested != "inherit" {
		t.Errorf("inherit: %+v", i)
	}
	run.Done(inherited.DispatchId)
	if n := setupNotices(t, run); len(n) != 0 {
		t.Errorf("a setup that the start answered for is mailed: %+v", n)
	}
}

func rolesOf(rs []api.Resource) map[string]int {
	n := map[string]int{}
	for _, r := range rs {
		if r.Role != nil {
			n[*r.Role]++
		}
	}
	return n
}

func TestAcceptance_W04_ASetupBesideTheAgent(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	setup, agent := newGate(t), newGate(t)
	setupRepo(t, h, "start-immediately", setup.wait()+"exit 7")
	for _, quiet := range []bool{false, true} {
		run := h.NewRun("beside")
		reports := map[bool]string{false: "inbox", true: "history"}[quiet]
		start := run.Work(agent.wait()+done+"x", newTree("beside-"+reports, "--reports", reports)...)
		if start.State != "ready" || start.Setup.State != "running" || start.Setup.ExitCode != nil {
			t.Fatalf("%s, its setup %+v", start.State, start.Setup)
		}
		setup.open(t, 1)
		eventually(t, "the end of the setup is shown", 20*time.Second, func() bool {
			return run.Show(start.DispatchId).Receipt.Setup.State == "failed"
		})
		d := run.Show(start.DispatchId)
		if d.Dispatch.State != "ready" || d.Observation.Process != "live" || d.Receipt.State != "ready" || d.Receipt.Setup.ExitCode == nil || *d.Receipt.Setup.ExitCode != 7 {
			t.Errorf("after the failure: %+v", d)
		}
		mail := get[api.CheckResult](t, run.Caller, "check")
		if quiet != (mail.Count == 0) {
			t.Errorf("quiet %v: the mail is %+v", quiet, mail.Messages)
		}
		n := setupNotices(t, run)
		if len(n) != 1 || n[0].State != "failed" || n[0].ExitCode == nil || *n[0].ExitCode != 7 || n[0].Dispatch != start.DispatchId {
			t.Errorf("the notices are %+v", n)
		}
		agent.open(t, 1)
		eventually(t, "the worker reports", 20*time.Second, func() bool { return run.Show(start.DispatchId).Dispatch.State == "succeeded" })
	}
}

func TestAcceptance_W04_OfAPeer(t *testing.T) {
	t.Parallel()
	home, worker := StartHub(t, "home"), StartHub(t, "worker")
	setup, agent := newGate(t), newGate(t)
	Pair(t, home, worker, setupRepo(t, worker, "start-immediately", setup.wait()+"exit 9"), "")
	run := home.NewRun("setup on a peer")
	start := run.Work(agent.wait()+done+"x", append([]string{"--on", "worker"}, newTree("far")...)...)
	if start.State != "ready" || start.Setup.State != "running" {
		t.Fatalf("%s, its setup %+v", start.State, start.Setup)
	}
	setup.open(t, 1)
	mail := run.Check()
	if mail.Count != 1 || mail.Messages[0].Type != "notice" || mail.Messages[0].From != "hub" {
		t.Errorf("the mail is %+v", mail.Messages)
	}
	d := run.Show(start.DispatchId)
	if s := d.Receipt.Setup; s.State != "failed" || s.ExitCode == nil || *s.ExitCode != 9 || d.Dispatch.State != "ready" {
		t.Errorf("the home shows %+v of a %s worker", s, d.Dispatch.State)
	}
	if n := setupNotices(t, run); len(n) != 1 {
		t.Errorf("the notices are %+v", n)
	}
	get[api.CheckResult](t, run.Caller, "check", "--ack", *mail.DeliveryId)
	agent.open(t, 1)
	run.Done(start.DispatchId)
}

func TestAcceptance_W05_ASetupThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("waits")
	g := newGate(t)
	witness := filepath.Join(t.TempDir(), "ran")
	setupRepo(t, h, "wait-for-setup", "case \"$PWD\" in *fails) exit 5;; *slow) sleep 1;; *held|*stopped) "+g.wait()+";; esac")
	task := run.Task("touch '" + witness + "'")
	r := run.CLI(append([]string{"worker", "start", "--task", task, "--json"}, newTree("fails")...)...)
	failed := decode[api.StartReceipt](t, r.Stdout)
	if r.Code != 1 || failed.State != "failed" || *failed.FailedStage != "setup_started" || failed.Setup.State != "failed" || *failed.Setup.ExitCode != 5 {
		t.Errorf("a setup that fails: exit %d, %+v", r.Code, failed)
	}
	if roles := rolesOf(failed.ResidualResources); roles["setup"] == 0 || count(failed.ResidualResources, "worktree") != 1 || roles["agent"] != 0 {
		t.Errorf("left over: %+v", failed.ResidualResources)
	}
	slow := run.Begin(run.Task(done+"x"), newTree("slow", "--timeout", "1500ms")...)
	run.Done(slow.DispatchId)
	r = run.CLI(append([]string{"worker", "start", "--task", run.Task("touch '" + witness + "'"), "--timeout", "700ms", "--json"}, newTree("held")...)...)
	held := decode[api.StartReceipt](t, r.Stdout)
	if r.Code != 10 || held.State != "outcome_unknown" || held.Setup.State != "running" || *held.FailedStage != "setup_started" {
		t.Errorf("a setup that takes too long: exit %d, %+v", r.Code, held)
	}
	if d := run.Show(held.DispatchId); d.Dispatch.State != "start_unknown" || d.Receipt.Setup.State != "running" {
		t.Errorf("while it runs on: %s, setup %s", d.Dispatch.State, d.Receipt.Setup.State)
	}
	g.open(t, 1)
	if m := run.Done(held.DispatchId); reportOf(m).Outcome != "failed" || reportOf(m).Evidence != "start" {
		t.Errorf("the end is %+v", m)
	}
	if d := run.Show(held.DispatchId); d.Dispatch.State != "failed" || d.Receipt.Setup.State != "succeeded" {
		t.Errorf("when it has ended: %s, setup %s", d.Dispatch.State, d.Receipt.Setup.State)
	}
	if exists(witness) {
		t.Error("an agent ran before its setup had succeeded")
	}
}

func TestAcceptance_W05_AStopEndsTheSetupThatHoldsTheStart(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("stopped")
	g := newGate(t)
	setupRepo(t, h, "wait-for-setup", g.wait())
	task := run.Task("true")
	call := begin(t, func() (Result, error) {
		return run.CLI(append([]string{"worker", "start", "--task", task, "--json"}, newTree("stopped")...)...), nil
	})
	eventually(t, "the setup runs", 20*time.Second, func() bool { return len(h.spawns()) == 1 })
	d := get[api.DispatchPage](t, run.Caller, "worker", "list").Dispatches[0]
	stopped := get[api.StopResult](t, run.Caller, "worker", "stop", d.DispatchId)
	if stopped.State != "stopped" || rolesOf(stopped.ResidualResources)["setup"] != 0 {
		t.Errorf("the stop: %+v", stopped)
	}
	r := decode[api.StartReceipt](t, call.get(t, 20*time.Second).value.Stdout)
	if r.State != "failed" || r.DispatchState != "stopped" || r.Setup.State != "failed" {
		t.Errorf("the start: %s, %s, setup %s", r.State, r.DispatchState, r.Setup.State)
	}
	if pid := h.spawns()[0].Incarnation.PID; alive(pid) {
		t.Error("the setup outlived the stop")
	}
}

func TestAcceptance_W06_ExitCodesOfSetupsAreExact(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("codes")
	setupRepo(t, h, "wait-for-setup", "exit ${PWD##*-}")
	for _, code := range []int{0, 1, 2, 3, 42, 126, 127, 128, 255} {
		out := decode[api.WorktreeReceipt](t, run.json("worktree", "create", "--repo", "demo", "--name", "x-"+itoa(code)).Stdout)
		if s := out.Worktree.Setup; s.ExitCode == nil || *s.ExitCode != code || (s.State == "succeeded") != (code == 0) || (out.State == "ready") != (code == 0) {
			t.Errorf("exit %d: %s, setup %s, code %v", code, out.State, s.State, s.ExitCode)
		}
	}
}

func TestAcceptance_W07_NothingBeforeAReadableHook(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("malformed")
	repo := NewRepo(t, map[string]string{"wavehub.yaml": "setup: {run: [1], policy: start-immediately}\n"})
	get[api.RepoResult](t, h.Caller(), "repo", "add", repo, "--name", "demo")
	task := run.Task(done + "x")
	refused(t, run.Caller, "invalid_argument", append([]string{"worker", "start", "--task", task}, newTree("bad")...)...)
	refused(t, run.Caller, "invalid_argument", "worktree", "create", "--repo", "demo", "--name", "bad")
	if w := get[api.WorktreePage](t, h.Caller(), "worktree", "list"); len(w.Worktrees) != 0 || run.State(task) != "ready" {
		t.Errorf("the refusal had an effect: %+v", w)
	}
	if branches := git(t, repo, "branch", "--list", "wavehub/*"); branches != "" {
		t.Errorf("branches: %s", branches)
	}
	run.Done(run.Begin(task, newTree("bad", "--setup", "skip")...).DispatchId)
}

// A setup goes on while its hub is away, and its end is committed once.
func TestAcceptance_W04_ASetupOutlivesTheHub(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("outlives")
	during, after, agent := newGate(t), newGate(t), newGate(t)
	setupRepo(t, h, "start-immediately", "case \"$PWD\" in *during) "+during.wait()+";; *) "+after.wait()+";; esac; exit 3")
	one := run.Work(agent.wait()+done+"x", newTree("during")...)
	two := run.Work(agent.wait()+done+"x", newTree("after")...)
	h.Kill()
	during.open(t, 1)
	eventually(t, "the exit is on record", 20*time.Second, func() bool {
		return exists(h.Data("terminals", one.Setup.TerminalId, "exit.json"))
	})
	h.Start()
	h.Restart()
	after.open(t, 1)
	for _, d := range []string{one.DispatchId, two.DispatchId} {
		eventually(t, "the end of the setup is shown", 20*time.Second, func() bool {
			s := run.Show(d).Receipt.Setup
			return s.State == "failed" && s.ExitCode != nil && *s.ExitCode == 3
		})
	}
	if n := setupNotices(t, run); len(n) != 2 {
		t.Errorf("the notices are %+v", n)
	}
	agent.open(t, 2)
}
