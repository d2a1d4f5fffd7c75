//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

const waveLimit = 30 * time.Second

// waveEntry is a task of a file of tasks, as people write it.
type waveEntry struct {
	ID           string         `json:"task_id"`
	Goal         string         `json:"goal"`
	Worker       string         `json:"worker,omitempty"`
	Start        map[string]any `json:"start,omitempty"`
	Dependencies []string       `json:"dependencies,omitempty"`
	WriteScope   []string       `json:"write_scope"`
	VerifyCmd    string         `json:"verify_cmd,omitempty"`
	Timeout      any            `json:"timeout_secs,omitempty"`
}

// shTask is a task whose goal is a script that sh runs in a folder of its own.
func shTask(t testing.TB, id, script string, dependencies ...string) waveEntry {
	t.Helper()
	return waveEntry{
		ID: id, Goal: script, Start: map[string]any{"agent": "sh", "worktree": "path:" + t.TempDir()}, Dependencies: dependencies,
		WriteScope: []string{}, // it is told to nobody else
	}
}

// taskFile is a file of the tasks.
func taskFile(t testing.TB, tasks ...waveEntry) string {
	t.Helper()
	raw, err := json.Marshal(tasks)
	must(t, err)
	path := filepath.Join(t.TempDir(), "tasks.json")
	must(t, os.WriteFile(path, raw, 0o600))
	return path
}

var wavesMade atomic.Int64

// newWave creates a wave, an empty one unless more says otherwise.
func (c Coordinator) newWave(t testing.TB, more ...string) string {
	t.Helper()
	id := fmt.Sprintf("made-%d", wavesMade.Add(1))
	out := get[api.WaveResult](t, c.Caller, append([]string{"wave", "create", "--goal", "made", "--run", c.Run, "--id", id}, more...)...)
	if out.Wave.WaveId != id || out.Wave.RunId != c.Run {
		t.Fatalf("%s is created as %+v", id, out.Wave)
	}
	return id
}

// waveNow is wave status.
func (c Coordinator) waveNow(t testing.TB, wave string) api.WaveSnapshot {
	t.Helper()
	return get[api.WaveSnapshot](t, c.Caller, "wave", "status", wave)
}

// waveEnds waits until a wave has a final status, which has to be that one.
func (c Coordinator) waveEnds(t testing.TB, wave, status string) api.WaveSnapshot {
	t.Helper()
	var last api.WaveSnapshot
	eventually(t, wave+" has ended", waveLimit, func() bool {
		last = c.waveNow(t, wave)
		return last.Wave.CompletedAt != nil
	})
	if string(last.Wave.Status) != status {
		t.Fatalf("%s is %s: %+v", wave, last.Wave.Status, last.Tasks)
	}
	return last
}

