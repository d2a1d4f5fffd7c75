//go:build unix

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

// TestWaveEdit_OfAPendingWave judges the whole again: all of it or nothing changes.
func TestWaveEdit_OfAPendingWave(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, ran := h.NewRun("edits"), filepath.Join(t.TempDir(), "ran")
	w := run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", noting(ran, "old")), shTask(t, "b", noting(ran, "b"), "a").writing("src/b"), shTask(t, "c", noting(ran, "never"))))
	task := func(args ...string) []string { return append([]string{"wave", "task"}, args...) }
	before := run.json("wave", "status", w).Stdout
	for code, line := range map[string][]string{
		"dependency_cycle":   task("update", w, "a", "--deps", "b"),
		"dependency_unknown": task("update", w, "a", "--deps", "nobody"),
		"scope_conflict":     task("update", w, "c", "--write-scope", "SRC/**"),
		"scope_invalid":      task("update", w, "b", "--write-scope", "/abs"),
		"worker_not_found":   task("update", w, "b", "--worker", "nobody"),
		"task_duplicate":     task("add", w, "a", "--goal", "x", "--agent", "sh", "--worktree", "path:"+t.TempDir()),
		"token_invalid":      task("add", w, "a.b", "--goal", "x", "--agent", "sh", "--worktree", "path:"+t.TempDir()),
		"placement_invalid":  task("add", w, "d", "--goal", "x"),
	} {
		if p := refused(t, run.Caller, "plan_invalid", line...); !slices.Contains(findingCodes(p.Findings), code) {
			t.Errorf("%q finds %+v", line, p.Findings)
		}
	}
	refused(t, run.Caller, "task_not_found", task("update", w, "nobody", "--goal", "x")...)
	if after := run.json("wave", "status", w).Stdout; after != before {
		t.Errorf("refused edits changed\n%s to\n%s", before, after)
	}
	get[api.WaveResult](t, run.Caller, task("update", w, "a", "--goal", noting(ran, "new")+done+"fine", "--write-scope", "src/a", "--timeout", "90s")...)
	get[api.WaveResult](t, run.Caller, task("add", w, "d", "--goal", noting(ran, "d")+done+"fine", "--deps", "b,c", "--agent", "sh", "--worktree", "path:"+t.TempDir(), "--write-scope=")...)
	get[api.WaveResult](t, run.Caller, task("update", w, "c", "--status", "completed", "--reason", "done by hand")...)
	now := run.waveNow(t, w)
	if d, c := standsAs(t, now, "d"), standsAs(t, now, "c"); now.Wave.Total != 4 || d.Level != 3 || d.WaveIndex != 3 || c.Status != "completed" || !slices.Equal(standsAs(t, now, "a").WriteScope, []string{"src/a"}) {
		t.Errorf("edited it is %+v", now.Tasks)
	}
	get[api.WaveSnapshot](t, run.Caller, "wave", "spawn", w)
	end := run.waveEnds(t, w, "completed")
	if got := read(t, ran); got != "new\nb\nd\n" || standsAs(t, end, "c").Attempts != 0 {
		t.Errorf("these ran:\n%s", got)
	}
}

// TestWaveEdit_OfARunningWave: a status that a person sets stops the worker first; what
// has ended stays; what a plan rests on stays too.
func TestWaveEdit_OfARunningWave(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, attached, ran := h.NewRun("edits"), registered(t, h, ""), filepath.Join(t.TempDir(), "ran")
	a, running := heldTask(t, h, "a")
	b := waveEntry{ID: "b", Goal: "x", Worker: attached.Name, WriteScope: []string{}}
	w := run.newWave(t, "--on-failure", "continue", "--spawn", "--tasks", taskFile(t, a, b, shTask(t, "c", noting(ran, "old"), "a"), shTask(t, "d", "x", "b")))
	x, started := running(run, w), attached.startOf(t, *run.becomes(t, w, "b", "running", "worker").DispatchId)
	pid := h.spawns()[0].Incarnation.PID
	update := func(token string, args ...string) []string {
		return append([]string{"wave", "task", "update", w, token}, args...)
	}
	for _, args := range [][]string{{"--deps", "b"}, {"--write-scope", "src"}, {"--worker", attached.Name}, {"--verify-cmd", "true"}, {"--timeout", "5s"}} {
		refused(t, run.Caller, "wave_running", update("c", args...)...)
	}
	refused(t, run.Caller, "wave_running", "wave", "task", "add", w, "e", "--goal", "x", "--worker", attached.Name)
	get[api.WaveResult](t, run.Caller, update("c", "--goal", noting(ran, "new")+done+"fine")...)

	get[api.WaveResult](t, run.Caller, update("a", "--status", "completed", "--reason", "done by hand")...)
	eventually(t, "the worker of a is stopped", waitLimit, func() bool { return !alive(pid) })
	run.becomes(t, w, "c", "completed", "")
	if d := run.Show(x.DispatchId).Dispatch; d.State != "stopped" || run.State(x.TaskId) != "completed" || read(t, ran) != "new\n" {
		t.Errorf("the Dispatch of a is %+v, its Task %s", d, run.State(x.TaskId))
	}
	get[api.WaveResult](t, run.Caller, update("a", "--status", "completed")...) // again
	refused(t, run.Caller, "task_state_invalid", update("a", "--status", "failed")...)

	get[api.WaveResult](t, run.Caller, update("b", "--status", "failed")...)
	attached.cancels(t, started)
	end := run.waveEnds(t, w, "failed")
	for token, want := range map[string]string{"a": "completed set_by_operator: done by hand", "b": "failed set_by_operator", "c": "completed none", "d": "cancelled blocked"} {
		if x := standsAs(t, end, token); string(x.Status)+" "+orNone(x.Reason) != want {
			t.Errorf("%s is %s %s, want %s", token, x.Status, orNone(x.Reason), want)
		}
	}
}

