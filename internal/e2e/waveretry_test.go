//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// noting is shell text that adds a line to a file.
func noting(file, line string) string { return fmt.Sprintf("echo %s >> '%s'\n", line, file) }

// notedIn is how often a line is in a file.
func notedIn(t testing.TB, file, line string) (n int) {
	t.Helper()
	if !exists(file) {
		return 0
	}
	for got := range strings.Lines(read(t, file)) {
		if got == line+"\n" {
			n++
		}
	}
	return n
}

// waveNotices are the notices about waves that the Run has got, of one kind.
func (c Coordinator) waveNotices(t testing.TB, kind string) (out []waveNotice) {
	t.Helper()
	for _, m := range get[api.HistoryPage](t, c.Caller, "check", "--all").Messages {
		var n waveNotice
		if m.Type == "notice" && json.Unmarshal(m.Payload, &n) == nil && n.Kind == kind {
			out = append(out, n)
		}
	}
	return out
}

type waveNotice struct {
	Kind, Status, Reason string
	Wave                 string `json:"wave_id"`
	Iteration            int
	Failed               []struct {
		Task          string `json:"task_id"`
		Error, Output string
		Dispatch      string `json:"dispatch_id"`
	}
	Blocked []string
}

// TestAcceptance_V15_RetriesKeepWhatIsCompleted: what is completed is not run again;
// the 4th iteration is refused with the marker, one notice and the code, and allowed
// with a reason.
func TestAcceptance_V15_RetriesKeepWhatIsCompleted(t *testing.T) {
	t.Parallel()
	h, dir := StartHub(t, "mac"), t.TempDir()
	run, ran, fixed := h.NewRun("retries"), filepath.Join(dir, "ran"), filepath.Join(dir, "fixed")
	w := run.newWave(t, "--checkpoint-dir", dir, "--tasks", taskFile(t,
		shTask(t, "a", noting(ran, "a")+done+"fine"),
		shTask(t, "b", noting(ran, "b")+"[ -e '"+fixed+"' ] || exit 3; "+done+"fine", "a"),
		shTask(t, "c", noting(ran, "c")+done+"fine", "b")))
	get[api.WaveSnapshot](t, run.Caller, "wave", "spawn", w)
	for iteration := 1; ; iteration++ {
		ended := run.waveEnds(t, w, "failed")
		if a, b, c := ended.Tasks[0], ended.Tasks[1], ended.Tasks[2]; ended.Wave.Iteration != iteration || a.Status != "completed" || a.Attempts != 1 ||
			b.Status != "failed" || b.Attempts != iteration || c.Status != "cancelled" || c.Attempts != 0 {
			t.Errorf("iteration %d: %+v", iteration, ended)
		}
		if iteration == 3 {
			break
		}
		if again := get[api.WaveSnapshot](t, run.Caller, "wave", "retry", w); again.Wave.Status != "running" || again.Wave.Ending != nil || again.Wave.Iteration != iteration+1 {
			t.Errorf("retried it is %+v", again.Wave)
		}
	}
	for range 2 { // the second one changes nothing
		refused(t, run.Caller, "max_iterations_reached", "wave", "retry", w)
	}
	marker := filepath.Join(dir, w, "MAX_ITERATIONS_REACHED")
	eventually(t, "the marker is there", waveLimit, func() bool { return exists(marker) })
	if text := read(t, marker); !strings.Contains(text, `"b"`) || !strings.Contains(text, `"c"`) || strings.Contains(text, `"a"`) {
		t.Errorf("the marker says %s", text)
	}
	var limit int
	for _, n := range run.waveNotices(t, "wave_state") {
		if n.Reason == "max_iterations_reached" {
			limit++
		}
	}
	if now := run.waveNow(t, w).Wave; !now.Exhausted || now.Status != "failed" || limit != 1 {
		t.Errorf("%d notices of the limit, the wave is %+v", limit, now)
	}
	refused(t, run.Caller, "invalid_argument", "wave", "retry", w, "--max-iterations", "4")
	must(t, os.WriteFile(fixed, nil, 0o600))
	get[api.WaveSnapshot](t, run.Caller, "wave", "retry", w, "--max-iterations", "4", "--reason", "the proxy was down")
	last := run.waveEnds(t, w, "completed").Wave
	if last.Iteration != 4 || last.Exhausted || last.Policy.MaxIterations != 4 || orNone(last.RaiseReason) != "the proxy was down" {
		t.Errorf("the last iteration: %+v", last)
	}
	if a, b, c := notedIn(t, ran, "a"), notedIn(t, ran, "b"), notedIn(t, ran, "c"); a != 1 || b != 4 || c != 1 {
		t.Errorf("a ran %d times, b %d, c %d", a, b, c)
	}
	eventually(t, "the marker goes with the limit", waveLimit, func() bool { return !exists(marker) })
	refused(t, run.Caller, "wave_final", "wave", "retry", w)
}

