//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

func TestAcceptance_Q01_ReplayAfterRestart(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	witness := filepath.Join(t.TempDir(), "witness")
	runKey, startKey := id.New("req_"), id.New("req_")
	create := []string{"run", "create", "--objective", "replayed", "--bind", "--retry-request", runKey}
	first := h.CLI(append(create, "--json")...)
	bound := decode[api.RunBound](t, first.Stdout)
	run := Coordinator{Caller: h.Caller("WAVEHUB_CONSUMER=" + *bound.Binding.ConsumerToken), Run: bound.Run.RunId, Token: *bound.Binding.ConsumerToken}
	task := run.Task("echo ran >> '" + witness + "'; " + done + "once")
	start := []string{"worker", "start", "--task", task, "--worktree", "path:" + t.TempDir(), "--agent", "sh", "--retry-request", startKey, "--json"}
	started := run.CLI(start...)
	run.Done(decode[api.StartReceipt](t, started.Stdout).DispatchId)
	h.Restart()
	if again := h.CLI(append(create, "--json")...); !sameButReplayed(t, first.Stdout, again.Stdout) {
		t.Errorf("the replayed run create differs:\n%s%s%s", first.Stdout, again.Stdout, again.Stderr)
	}
	if again := run.CLI(start...); !sameButReplayed(t, started.Stdout, again.Stdout) {
		t.Errorf("the replayed start differs:\n%s%s%s", started.Stdout, again.Stdout, again.Stderr)
	}
	raw, err := os.ReadFile(witness)
	if err != nil || strings.Count(string(raw), "ran") != 1 {
		t.Errorf("the witness says %q %v", raw, err)
	}
	if runs := get[api.RunPage](t, h.Caller(), "run", "list"); len(runs.Runs) != 1 {
		t.Errorf("%d Runs exist", len(runs.Runs))
	}
}

// sameButReplayed compares two answers; the second has to say that it is a
// replay.
func sameButReplayed(t testing.TB, first, second string) bool {
	t.Helper()
	replayed := decode[struct {
		Mutation api.Mutation `json:"mutation"`
	}](t, second).Mutation.Replayed
	plain := func(text string) string {
		doc := decode[map[string]any](t, text)
		if m, ok := doc["mutation"].(map[string]any); ok {
			delete(m, "replayed")
		}
		raw, err := json.Marshal(doc)
		must(t, err)
		return string(raw)
	}
	return replayed && plain(first) == plain(second)
}

func TestAcceptance_Q02_MismatchesShowNothing(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("mismatch")
	w := run.heldWorker(t, h)
	key := id.New("req_")
	out := get[api.SendResult](t, h.Caller(), "send", "--to", run.Box(), "--type", "status", "--subject", "s", "--body", "secret text", "--retry-request", key)
	for what, attempt := range map[string]func() Result{
		"payload": func() Result {
			return h.CLI("send", "--to", run.Box(), "--type", "status", "--subject", "s", "--body", "other", "--retry-request", key, "--json")
		},
		"operation": func() Result { return run.CLI("task", "create", "--spec", "x", "--retry-request", key, "--json") },
		"principal": func() Result {
			return w.Caller().CLI("send", "--type", "status", "--subject", "s", "--body", "secret text", "--retry-request", key, "--json")
		},
	} {
		r := attempt()
		r.problem(t, "request_mismatch")
		if text := r.Stdout + r.Stderr; strings.Contains(text, "secret text") || strings.Contains(text, out.Message.MessageId) {
			t.Errorf("another %s shows the receipt: %s", what, text)
		}
	}
	refused(t, w.Caller(), "request_not_found", "request", "show", key)
}

func TestAcceptance_Q03_ParallelIdenticalRequests(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("parallel")
	c, key := h.Client(""), client.WithRequestID(id.New("req_"))
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	var failures atomic.Int64
	for range 500 {
		wg.Go(func() {
			out, err := c.CreateTask(t.Context(), run.Run, api.TaskCreate{Spec: "once"}, key)
			if err != nil {
				failures.Add(1)
				t.Log(err)
				return
			}
			out.Mutation.Replayed = false
			mu.Lock()
			defer mu.Unlock()
			seen[fmt.Sprintf("%+v", *out)]++
		})
	}
	wg.Wait()
	if len(seen) != 1 || failures.Load() != 0 {
		t.Errorf("%d different answers, %d failures", len(seen), failures.Load())
	}
	if all := get[api.TaskPage](t, run.Caller, "task", "list"); len(all.Tasks) != 1 {
		t.Errorf("%d Tasks exist", len(all.Tasks))
	}
}

