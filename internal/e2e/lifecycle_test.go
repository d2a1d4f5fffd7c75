//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/openapi/api"
)

// Worker is a Dispatch whose process waits at a gate, with the capability that
// it was given: the test can act as the worker.
type Worker struct {
	api.StartReceipt
	Cap  capfile.File
	Hub  *Hub // that owns it
	File string
	gate gate
}

// heldWorker starts sh on the owner; it ends with exit 0 when its gate opens.
func (c Coordinator) heldWorker(t testing.TB, owner *Hub, place ...string) Worker {
	t.Helper()
	w, script := newWorker(t, owner)
	w.StartReceipt = c.Work(script, place...)
	return w.identified(t)
}

// heldWorkers starts one for each text on the Run's own hub, all at the same
// time; its script begins with the text.
func (c Coordinator) heldWorkers(t testing.TB, texts ...string) []Worker {
	t.Helper()
	operator, all := c.hub.Client(""), make([]Worker, len(texts))
	starts := make([]background[*api.StartReceipt], len(texts))
	for i, text := range texts {
		w, script := newWorker(t, c.hub)
		all[i] = w
		in := api.WorkerStart{Worktree: "path:" + filepath.Dir(w.File), Agent: "sh"}
		starts[i] = begin(t, func() (*api.StartReceipt, error) {
			task, err := operator.CreateTask(t.Context(), c.Run, api.TaskCreate{Spec: text + script})
			if err != nil {
				return nil, err
			}
			return operator.StartWorker(t.Context(), task.Task.TaskId, in)
		})
	}
	for i, start := range starts {
		r := start.get(t, startLimit)
		must(t, r.err)
		if r.value.State != "ready" {
			t.Fatalf("the start of %s is %s: %v", r.value.TaskId, r.value.State, r.value.LastError)
		}
		all[i].StartReceipt = *r.value
		all[i] = all[i].identified(t)
	}
	return all
}

// newWorker is one that is not started yet, with its script. File is where the
// script says where the capability is.
func newWorker(t testing.TB, owner *Hub) (w Worker, script string) {
	t.Helper()
	where := filepath.Join(t.TempDir(), "where")
	w = Worker{Hub: owner, gate: newGate(t), File: where}
	return w, `printf %s "$WAVEHUB_DISPATCH_FILE" > '` + where + ".tmp' && mv '" + where + ".tmp' '" + where + "'\n" + w.gate.wait()
}

// identified reads the capability of a worker that has been started.
func (w Worker) identified(t testing.TB) Worker {
	t.Helper()
	where := w.File
	eventually(t, "the worker says where its file is", 20*time.Second, func() bool { return exists(where) })
	raw, err := os.ReadFile(where)
	must(t, err)
	w.File = string(raw)
	raw, err = os.ReadFile(w.File)
	must(t, err)
	w.Cap, err = capfile.Decode(raw)
	must(t, err)
	return w
}

// Caller runs command lines as the worker would.
func (w Worker) Caller() Caller { return w.Hub.Caller("WAVEHUB_DISPATCH_FILE=" + w.File) }

// Client calls with the worker's capability.
func (w Worker) Client() *client.Client {
	return w.Hub.newClient(client.Config{URL: w.Cap.URL, Fingerprint: w.Cap.Fingerprint, Token: client.Secret(w.Cap.Token)})
}

func (w Worker) report(outcome, body string) []string {
	return []string{"send", "--type", "worker_done", "--subject", "s", "--body", body, "--outcome", outcome,
		"--task-id", w.TaskId, "--dispatch-id", w.DispatchId}
}

func verdict(t testing.TB, c Caller, args ...string) string {
	t.Helper()
	r := c.CLI(append(args, "--json")...)
	got := orNone(decode[api.SendResult](t, r.Stdout).Verdict)
	if want := map[string]int{"stale": 5, "rejected": 5}[got]; r.Code != want {
		t.Errorf("the verdict %s exits %d, want %d\n%s", got, r.Code, want, r.Stderr)
	}
	return got
}

func orNone(verdict *string) string {
	if verdict == nil {
		return "none"
	}
	return *verdict
}

