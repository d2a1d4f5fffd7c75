//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// standsAs is the task of that token.
func standsAs(t testing.TB, s api.WaveSnapshot, token string) api.WaveTask {
	t.Helper()
	i := slices.IndexFunc(s.Tasks, func(x api.WaveTask) bool { return x.TaskId == token })
	if i < 0 {
		t.Fatalf("the wave has no %s", token)
	}
	return s.Tasks[i]
}

// becomes waits until a task has a status, waiting for something or, with "", for
// nothing.
func (c Coordinator) becomes(t testing.TB, wave, token, status, waiting string) api.WaveTask {
	t.Helper()
	var last api.WaveTask
	eventually(t, fmt.Sprintf("%s is %s, waiting for %q", token, status, waiting), waitLimit, func() bool {
		last = standsAs(t, c.waveNow(t, wave), token)
		got := orNone(last.WaitingFor)
		return string(last.Status) == status && (got == waiting || waiting == "" && last.WaitingFor == nil)
	})
	return last
}

const waitLimit = 20 * time.Second

// TestAcceptance_V22_APersonsStopIsNoFailure: the wave goes on and waits for its
// operator; the replacement that a person starts completes the task.
func TestAcceptance_V22_APersonsStopIsNoFailure(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("stopped by hand")
	for _, owner := range []*Hub{p.Home, p.Worker} {
		a, running := heldTask(t, owner, "a")
		place := []string{"--agent", "sh", "--worktree", fmt.Sprint(a.Start["worktree"])}
		if owner != p.Home {
			place = p.Place()
			a.Start = map[string]any{"agent": "sh", "worktree": "path:" + p.Root, "on": owner.Name}
		}
		other := newGate(t)
		w := run.newWave(t, "--spawn", "--tasks", taskFile(t, a, shTask(t, "b", done+"fine", "a"), shTask(t, "c", other.wait()+done+"fine")))
		x := running(run, w)
		if out := get[api.StopResult](t, run.Caller, "worker", "stop", x.DispatchId); out.State != "stopped" {
			t.Errorf("%s: the stop is %+v", owner.Name, out)
		}
		held := run.becomes(t, w, "a", "running", "operator")
		if held.Attempts != 1 || run.waveNow(t, w).Wave.Ending != nil {
			t.Errorf("%s: after the stop it is %+v", owner.Name, held)
		}
		again := run.Begin(x.TaskId, append(place, "--retry-of", x.DispatchId)...)
		y := running(run, w)
		if y.DispatchId != again.DispatchId || y.DispatchId == x.DispatchId {
			t.Errorf("%s: the task is done by %s, want %s", owner.Name, y.DispatchId, again.DispatchId)
		}
		y.gate.open(t, 1)
		run.becomes(t, w, "b", "completed", "")
		other.open(t, 1)
		end := run.waveEnds(t, w, "completed")
		if got := standsAs(t, end, "a"); got.Attempts != 2 || *got.DispatchId != again.DispatchId {
			t.Errorf("%s: it has ended as %+v", owner.Name, got)
		}
		if log := run.CLI("events", "--wave", w).Stdout; strings.Contains(log, "failed") || strings.Contains(log, "cancelled") || strings.Count(log, `"task_dispatched"`) != 4 {
			t.Errorf("%s: the log is\n%s", owner.Name, log)
		}
	}
}