// cancels takes the order to cancel a session, and confirms it.
func (w attachedWorker) cancels(t testing.TB, s hub.SessionStart) {
	t.Helper()
	for _, m := range w.mail(t) {
		if c := decode[hub.SessionControl](t, string(m.Payload)); m.Type == "control" && c.Action == "cancel" && c.Dispatch == s.Dispatch {
			_, err := w.client().Send(t.Context(), api.MessageSend{Type: "worker_done", TaskId: string(s.Task), DispatchId: string(s.Dispatch), Outcome: "cancelled", Body: "gave up"})
			must(t, err)
			return
		}
	}
	t.Fatalf("there is no order to cancel %s", s.Dispatch)
}

// TestWaveCancel_InEachState: a pending wave ends at once and runs nothing; a running
// one is ended with its workers; a final one is final.
func TestWaveCancel_InEachState(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, dir := h.NewRun("cancels"), t.TempDir()
	pending := run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", noting(filepath.Join(dir, "ran"), "a"))))
	out := get[api.WaveSnapshot](t, run.Caller, "wave", "cancel", pending)
	if out.Wave.Status != "cancelled" || out.Wave.Iteration != 0 || out.Tasks[0].Status != "cancelled" || out.Tasks[0].Attempts != 0 || len(out.Residuals) != 0 {
		t.Errorf("the pending one is %+v %+v", out.Wave, out.Tasks)
	}
	a, running := heldTask(t, h, "a")
	wave := run.newWave(t, "--tasks", taskFile(t, a, shTask(t, "b", "x", "a")), "--spawn")
	x := running(run, wave)
	pid := h.spawns()[0].Incarnation.PID
	out = get[api.WaveSnapshot](t, run.Caller, "wave", "cancel", wave, "--reason", "wrong branch")
	if out.Wave.Status != "cancelled" || out.Wave.Ending.Reason != "cancelled" || out.Summary.ByStatus["cancelled"] != 2 || alive(pid) {
		t.Errorf("the running one is %+v %+v, its worker lives: %v", out.Wave, out.Summary, alive(pid))
	}
	if run.State(x.TaskId) != "cancelled" || !strings.Contains(run.CLI("events", "--wave", wave).Stdout, "wrong branch") {
		t.Errorf("its Task is %s", run.State(x.TaskId))
	}
	for _, w := range []string{pending, wave} {
		refused(t, run.Caller, "wave_final", "wave", "cancel", w)
		if n := len(run.waveNotices(t, "wave_state")); n != 2 {
			t.Errorf("%d notices of two ends", n)
		}
	}
	get[api.WaveSnapshot](t, run.Caller, "wave", "retry", pending)
	eventually(t, "what was cancelled before it began runs when it is retried", waitLimit, func() bool { return notedIn(t, filepath.Join(dir, "ran"), "a") == 1 })
}

// TestWaveReplace_OfAPendingWaveOnly takes the place of a pending wave of that Run only.
func TestWaveReplace_OfAPendingWaveOnly(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, other, ran := h.NewRun("replaces"), h.NewRun("another"), filepath.Join(t.TempDir(), "ran")
	w := run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", noting(ran, "old"))))
	old := run.waveNow(t, w).Tasks[0].HubTaskId
	replace := []string{"wave", "create", "--id", w, "--replace", "--tasks", taskFile(t, shTask(t, "a", noting(ran, "new")+done+"fine"))}
	refused(t, other.Caller, "wave_exists", replace...)
	refused(t, run.Caller, "plan_invalid", "wave", "create", "--id", w, "--replace", "--tasks", taskFile(t, shTask(t, "a", "x", "a")))
	if run.State(old) != "ready" {
		t.Errorf("a refused replacement made the Task %s", run.State(old))
	}
	get[api.WaveResult](t, run.Caller, replace...)
	if now := run.waveNow(t, w); run.State(old) != "cancelled" || now.Tasks[0].HubTaskId == old || now.Wave.Status != "pending" {
		t.Errorf("the Task of before is %s, the wave %+v", run.State(old), now)
	}
	g := newGate(t)
	held := run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", g.wait())), "--spawn")
	refused(t, run.Caller, "wave_running", "wave", "create", "--goal", "g", "--id", held, "--replace")
	get[api.WaveSnapshot](t, run.Caller, "wave", "cancel", held)
	refused(t, run.Caller, "wave_final", "wave", "create", "--goal", "g", "--id", held, "--replace")
	get[api.WaveSnapshot](t, run.Caller, "wave", "spawn", w)
	run.waveEnds(t, w, "completed")
	if got := read(t, ran); got != "new\n" {
		t.Errorf("these ran:\n%s", got)
	}
}