// mutator creates Tasks titled by their request id until it is stopped.
type mutator struct {
	mu       sync.Mutex
	answered map[string]string // by request id: the Task of the answer, "" while none came
}

func (m *mutator) note(key, task string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered[key] = task
}

func (m *mutator) mutate(ctx context.Context, c *client.Client, run string, each func()) {
	for ctx.Err() == nil {
		key := id.New("req_")
		m.note(key, "")
		out, err := c.CreateTask(ctx, run, api.TaskCreate{Spec: "x", Title: key}, client.WithRequestID(key))
		if err != nil {
			return
		}
		m.note(key, out.Task.TaskId)
		each()
	}
}

func TestAcceptance_Q04_KillsLeaveEffectAndReceiptBothOrNeither(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("kills")
	c, m := h.Client(""), &mutator{answered: map[string]string{}}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed: %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	for range scaled(t, 5, 20, 200) {
		after, hit := int64(1+rng.IntN(60)), make(chan struct{}, 1)
		var count atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				m.mutate(t.Context(), c, run.Run, func() {
					if count.Add(1) == after {
						hit <- struct{}{}
					}
				})
			})
		}
		select {
		case <-hit:
		case <-time.After(20 * time.Second):
			t.Error("the mutations do not advance")
		}
		h.Kill()
		wg.Wait()
		h.Start()
	}
	checkBothOrNeither(t, c, run.Run, m.answered)
}

func checkBothOrNeither(t *testing.T, c *client.Client, run string, answered map[string]string) {
	t.Helper()
	before := tasksByTitle(t, c, run)
	cut := 0
	for key, told := range answered {
		_, err := c.Request(t.Context(), key)
		recorded := err == nil
		if !recorded && !isCode(err, client.CodeRequestNotFound) {
			t.Fatal(err)
		}
		stored, ok := before[key]
		if recorded != ok || told != "" && stored != told {
			t.Errorf("%s: receipt %v, effect %v (%s), told %q", key, recorded, ok, stored, told)
		}
		if told == "" {
			cut++
		}
		out, err := c.CreateTask(t.Context(), run, api.TaskCreate{Spec: "x", Title: key}, client.WithRequestID(key))
		if err != nil || out.Mutation.Replayed != recorded || recorded && out.Task.TaskId != stored {
			t.Errorf("the replay of %s: %+v %v", key, out, err)
		}
	}
	t.Logf("%d requests, %d of them cut by a kill", len(answered), cut)
	if after := tasksByTitle(t, c, run); len(after) != len(answered) {
		t.Errorf("%d Tasks of %d requests", len(after), len(answered))
	}
}

func tasksByTitle(t *testing.T, c *client.Client, run string) map[string]string {
	t.Helper()
	out, page := map[string]string{}, client.Page{Limit: 200}
	for {
		got, err := c.Tasks(t.Context(), run, "", page)
		must(t, err)
		for _, task := range got.Tasks {
			if _, twice := out[task.Title]; twice {
				t.Errorf("%s had its effect twice", task.Title)
			}
			out[task.Title] = task.TaskId
		}
		if got.NextCursor == nil {
			return out
		}
		page.Cursor = *got.NextCursor
	}
}

func TestAcceptance_Q06_ARefusalIsNotRecorded(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("refusals")
	key := id.New("req_")
	refused(t, run.Caller, "task_not_found", "task", "create", "--spec", "x", "--deps", id.New("task_"), "--retry-request", key)
	out := get[api.TaskResult](t, run.Caller, "task", "create", "--spec", "x", "--retry-request", key)
	if out.Mutation.Replayed || out.Mutation.RequestId != key {
		t.Errorf("the corrected request: %+v", out.Mutation)
	}
	h.Kill()
	p := refused(t, run.Caller, "hub_unreachable", "task", "create", "--run", run.Run, "--spec", "y")
	if len(p.NextCommands) == 0 {
		t.Fatal("Q7: no command recovers it")
	}
	h.Start()
	again := p.NextCommands[len(p.NextCommands)-1]
	if r := run.CLI(again[1:]...); r.Code != 0 {
		t.Errorf("Q7: %q: exit %d %s", again, r.Code, r.Stderr)
	}
}
