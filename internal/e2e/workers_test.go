//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

func count(rs []api.Resource, kind string) (n int) {
	for _, r := range rs {
		if string(r.Kind) == kind {
			n++
		}
	}
	return n
}

func TestAcceptance_W01_W03_Placements(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("placements")
	repo := NewRepo(t, map[string]string{"a.txt": "one\n"})
	get[api.RepoResult](t, h.Caller(), "repo", "add", repo, "--name", "demo")
	inRepo := run.Caller
	inRepo.dir = repo
	current := get[api.StartReceipt](t, inRepo, "worker", "start", "--task", run.Task(done+`"$(pwd)"`), "--worktree", "current", "--agent", "sh")
	if current.Setup.State != "not_applicable" || count(current.Effects, "terminal") != 1 || count(current.Effects, "worktree") != 0 {
		t.Errorf("current: %+v", current)
	}
	if m := run.Done(current.DispatchId); m.Body != repo {
		t.Errorf("current ran in %q, want %q", m.Body, repo)
	}
	top := run.Work(`cat a.txt; `+done+`"$(pwd) $(git rev-parse --abbrev-ref HEAD)"`, "--repo", "demo", "--worktree", "new-top-level", "--name", "vet", "--agent", "sh")
	if top.Setup.State != "not_configured" || count(top.Effects, "terminal") != 1 || count(top.Effects, "worktree") != 1 || count(top.Effects, "branch") != 1 {
		t.Errorf("new-top-level: %+v", top)
	}
	m := run.Done(top.DispatchId)
	if !strings.HasPrefix(m.Body, h.Data("worktrees")) {
		t.Errorf("new-top-level ran in %q", m.Body)
	}
	trees := get[struct {
		Worktrees []api.Worktree `json:"worktrees"`
	}](t, h.Caller(), "worktree", "list")
	if len(trees.Worktrees) != 1 || trees.Worktrees[0].Name != "vet" {
		t.Fatalf("the worktrees are %+v", trees)
	}
	existing := run.Work(done+`"$(pwd)"`, "--worktree", "id:"+trees.Worktrees[0].WorktreeId, "--agent", "sh")
	if m := run.Done(existing.DispatchId); m.Body != trees.Worktrees[0].Path || existing.Setup.State != "not_applicable" {
		t.Errorf("an existing worktree: ran in %q, setup %s", m.Body, existing.Setup.State)
	}
	refused(t, run.Caller, "name_taken", "worker", "start", "--task", run.Task("true"), "--repo", "demo", "--worktree", "new-top-level", "--name", "vet", "--agent", "sh")
}

func TestAcceptance_W07_APlainFolderHasNoWorktrees(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("folders")
	folder := get[api.RepoResult](t, h.Caller(), "repo", "add", t.TempDir(), "--name", "plain")
	if folder.Repo.Kind != "folder" {
		t.Errorf("the kind is %s", folder.Repo.Kind)
	}
	task := run.Task("true")
	refused(t, run.Caller, "invalid_argument", "worker", "start", "--task", task, "--repo", "plain", "--worktree", "new-top-level", "--name", "x", "--agent", "sh")
	if d := get[api.DispatchPage](t, run.Caller, "worker", "list"); len(d.Dispatches) != 0 || run.State(task) != "ready" {
		t.Errorf("the refusal had an effect: %+v", d)
	}
}

func TestAcceptance_W10_StopEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac", withStubbornAgent)
	run := h.NewRun("stubborn")
	start := run.Begin(run.Task("never ends"), "--worktree", "path:"+t.TempDir(), "--agent", "stubborn")
	pid := awaitPID(t, run, start.DispatchId)
	stopped := get[api.StopResult](t, run.Caller, "worker", "stop", start.DispatchId)
	if stopped.State != "stopped" || stopped.ProcessAction != "ended" {
		t.Errorf("the stop: %+v", stopped)
	}
	if alive(pid) {
		t.Error("the grandchild outlived a proven stop")
	}
	if d := run.Show(start.DispatchId); d.Dispatch.State != "stopped" || d.Observation.Process != "exited" || run.State(start.TaskId) != "blocked" {
		t.Errorf("after the stop: %+v", d)
	}
	again := get[api.StopResult](t, run.Caller, "worker", "stop", start.DispatchId)
	if !again.AlreadySettled || again.State != "stopped" {
		t.Errorf("a second stop: %+v", again)
	}
}

func withStubbornAgent(t testing.TB, h *Hub) {
	t.Helper()
	script := filepath.Join(h.Home, "stubborn.json")
	must(t, os.WriteFile(script, []byte(`[{"ignore_term": true}, {"spawn_grandchild": true}, {"sleep_ms": 300000}]`), 0o600))
	withConfig(fmt.Sprintf("agents:\n  stubborn:\n    command: [%s, %s]\n    deliver: argv\n    grace: 200ms\n", fakeagentBin, script))(t, h)
}