// heldTask is a task whose worker waits, and the worker once it runs.
func heldTask(t testing.TB, owner *Hub, id string, dependencies ...string) (waveEntry, func(Coordinator, string) Worker) {
	t.Helper()
	w, script := newWorker(t, owner)
	return shTask(t, id, script, dependencies...), func(c Coordinator, wave string) Worker {
		t.Helper()
		found := w.identified(t)
		must(t, os.Remove(w.File)) // so that the next attempt says where its own is
		for _, task := range c.waveNow(t, wave).Tasks {
			if task.TaskId == id {
				found.TaskId, found.DispatchId = task.HubTaskId, *task.DispatchId
			}
		}
		return found
	}
}

// spending are the ways in which a worker says what it has used.
var spending = map[string]func(context.Context, *client.Client, Worker, json.RawMessage) error{
	"heartbeat": func(ctx context.Context, c *client.Client, w Worker, usage json.RawMessage) error {
		_, err := c.Heartbeat(ctx, w.DispatchId, api.Heartbeat{Usage: usage})
		return err
	},
	"status": func(ctx context.Context, c *client.Client, w Worker, usage json.RawMessage) error {
		_, err := c.Send(ctx, api.MessageSend{Type: "status", Subject: "s", Body: "b", Usage: usage})
		return err
	},
	"worker_done": func(ctx context.Context, c *client.Client, w Worker, usage json.RawMessage) error {
		_, err := c.Send(ctx, api.MessageSend{Type: "worker_done", Subject: "s", Body: "b", TaskId: w.TaskId, DispatchId: w.DispatchId, Outcome: "succeeded", Usage: usage})
		return err
	},
}

// TestAcceptance_V26_TheBudgetEndsTheWave within one report, however the worker says
// what it has used, here and on a peer; more of a budget lets it go on.
func TestAcceptance_V26_TheBudgetEndsTheWave(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("budgets")
	for _, owner := range []*Hub{p.Home, p.Worker} {
		for how, spend := range spending {
			t.Run(owner.Name+" by "+how, func(t *testing.T) {
				first, running := heldTask(t, owner, "a")
				if owner != p.Home {
					first.Start = map[string]any{"agent": "sh", "worktree": "path:" + p.Root, "on": owner.Name}
				}
				w := run.newWave(t, "--budget", "cost_usd=5,tokens=1000", "--tasks", taskFile(t, first, shTask(t, "b", done+"fine", "a")), "--spawn")
				x := running(run, w)
				for _, used := range []string{`{"tokens":1000,"cost_usd":5}`, `{"tokens":1001}`} {
					if now := run.waveNow(t, w); now.Wave.Ending != nil {
						t.Errorf("before it was exceeded it is %+v", now.Wave)
					}
					if how == "worker_done" && used == `{"tokens":1000,"cost_usd":5}` {
						continue // it is said once
					}
					must(t, spend(t.Context(), x.Client(), x, json.RawMessage(used)))
				}
				at := time.Now()
				eventually(t, "it is ended", 5*time.Second, func() bool { return run.waveNow(t, w).Wave.Ending != nil })
				t.Logf("ended %s after the report", time.Since(at))
				out := run.waveEnds(t, w, "failed")
				if out.Wave.Ending.Reason != "budget_exceeded" || out.Wave.Usage.Tokens != 1001 || out.Tasks[1].Status != "cancelled" || out.Tasks[1].Attempts != 0 ||
					(out.Tasks[0].Status == "completed") != (how == "worker_done") {
					t.Errorf("it has ended as %+v, %+v", out.Wave, out.Tasks)
				}
				if told := slices.DeleteFunc(run.waveNotices(t, "budget_exceeded"), func(n waveNotice) bool { return n.Wave != w }); len(told) != 1 {
					t.Errorf("the notices of it are %+v", told)
				}
				refused(t, run.Caller, "budget_exceeded", "wave", "retry", w)
				goOn := get[api.WaveSnapshot](t, run.Caller, "wave", "retry", w, "--budget", "tokens=5000")
				if goOn.Wave.Policy.Budget.Tokens != 5000 || goOn.Wave.Policy.Budget.CostUsd != 5 { // what is not named stays
					t.Errorf("the new budget is %+v", goOn.Wave.Policy.Budget)
				}
				if out.Tasks[0].Status != "completed" { // a peer's word of the use may come before its worker's report
					y := running(run, w)
					must(t, spending["worker_done"](t.Context(), y.Client(), y, json.RawMessage(`{"tokens":1}`)))
				}
				if last := run.waveEnds(t, w, "completed"); last.Tasks[1].Attempts != 1 {
					t.Errorf("it went on to %+v", last.Tasks)
				}
			})
		}
	}
}