// TestAcceptance_V24_CancelledWhileTheLinkIsDown: the remote agent is gone within 5 s
// of link-up, with its descendants.
func TestAcceptance_V24_CancelledWhileTheLinkIsDown(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	proxy := newProxy(t, p.Worker)
	Pair(t, p.Home, p.Worker, p.Root, "https://"+proxy.Addr())
	run, pids := p.Home.NewRun("cut off"), filepath.Join(p.Root, "pids")
	a := shTask(t, "a", "sleep 1000 & echo $$ $! > '"+pids+".tmp' && mv '"+pids+".tmp' '"+pids+"'\nwait")
	a.Start = map[string]any{"agent": "sh", "worktree": "path:" + p.Root, "on": "worker"}
	w := run.newWave(t, "--tasks", taskFile(t, a, shTask(t, "b", "x", "a")), "--spawn")
	eventually(t, "the agent runs", waveLimit, func() bool { return exists(pids) })
	eventually(t, "its home knows", waitLimit, func() bool { return run.Show(*run.waveNow(t, w).Tasks[0].DispatchId).Dispatch.State == "ready" })
	proxy.Refuse(true)
	proxy.CutAll()
	eventually(t, "the link is down", waitLimit, func() bool { return p.Home.shown(t, "worker").Link.State != "up" })
	now := get[api.WaveSnapshot](t, run.Caller, "wave", "cancel", w, "--reason", "wrong branch", "--timeout", "1s")
	if now.Wave.Ending == nil || now.Wave.Ending.As != "cancelled" || standsAs(t, now, "a").Status != "cancelled" || standsAs(t, now, "b").Status != "cancelled" {
		t.Errorf("cancelled it is %+v %+v", now.Wave, now.Tasks)
	}
	if len(now.Residuals) != 1 || now.Residuals[0].Server != "worker" || now.Residuals[0].TaskId != "a" {
		t.Errorf("the residuals are %+v", now.Residuals)
	}
	var agents []int
	for word := range strings.FieldsSeq(read(t, pids)) {
		pid, err := strconv.Atoi(word)
		must(t, err)
		if !alive(pid) {
			t.Errorf("%d is gone before anybody could tell it", pid)
		}
		agents = append(agents, pid)
	}
	proxy.Refuse(false)
	p.linked(t)
	up := time.Now()
	eventually(t, "the agent and its child are gone", 5*time.Second, func() bool { return !slices.ContainsFunc(agents, alive) })
	t.Logf("gone %s after link-up", time.Since(up))
	run.waveEnds(t, w, "cancelled")
	eventually(t, "its end is proven", waveLimit, func() bool { return len(run.waveNow(t, w).Residuals) == 0 })
}

// TestAcceptance_V25_ALevelRunsToItsEnd under barrier and continue; the next one never
// starts and is reported as blocked.
func TestAcceptance_V25_ALevelRunsToItsEnd(t *testing.T) {
	t.Parallel()
	h, dir, g := StartHub(t, "mac"), t.TempDir(), newGate(t)
	run, ran := h.NewRun("levels"), filepath.Join(dir, "ran")
	w := run.newWave(t, "--order", "barrier", "--on-failure", "continue", "--checkpoint-dir", dir, "--spawn", "--tasks", taskFile(t,
		shTask(t, "a", noting(ran, "a")+g.wait()+done+"fine"), shTask(t, "b", noting(ran, "b")+"echo broken; exit 3"),
		shTask(t, "c", noting(ran, "c")+done+"fine", "a"), shTask(t, "d", noting(ran, "d")+done+"fine", "c")))
	run.becomes(t, w, "b", "failed", "")
	if now := run.waveNow(t, w); now.Wave.Ending != nil || standsAs(t, now, "a").Status != "running" {
		t.Errorf("with a failed task it is %+v", now.Wave)
	}
	g.open(t, 1)
	end := run.waveEnds(t, w, "failed")
	for token, want := range map[string]string{"a": "completed none", "b": "failed exit", "c": "cancelled blocked", "d": "cancelled blocked"} {
		x := standsAs(t, end, token)
		if got := string(x.Status) + " " + orNone(x.Reason); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", token, got, want)
		}
	}
	if got := read(t, ran); strings.Contains(got, "c") || strings.Contains(got, "d") || notedIn(t, ran, "a") != 1 {
		t.Errorf("these ran:\n%s", got)
	}
	notices := run.waveNotices(t, "wave_state")
	if len(notices) != 1 || !slices.Equal(notices[0].Blocked, []string{"c", "d"}) || len(notices[0].Failed) != 1 || notices[0].Failed[0].Task != "b" {
		t.Errorf("the notices are %+v", notices)
	}
	folderSays(t, filepath.Join(dir, w), "failed")
	if text := read(t, dir, w, "waves", "1", "failures.json"); !strings.Contains(text, `"blocked": [`) || !strings.Contains(text, `"c"`) {
		t.Errorf("failures.json is %s", text)
	}
	if r := run.CLI("wave", "status", w, "--exit-status"); r.Code != 1 || !strings.Contains(r.Stdout, "blocked") {
		t.Errorf("people are told by exit %d\n%s", r.Code, r.Stdout)
	}
}