// findingCodes are those of findings, sorted.
func findingCodes(fs []api.PlanFinding) (codes []string) {
	for _, f := range fs {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return codes
}

// TestAcceptance_V02_FindingsByCLI: all that is wrong is told at once, by plan and
// by create, for people and for programs, and nothing is stored.
func TestAcceptance_V02_FindingsByCLI(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("findings")
	a, b, c := shTask(t, "a", "x"), shTask(t, "b", "x"), shTask(t, "c", "x")
	on := func(e waveEntry, dependencies ...string) waveEntry { e.Dependencies = dependencies; return e }
	for name, x := range map[string]struct {
		tasks []waveEntry
		codes []string
		path  []string // the tasks of the first finding
	}{
		"self cycle": {[]waveEntry{on(a, "a")}, []string{"dependency_cycle"}, []string{"a"}},
		"2-cycle":    {[]waveEntry{on(a, "b"), on(b, "a")}, []string{"dependency_cycle"}, []string{"a", "b"}},
		"3-cycle":    {[]waveEntry{on(a, "c"), on(b, "a"), on(c, "b")}, []string{"dependency_cycle"}, []string{"a", "b", "c"}},
		"unknown":    {[]waveEntry{on(a, "nobody")}, []string{"dependency_unknown"}, []string{"a"}},
		"duplicate":  {[]waveEntry{a, a}, []string{"task_duplicate"}, []string{"a"}},
		"everything": {[]waveEntry{on(a, "a"), on(b, "nobody"), {ID: "c.d", Goal: "x", Start: a.Start, WriteScope: []string{"/abs"}}}, []string{"dependency_cycle", "dependency_unknown", "scope_invalid", "token_invalid"}, nil},
	} {
		file := taskFile(t, x.tasks...)
		r := run.json("wave", "plan", file)
		plan := decode[api.WavePlan](t, r.Stdout)
		if r.Code != 1 || plan.Valid || !slices.Equal(findingCodes(plan.Findings), x.codes) {
			t.Errorf("%s: exit %d %s%s", name, r.Code, r.Stdout, r.Stderr)
		}
		if x.path != nil {
			got := slices.Compact(slices.Sorted(slices.Values(plan.Findings[0].Tasks)))
			if !slices.Equal(got, x.path) {
				t.Errorf("%s: the finding names %q", name, plan.Findings[0].Tasks)
			}
		}
		p := refused(t, run.Caller, "plan_invalid", "wave", "create", "--tasks", file, "--id", "w1")
		if !slices.Equal(findingCodes(p.Findings), x.codes) {
			t.Errorf("%s: create finds %+v", name, p.Findings)
		}
		for _, line := range [][]string{{"wave", "create", "--tasks", file}, {"wave", "plan", file}} {
			r := run.CLI(line...)
			for _, code := range x.codes {
				if !strings.Contains(r.Stdout+r.Stderr, code) {
					t.Errorf("%s: %q says nothing of %s:\n%s%s", name, line, code, r.Stdout, r.Stderr)
				}
			}
		}
	}
	if page := get[api.WavePage](t, run.Caller, "wave", "list"); len(page.Waves) != 0 {
		t.Errorf("there are waves: %+v", page.Waves)
	}
	if tasks := get[api.TaskPage](t, run.Caller, "task", "list"); len(tasks.Tasks) != 0 {
		t.Errorf("there are Tasks: %+v", tasks.Tasks)
	}
	w := run.newWave(t, "--tasks", taskFile(t, a, on(b, "a", "a")))
	if deps := run.waveNow(t, w).Tasks[1].Dependencies; !slices.Equal(deps, []string{"a"}) {
		t.Errorf("b depends on %q", deps)
	}
}

// TestAcceptance_V04_SpawnOnceAndFinal: spawn of a running wave changes nothing; a
// final one is final; bad tokens are refused.
func TestAcceptance_V04_SpawnOnceAndFinal(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, g := h.NewRun("spawned"), newGate(t)
	w := run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", g.wait()+done+"fine")))
	first := get[api.WaveSnapshot](t, run.Caller, "wave", "spawn", w)
	eventually(t, "the task runs", waveLimit, func() bool { return run.waveNow(t, w).Tasks[0].DispatchId != nil })
	dispatch := *run.waveNow(t, w).Tasks[0].DispatchId
	again := get[api.WaveSnapshot](t, run.Caller, "wave", "spawn", w, "--timeout", "5s")
	if again.Wave.Iteration != 1 || again.Wave.Status != "running" || *again.Wave.StartedAt != *first.Wave.StartedAt ||
		again.Wave.Policy.TimeoutSecs != first.Wave.Policy.TimeoutSecs || again.Tasks[0].Attempts != 1 || *again.Tasks[0].DispatchId != dispatch {
		t.Errorf("spawned again it is %+v", again)
	}
	g.open(t, 1)
	run.waveEnds(t, w, "completed")
	for _, line := range [][]string{{"spawn", w}, {"cancel", w}, {"retry", w}, {"task", "update", w, "a", "--goal", "x"}} {
		refused(t, run.Caller, "wave_final", append([]string{"wave"}, line...)...)
	}
	if r := run.CLI("wave", "status", w, "--exit-status"); r.Code != 0 || !strings.Contains(r.Stdout, dispatch) {
		t.Errorf("status: %+v", r)
	}
	for _, token := range []string{"a--b", "a.b", strings.Repeat("a", 129), "-a", "a-", "a b", "a*b", "a>b", "a/b"} {
		if r := run.json("wave", "create", "--goal", "g", "--id="+token); r.Code != 2 {
			t.Errorf("the wave %q: exit %d %s%s", token, r.Code, r.Stdout, r.Stderr)
		}
		p := refused(t, run.Caller, "plan_invalid", "wave", "create", "--tasks", taskFile(t, shTask(t, token, "x")))
		if !slices.Equal(findingCodes(p.Findings), []string{"token_invalid"}) {
			t.Errorf("the task %q: %+v", token, p.Findings)
		}
	}
	longest := strings.Repeat("a", 128)
	get[api.WaveResult](t, run.Caller, "wave", "create", "--id", longest, "--tasks", taskFile(t, shTask(t, longest, "x")))
}

// TestAcceptance_V05_Times: 0 and a billion are clamped, fractions, texts and
// negatives refused with the field named: by flags, in files and over REST.
func TestAcceptance_V05_Times(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("times")
	file := taskFile(t, shTask(t, "a", "x"))
	for given, want := range map[string]int64{"0": 1, "0s": 1, "90s": 90, "1000000000s": 604800, "-1s": 0, "1.5s": 0, "x": 0, "1e9": 0} {
		r := run.json("wave", "create", "--tasks", file, "--timeout="+given)
		if want == 0 {
			if p := r.problem(t, "invalid_argument"); p.Field != "timeout" {
				t.Errorf("--timeout %s: the field is %q", given, p.Field)
			}
			continue
		}
		if r.Code != 0 || decode[api.WaveResult](t, r.Stdout).Wave.Policy.TimeoutSecs != want {
			t.Errorf("--timeout %s: exit %d %s%s", given, r.Code, r.Stdout, r.Stderr)
		}
	}
	for given, want := range map[string]int64{"0": 1, "1000000000": 604800, "1e9": 604800, "-1": 0, "1.5": 0, `"x"`: 0} {
		policy := filepath.Join(t.TempDir(), "policy.json")
		must(t, os.WriteFile(policy, []byte(`{"timeout_secs":`+given+`}`), 0o600))
		r := run.json("wave", "create", "--tasks", file, "--policy", policy)
		if (r.Code == 0) != (want != 0) || r.Code != 0 && r.Code != 2 || r.Code == 0 && decode[api.WaveResult](t, r.Stdout).Wave.Policy.TimeoutSecs != want {
			t.Errorf("a policy's %s: exit %d %s%s", given, r.Code, r.Stdout, r.Stderr)
		}
		status, body := h.post(t, "/v1/waves", `{"run_id":"`+run.Run+`","policy":{"timeout_secs":`+given+`}}`)
		if (status == 201) != (want != 0) || want == 0 && (status != 400 || !strings.Contains(body, `"field":"policy.timeout_secs"`)) ||
			want != 0 && !strings.Contains(body, fmt.Sprintf(`"timeout_secs":%d`, want)) {
			t.Errorf("REST's %s: %d %s", given, status, body)
		}
		task := shTask(t, "a", "x")
		task.Timeout = json.RawMessage(given)
		r = run.json("wave", "plan", taskFile(t, task))
		plan := decode[api.WavePlan](t, r.Stdout)
		switch {
		case want == 0 && (r.Code != 1 || len(plan.Findings) != 1):
			t.Errorf("a task's %s: exit %d %s", given, r.Code, r.Stdout)
		case want != 0 && (r.Code != 0 || plan.Tasks[0].TimeoutSecs == nil || *plan.Tasks[0].TimeoutSecs != want):
			t.Errorf("a task's %s: exit %d %s", given, r.Code, r.Stdout)
		}
	}
}

// post sends a body over REST as any program may.
func (h *Hub) post(t testing.TB, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Endpoint().URL+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+h.Token())
	r.Header.Set("Content-Type", "application/json")
	resp, err := trusting.RoundTrip(r)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(text)
}