// awaitPID reads "grandchild PID" from the worker's output.
func awaitPID(t testing.TB, run Coordinator, dispatch string) (pid int) {
	t.Helper()
	eventually(t, "the agent prints its grandchild", 20*time.Second, func() bool {
		text := get[api.OutputPage](t, run.Caller, "worker", "read", dispatch).Terminal.Text
		n, err := fmt.Sscanf(text, "grandchild %d", &pid)
		return n == 1 && err == nil && strings.Contains(text, "\n")
	})
	return pid
}

// alive says whether the process exists and is no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(raw), ") Z ")
}

func TestAcceptance_W12_WorkersOutliveTheHub(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("outlives")
	before, during, g := newGate(t), newGate(t), filepath.Join(t.TempDir(), "alive")
	start := run.Work("echo before\n" + before.wait() + "echo during; touch '" + g + "'\n" + during.wait() + "echo after; " + done + "back")
	h.Kill()
	before.open(t, 1)
	eventually(t, "the worker goes on without its hub", 20*time.Second, func() bool { return exists(g) })
	h.Start()
	if d := run.Show(start.DispatchId); d.Observation.Process != "live" || d.Dispatch.State != "ready" {
		t.Errorf("after the restart: %+v", d)
	}
	during.open(t, 1)
	if m := run.Done(start.DispatchId); m.Body != "back" {
		t.Errorf("the report is %+v", m)
	}
	text := get[api.OutputPage](t, run.Caller, "worker", "read", start.DispatchId).Terminal.Text
	if !strings.HasPrefix(text, "before\nduring\nafter\n") {
		t.Errorf("the output has a gap: %q", text)
	}
}

func TestAcceptance_W12_AnExitDuringTheOutageIsSeen(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("ended meanwhile")
	g := newGate(t)
	start := run.Work(g.wait() + "exit 5")
	h.Kill()
	g.open(t, 1)
	eventually(t, "the exit is on record", 20*time.Second, func() bool {
		return exists(h.Data("terminals", terminalOf(start), "exit.json"))
	})
	h.Start()
	if r := reportOf(run.Done(start.DispatchId)); r.Outcome != "failed" || r.ExitCode != nil && *r.ExitCode != 5 {
		t.Errorf("the report is %+v", r)
	}
	if d := run.Show(start.DispatchId).Dispatch; d.State != "failed" || d.ExitCode != nil && *d.ExitCode != 5 {
		t.Errorf("the Dispatch is %+v", d)
	}
}

func terminalOf(r api.StartReceipt) string {
	for _, e := range r.Effects {
		if e.Kind == "terminal" {
			return e.Id
		}
	}
	return "none"
}

func TestAcceptance_W14_RetryOnlyTheLatestEndedDispatch(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("retries")
	flag := filepath.Join(t.TempDir(), "flag")
	task := run.Task("[ -e '" + flag + "' ] || exit 1; " + done + "second")
	place := []string{"--worktree", "path:" + t.TempDir(), "--agent", "sh"}
	start := append([]string{"worker", "start", "--task", task}, place...)
	first := run.Begin(task, place...)
	run.Done(first.DispatchId)
	must(t, os.WriteFile(flag, nil, 0o600))
	refused(t, run.Caller, "task_not_startable", start...)
	refused(t, run.Caller, "task_not_startable", append(start, "--retry-of", id.New("dispatch_"))...)
	second := run.Begin(task, append(place, "--retry-of", first.DispatchId)...)
	run.Done(second.DispatchId)
	if d := run.Show(second.DispatchId).Dispatch; *d.RetryOf != first.DispatchId || d.State != "succeeded" || run.State(task) != "completed" {
		t.Errorf("the retry is %+v", d)
	}
	for _, of := range []string{first.DispatchId, second.DispatchId} {
		refused(t, run.Caller, "task_not_startable", append(start, "--retry-of", of)...)
	}
	refused(t, run.Caller, "invalid_argument", "worker", "start", "--task", run.Task("x"), "--worktree", "new-top-level", "--agent", "sh")
}