// TestAcceptance_V27_OneMailOfAWholeWave however many tasks it has; with --mail all
// there is each report as well.
func TestAcceptance_V27_OneMailOfAWholeWave(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("one mail")
	const n = 200
	tasks, place := make([]waveEntry, n), t.TempDir()
	for i := range tasks {
		tasks[i] = waveEntry{ID: fmt.Sprintf("t%d", i), Goal: "true", Start: map[string]any{"agent": "sh", "worktree": "path:" + place}, WriteScope: []string{}}
	}
	began := time.Now()
	w := run.newWave(t, "--concurrency", "16", "--tasks", taskFile(t, tasks...), "--spawn")
	var end api.WaveSnapshot
	eventually(t, "all of it is done", 2*time.Minute, func() bool {
		end = run.waveNow(t, w)
		return end.Wave.CompletedAt != nil
	})
	t.Logf("%d tasks took %s", n, time.Since(began))
	if end.Wave.Status != "completed" || end.Summary.Done != n {
		t.Errorf("it has ended as %+v %+v", end.Wave, end.Summary)
	}
	mail := run.Check()
	var payload waveNotice
	if mail.Count != 1 || mail.WaitingBehind != 0 || json.Unmarshal(mail.Messages[0].Payload, &payload) != nil || payload.Kind != "wave_state" || payload.Wave != w || payload.Status != "completed" {
		t.Errorf("the mail is %+v", mail)
	}
	get[api.CheckResult](t, run.Caller, "check", "--ack", *mail.DeliveryId)
	every := run.newWave(t, "--mail", "all", "--tasks", taskFile(t, tasks[:3]...), "--spawn")
	run.waveEnds(t, every, "completed")
	if all := run.Check(); all.Count != 4 {
		t.Errorf("with --mail all there are %d messages: %+v", all.Count, all.Messages)
	}
}

// TestWave_ResidualsHoldARetryBack until the worker that may still run is proven gone.
func TestWave_ResidualsHoldARetryBack(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w := h.NewRun("residuals"), registered(t, h, "")
	wave := run.leftOverOf(t, w)
	out := run.waveNow(t, wave)
	task := standsAs(t, out, "a")
	if out.Wave.Status != "cancelled" || len(out.Residuals) != 1 || out.Residuals[0].DispatchId != *task.DispatchId {
		t.Errorf("cancelled it is %+v, left over are %+v", out.Wave, out.Residuals)
	}
	refused(t, run.Caller, "wave_residuals", "wave", "retry", wave)
	report := api.MessageSend{Type: "worker_done", TaskId: task.HubTaskId, DispatchId: *task.DispatchId, Outcome: "cancelled", Body: "gave up"}
	_, err := w.client().Send(t.Context(), report)
	must(t, err)
	eventually(t, "nothing is left over", waitLimit, func() bool { return len(run.waveNow(t, wave).Residuals) == 0 })
	if again := get[api.WaveSnapshot](t, run.Caller, "wave", "retry", wave); again.Wave.Iteration != 2 {
		t.Errorf("retried it is %+v", again.Wave)
	}
}