func TestAcceptance_L01_L02_ReportsSettle(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("reports")
	for outcome, states := range map[string][2]string{"succeeded": {"succeeded", "completed"}, "failed": {"failed", "failed"}} {
		w := run.heldWorker(t, h)
		if v := verdict(t, w.Caller(), w.report(outcome, "the end")...); v != "accepted" {
			t.Errorf("%s: verdict %s", outcome, v)
		}
		if d := run.Show(w.DispatchId).Dispatch; string(d.State) != states[0] || *d.Evidence != "report" || run.State(w.TaskId) != states[1] {
			t.Errorf("%s: %+v, Task %s", outcome, d, run.State(w.TaskId))
		}
		if v := verdict(t, w.Caller(), w.report(outcome, "the end")...); v != "duplicate" {
			t.Errorf("%s again: verdict %s", outcome, v)
		}
		if v := verdict(t, w.Caller(), w.report("cancelled", "the end")...); v != "stale" {
			t.Errorf("another outcome: verdict %s", v)
		}
		if d := run.Show(w.DispatchId).Dispatch; string(d.State) != states[0] {
			t.Errorf("a late report made it %s", d.State)
		}
		if m := run.Done(w.DispatchId); reportOf(m).Outcome != outcome || m.From != "dispatch:"+w.DispatchId {
			t.Errorf("the mail is %+v", m)
		}
	}
}

func TestAcceptance_L03_IncompleteReportsChangeNothing(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("incomplete")
	w, other := run.heldWorker(t, h), run.heldWorker(t, h)
	whole := w.report("succeeded", "x")
	for field, value := range map[string]string{"task-id": other.TaskId, "dispatch-id": other.DispatchId, "outcome": "fine"} {
		name := strings.ReplaceAll(field, "-", "_")
		for _, args := range [][]string{without(whole, "--"+field), append(without(whole, "--"+field), "--"+field, value)} {
			if p := refused(t, w.Caller(), "lifecycle_invalid", args...); p.Field != name {
				t.Errorf("%q: the problem names %q, want %q", args, p.Field, name)
			}
		}
	}
	refused(t, run.Caller, "out_of_scope", append(whole, "--to", run.Box())...) // L4: the coordinator
	if s := run.State(w.TaskId); s != "dispatched" {
		t.Errorf("the Task is %s", s)
	}
}

func without(args []string, flag string) []string {
	for i, arg := range args {
		if arg == flag {
			return append(append([]string{}, args[:i]...), args[i+2:]...)
		}
	}
	return args
}

func TestAcceptance_L05_InstantWorkers(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("instant")
	for range scaled(t, 5, 10, 50) {
		start := run.Work(done + `instant`)
		if s := start.DispatchState; s != "ready" && s != "succeeded" {
			t.Errorf("the start returns %s", s)
		}
		if m := run.Done(start.DispatchId); m.Body != "instant" || reportOf(m).Outcome != "succeeded" {
			t.Errorf("the report is %+v", m)
		}
		if s := run.State(start.TaskId); s != "completed" {
			t.Errorf("the Task is %s", s)
		}
	}
}

const fakeAgents = `agents:
  fake:
    command: [%[1]s, %[2]s/fake.json]
    deliver: argv
  silent:
    command: [%[1]s, %[2]s/silent.json]
    deliver: argv
    grace: 300ms
`

// withFakeAgents configures the scripted agents fake (asks and reports) and
// silent (prints and exits 7).
func withFakeAgents(t testing.TB, h *Hub) {
	t.Helper()
	scripts := map[string]string{
		"fake.json": `[{"print": "working on ${WAVEHUB_TERMINAL_ID}"},
			{"run": ["wavehub", "send", "--type", "status", "--subject", "half", "--body", "half way"]},
			{"run": ["wavehub", "done", "--body-file", "-"], "input": "line one\nline two"}]`,
		"silent.json": `[{"print": "no report from me"}, {"exit": 7}]`,
	}
	for name, text := range scripts {
		must(t, os.WriteFile(filepath.Join(h.Home, name), []byte(text), 0o600))
	}
	withConfig(fmt.Sprintf(fakeAgents, fakeagentBin, h.Home))(t, h)
}