func TestAcceptance_W16_ExitCodesOfAStart(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("exit codes")
	repo := NewRepo(t, map[string]string{"a": "a"})
	get[api.RepoResult](t, h.Caller(), "repo", "add", repo, "--name", "demo")
	place := []string{"--worktree", "path:" + t.TempDir(), "--agent", "sh", "--json"}
	r := run.CLI(append([]string{"worker", "start", "--task", run.Task("true"), "--no-wait"}, place...)...)
	if got := decode[api.StartReceipt](t, r.Stdout); r.Code != 0 || got.State != "starting" {
		t.Errorf("--no-wait: exit %d, %s", r.Code, got.State)
	}
	run.Done(decode[api.StartReceipt](t, r.Stdout).DispatchId)
	task := run.Task("true")
	r = run.CLI("worker", "start", "--task", task, "--repo", "demo", "--worktree", "new-top-level", "--name", "x", "--base", "missing", "--agent", "sh", "--json")
	if r.Code == 0 || r.Code == 10 {
		t.Errorf("a start that cannot succeed: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r.Code == 1 && decode[api.StartReceipt](t, r.Stdout).State != "failed" {
		t.Errorf("exit 1 with %s", r.Stdout)
	}
}

func TestAcceptance_W17_AgentNamesAreNeverExecuted(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("names")
	task, dir := run.Task("x"), t.TempDir()
	c := run.Caller
	c.dir = dir
	for _, name := range []string{"codex; touch flag", "codex; rm -rf ~", "/bin/sh", "../sh", "touch flag", "$(touch flag)"} {
		refused(t, c, "agent_unconfigured", "worker", "start", "--task", task, "--worktree", "path:"+dir, "--agent", name)
	}
	if exists(filepath.Join(dir, "flag")) || run.State(task) != "ready" {
		t.Errorf("a name had an effect: Task %s", run.State(task))
	}
}

func TestAcceptance_L08_AbandonSignalsNobody(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("abandon")
	w := run.heldWorker(t, h)
	out := get[api.StopResult](t, run.Caller, "worker", "abandon", w.DispatchId)
	if out.State != "abandoned" || out.ProcessAction != "none" || count(out.ResidualResources, "terminal") != 1 || out.Warning == "" {
		t.Errorf("abandon: %+v", out)
	}
	for _, s := range h.spawns() {
		if !alive(s.Incarnation.PID) {
			t.Error("abandon ended the process")
		}
	}
	if v := verdict(t, w.Caller(), w.report("succeeded", "late")...); v != "stale" {
		t.Errorf("L4: a fenced report is %s", v)
	}
	if s := run.State(w.TaskId); s != "blocked" {
		t.Errorf("the Task is %s", s)
	}
}

func TestAcceptance_W13_AKilledSupervisorProvesNothing(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("supervisor")
	w := run.heldWorker(t, h)
	s := h.spawns()[0]
	must(t, syscall.Kill(s.Supervisor.PID, syscall.SIGKILL))
	eventually(t, "the supervisor is gone", 10*time.Second, func() bool { return !running(s.Supervisor) })
	eventually(t, "the worker is no longer called live", 10*time.Second, func() bool {
		return run.Show(w.DispatchId).Observation.Process != "live"
	})
	if d := run.Show(w.DispatchId).Dispatch; d.State != "ready" {
		t.Errorf("a lost supervisor made it %s", d.State)
	}
	if v := verdict(t, w.Caller(), w.report("succeeded", "still here")...); v != "accepted" {
		t.Errorf("its report is %s", v)
	}
}

// A worker's process tree has the worker's credential and no other, whatever it
// takes out of its environment.
func TestAWorkerCannotShedItsCredential(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("shedding")
	out := filepath.Join(t.TempDir(), "out")
	bare := `env -i PATH="$PATH" HOME="$HOME" WAVEHUB_HOME='` + h.Home + `' "$WAVEHUB_BIN" `
	d := run.Work(bare + "run create --objective mine > '" + out + "' 2>&1; echo \"exit $?\" >> '" + out + "'\n" +
		"setsid " + bare + "send --type status --subject bare --body 'from below'\n" +
		bare + "done 'still who I am'\n")
	if m := run.Done(d.DispatchId); m.From != "dispatch:"+d.DispatchId || m.Body != "still who I am" {
		t.Errorf("the report is %+v", m)
	}
	raw, err := os.ReadFile(out)
	must(t, err)
	if text := string(raw); !strings.Contains(text, "out_of_scope") || !strings.Contains(text, "exit 4") {
		t.Errorf("creating a Run: %s", text)
	}
	if runs := get[api.RunPage](t, h.Caller(), "run", "list"); len(runs.Runs) != 1 {
		t.Errorf("%d Runs", len(runs.Runs))
	}
	history := get[api.HistoryPage](t, run.Caller, "check", "--all")
	if len(history.Messages) != 2 || history.Messages[0].From != "dispatch:"+d.DispatchId || history.Messages[0].Body != "from below" {
		t.Errorf("the mail is %+v", history.Messages)
	}
}