func TestAcceptance_L10_ExitWithoutReport(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac", withFakeAgents)
	run := h.NewRun("exits")
	fake := run.Begin(run.Task("report"), "--worktree", "path:"+t.TempDir(), "--agent", "fake")
	if m := run.Done(fake.DispatchId); m.Body != "line one\nline two" || reportOf(m).Evidence != "report" {
		t.Errorf("the agent's report: %+v", m)
	}
	waiter := beginCheck(t, run, client.CheckOptions{Wait: time.Minute, Types: []string{"worker_done"}})
	silent := run.Begin(run.Task("no report"), "--worktree", "path:"+t.TempDir(), "--agent", "silent")
	got := waiter.get(t, 30*time.Second)
	must(t, got.err)
	r := reportOf(got.value.Messages[0])
	if got.value.Count != 1 || r.Dispatch != silent.DispatchId || r.Outcome != "failed" || r.Evidence != "exit" || r.ExitCode == nil || *r.ExitCode != 7 {
		t.Errorf("the waiter got %+v", got.value.Messages)
	}
	d := run.Show(silent.DispatchId).Dispatch
	if d.State != "failed" || *d.Reason != "exited_without_report" || d.ExitCode == nil || *d.ExitCode != 7 || run.State(silent.TaskId) != "failed" {
		t.Errorf("the Dispatch is %+v", d)
	}
}

func TestAcceptance_L10_ShellCompletesByExit(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("shell")
	for script, want := range map[string]string{"echo the result": "succeeded", "echo oh; exit 9": "failed", done + "reported; exit 3": "succeeded"} {
		start := run.Work(script)
		m := run.Done(start.DispatchId)
		if r := reportOf(m); r.Outcome != want {
			t.Errorf("%q: %+v %q", script, r, m.Body)
		}
		if strings.HasPrefix(script, "echo the") && !strings.Contains(m.Body, "the result") {
			t.Errorf("the output is no result: %+v", m)
		}
	}
}

func TestAcceptance_L13_OneOfManyStartsWins(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("starts")
	task, c := run.Task("true"), h.Client("")
	in := api.WorkerStart{Worktree: "path:" + t.TempDir(), Agent: "sh"}
	var mu sync.Mutex
	var won []string
	var lost []error
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			r, err := c.StartWorker(t.Context(), task, in)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				lost = append(lost, err)
			} else {
				won = append(won, r.DispatchId)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 || len(lost) != 99 {
		t.Fatalf("%d starts won, %d lost: %v", len(won), len(lost), lost)
	}
	for _, err := range lost {
		if !isCode(err, client.CodeTaskNotStartable) || !strings.Contains(err.Error(), won[0]) {
			t.Fatalf("a loser got %v, which should name %s", err, won[0])
		}
	}
	if all := get[api.DispatchPage](t, run.Caller, "worker", "list"); len(all.Dispatches) != 1 {
		t.Errorf("%d Dispatches exist", len(all.Dispatches))
	}
}

func TestAcceptance_L11_L12_Dependencies(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("dependencies")
	a := run.Task(done + "a")
	b := run.Task(done+"b", "--deps", a)
	if s := run.State(b); s != "pending" {
		t.Errorf("the dependent is %s", s)
	}
	refused(t, run.Caller, "task_not_startable", "worker", "start", "--task", b, "--worktree", "path:"+t.TempDir(), "--agent", "sh")
	run.Done(run.Begin(a).DispatchId)
	if s := run.State(b); s != "ready" {
		t.Errorf("after its dependency the dependent is %s", s)
	}
	if s := run.State(run.Task("c", "--deps", a)); s != "ready" {
		t.Errorf("a late dependent is %s", s)
	}
	refused(t, run.Caller, "task_not_found", "task", "create", "--spec", "x", "--deps", "task_00000000000000000000000000")
	if all := get[api.TaskPage](t, run.Caller, "task", "list"); len(all.Tasks) != 3 {
		t.Errorf("%d Tasks exist", len(all.Tasks))
	}
}

func TestAcceptance_L07_AnEndClosesQuestions(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("closed questions")
	w := run.heldWorker(t, h)
	ask := begin(t, func() (Result, error) {
		return w.Caller().CLI("ask", "--question", "Go on?", "--timeout", "60s", "--json"), nil
	})
	q := run.Check("--types", "question").Messages[0]
	get[api.StopResult](t, run.Caller, "worker", "abandon", w.DispatchId)
	ask.get(t, 10*time.Second).value.problem(t, "dispatch_inactive")
	refused(t, run.Caller, "dispatch_inactive", "reply", "--id", q.MessageId, "--body", "yes")
	refused(t, run.Caller, "dispatch_inactive", "send", "--to", "dispatch:"+w.DispatchId, "--type", "guidance", "--subject", "s", "--body", "b")
}
