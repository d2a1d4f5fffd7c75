package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/client"
)

const (
	resultDoc = `{"wave_id":"w1","run_id":"run_1","goal":"Port to v2","owner":"","status":"STATUS","ending":null,"iteration":1,` +
		`"policy":{"order":"dag","on_failure":"fail_fast","conflicts":"reject","concurrency":0,"timeout_secs":3600,"liveness_secs":90,"idle_secs":600,"retry":0,"max_iterations":3,"verify":"record","scope":"advisory","budget":{"cost_usd":0,"tokens":0},"mail":"final"},` +
		`"metadata":null,"total":2,"elapsed_ms":0,"downtime_ms":0,"checkpoint_dir":null,"exhausted":false,"raise_reason":null,"usage":{"cost_usd":1.5,"tokens":9,"unmetered":1},"created_at":"t","started_at":null,"completed_at":null}`
	waveTasksDoc = `[{"task_id":"a","hub_task_id":"task_1","goal":"g","status":"running","reason":null,"level":1,"sub":"","wave_index":0,"attempts":1,"dispatch_id":"dispatch_1","session_id":"w1--a","start":{"on":"windows","agent":"codex"},"dependencies":[],"started_at":null,"completed_at":null,"result":null,"result_data":null,"verify_result":null,"verified_by":null,"scope_violations":[],"usage":null,"waiting_for":null},` +
		`{"task_id":"b","hub_task_id":"task_2","goal":"g","status":"pending","reason":null,"level":2,"sub":"a","wave_index":1,"attempts":0,"dispatch_id":null,"session_id":"w1--b","worker":"w-1","dependencies":["a"],"started_at":null,"completed_at":null,"result":null,"result_data":null,"verify_result":null,"verified_by":null,"scope_violations":[],"usage":null,"waiting_for":"dependency"}]`
	mutationDoc = `{"request_id":"req_1","replayed":false}`
)

func snapshotDoc(status string) string {
	return `{"wave":` + strings.Replace(resultDoc, "STATUS", status, 1) + `,"tasks":` + waveTasksDoc +
		`,"summary":{"total":2,"by_status":{"pending":1,"running":1,"completed":0,"failed":0,"cancelled":0},"done":0,"merge_gate":"running","levels":[{"wave":1,"sub":"","status":"running","total":1,"completed":0}]},` +
		`"residuals":[{"dispatch_id":"dispatch_9","task_id":"a","state":"stop_unknown","server":"windows"}],"mutation":` + mutationDoc + `}`
}

func createdDoc(status string) string {
	return `{"wave":` + strings.Replace(resultDoc, "STATUS", status, 1) + `,"tasks":` + waveTasksDoc +
		`,"warnings":[{"code":"scope_undeclared","tasks":["a"],"detail":"D"}],"serialized":[{"path":"src/x","first":"a","second":"b","moved_to":"1b"}],"mutation":` + mutationDoc + `}`
}

func planDoc(valid, findings string) string {
	return `{"valid":` + valid + `,"findings":[` + findings + `],"levels":[{"wave":1,"sub":"","tasks":["a","b"]}],"serialized":[],"warnings":[]}`
}

// waveHub is a fake hub that knows the wave w1.
func waveHub(t *testing.T) *fakeHub {
	h := newHub(t)
	h.on("POST /v1/waves", 201, createdDoc("pending"))
	h.on("POST /v1/waves/plan", 200, planDoc("true", ""))
	h.on("GET /v1/waves/w1", 200, snapshotDoc("running"))
	for _, verb := range []string{"spawn", "cancel", "retry"} {
		h.on("POST /v1/waves/w1/"+verb, 200, snapshotDoc("running"))
	}
	h.on("POST /v1/waves/w1/tasks", 201, createdDoc("pending"))
	h.on("PATCH /v1/waves/w1/tasks/b", 200, createdDoc("running"))
	h.on("GET /v1/waves", 200, `{"waves":[`+strings.Replace(resultDoc, "STATUS", "failed", 1)+`],"next_cursor":"c2"}`)
	h.on("GET /v1/waves/w1/graph", 200, `{"wave_id":"w1","levels":[{"wave":1,"sub":"","tasks":["a"]}],"serialized":[],"edges":[]}`)
	return h
}

// file makes a file with the text and returns its path.
func (h *fakeHub) file(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), name)
	h.write(path, text, 0o600)
	return path
}

// sent demands that the last request had a route and, as JSON, a body.
func (h *fakeHub) sent(route, body string) {
	h.t.Helper()
	var got, want any
	last := h.last()
	if err := json.Unmarshal([]byte(body), &want); err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(last.body), &got); err != nil || last.route != route || !reflect.DeepEqual(got, want) {
		h.t.Errorf("%s %s, want %s %s: %v", last.route, last.body, route, body, err)
	}
}

func TestWaveVerbsSendWhatTheySay(t *testing.T) {
	h := waveHub(t)
	tasks, plan := h.file("tasks.json", "\ufeff[]\r\n"), h.file("tasks.md", "- [ ] T001 x")
	metadata := h.file("m.json", `{"ticket": 1e2}`)
	policy := h.file("p.yaml", "order: barrier\nretry: 1\ntimeout_secs: 5\nbudget: {tokens: 7}\n")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	here, kept := escaped(dir), escaped(filepath.Join(dir, "c"))
	source := `"source":{"format":"tasks-json","name":"tasks.json","text":"\ufeff[]\r\n"}`
	for _, c := range []struct {
		line        []string
		route, body string
	}{
		{[]string{"create", "--goal", "G", "--tasks", tasks}, "POST /v1/waves", `{"run_id":"run_1","goal":"G","policy":{},` + source + `}`},
		{
			[]string{"create", "--tasks", tasks, "--id", "abc123", "--owner", "me", "--metadata", metadata, "--checkpoint-dir", "c", "--replace", "--spawn",
				"--order", "dag", "--on-failure", "continue", "--conflicts", "serialize", "--concurrency", "4", "--timeout", "2h", "--liveness", "0", "--idle", "90s",
				"--retry", "2", "--max-iterations", "5", "--verify", "required", "--scope", "enforce", "--budget", "cost_usd=5,tokens=100000", "--mail", "all"},
			"POST /v1/waves",
			`{"run_id":"run_1","wave_id":"abc123","owner":"me","metadata":{"ticket":100},"checkpoint_dir":"` + kept + `","replace":true,"spawn":true,` + source + `,
			"policy":{"order":"dag","on_failure":"continue","conflicts":"serialize","concurrency":4,"timeout_secs":7200,"liveness_secs":0,"idle_secs":90,"retry":2,
			"max_iterations":5,"verify":"required","scope":"enforce","budget":{"cost_usd":5,"tokens":100000},"mail":"all"}}`,
		},
		{[]string{"create", "--goal", "G", "--policy", policy, "--retry", "0", "--timeout", "9s"}, "POST /v1/waves", `{"run_id":"run_1","goal":"G","policy":{"order":"barrier","timeout_secs":9,"budget":{"tokens":7}}}`},
		{
			[]string{"create", "--from", plan, "--format", "spec-kit", "--agent", "codex", "--on", "windows", "--repo", "demo", "--worktree", "new-top-level"}, "POST /v1/waves",
			`{"run_id":"run_1","policy":{},"source":{"format":"spec-kit","name":"tasks.md","text":"- [ ] T001 x"},"defaults":{"start":{"agent":"codex","on":"windows","repo":"demo","worktree":"new-top-level"}}}`,
		},
		{[]string{"create", "--goal", "G", "--worker", "w-1@windows"}, "POST /v1/waves", `{"run_id":"run_1","goal":"G","policy":{},"defaults":{"worker":"w-1@windows"}}`},
		{[]string{"create", "--goal", "G", "--agent", "sh", "--worktree", "current"}, "POST /v1/waves", `{"run_id":"run_1","goal":"G","policy":{},"defaults":{"start":{"agent":"sh","worktree":"path:` + here + `"}}}`},
		{[]string{"plan", tasks, "--conflicts", "allow"}, "POST /v1/waves/plan", `{"policy":{"conflicts":"allow"},"source":{"format":"auto","name":"tasks.json","text":"\ufeff[]\r\n"}}`},
		{[]string{"plan", plan, "--from-format", "gsd", "--agent", "sh"}, "POST /v1/waves/plan", `{"policy":{},"defaults":{"start":{"agent":"sh"}},"source":{"format":"gsd","name":"tasks.md","text":"- [ ] T001 x"}}`},
		{[]string{"spawn", "w1"}, "POST /v1/waves/w1/spawn", `{}`},
		{[]string{"spawn", "w1", "--timeout", "0"}, "POST /v1/waves/w1/spawn", `{"timeout_secs":0}`},
		{[]string{"spawn", "w1", "--timeout", "1000000000s"}, "POST /v1/waves/w1/spawn", `{"timeout_secs":1000000000}`},
		{[]string{"cancel", "w1"}, "POST /v1/waves/w1/cancel", `{"wait_ms":15000}`},
		{[]string{"cancel", "w1", "--reason", "no", "--timeout", "1500ms"}, "POST /v1/waves/w1/cancel", `{"reason":"no","wait_ms":1500}`},
		{[]string{"retry", "w1"}, "POST /v1/waves/w1/retry", `{}`},
		{[]string{"retry", "w1", "--max-iterations", "5", "--reason", "R", "--budget", "tokens=5", "--timeout", "1m"}, "POST /v1/waves/w1/retry", `{"max_iterations":5,"reason":"R","budget":{"tokens":5},"timeout_secs":60}`},
		{
			[]string{"task", "add", "w1", "abc123", "--goal", "G", "--deps", "abc124,b", "--write-scope", "docs", "--read-scope", "src", "--workspace", "x", "--handoff-path", "h",
				"--verify-cmd", "v", "--timeout", "5m", "--agent", "sh", "--name", "n", "--worktree", "new-top-level", "--repo", "r", "--base", "main", "--setup", "skip"},
			"POST /v1/waves/w1/tasks",
			`{"task":{"task_id":"abc123","goal":"G","dependencies":["abc124","b"],"write_scope":["docs"],"read_scope":["src"],"workspace":"x","handoff_path":"h","verify_cmd":"v","timeout_secs":300,
			"start":{"agent":"sh","name":"n","worktree":"new-top-level","repo":"r","base":"main","setup":"skip"}}}`,
		},
		{[]string{"task", "add", "w1", "c", "--goal", "G", "--write-scope="}, "POST /v1/waves/w1/tasks", `{"task":{"task_id":"c","goal":"G","write_scope":[]}}`},
		{[]string{"task", "update", "w1", "b", "--status", "completed", "--reason", "R"}, "PATCH /v1/waves/w1/tasks/b", `{"status":"completed","reason":"R"}`},
		{
			[]string{"task", "update", "w1", "b", "--goal", "G", "--deps=", "--write-scope=", "--workspace", "x", "--worker", "w-2", "--timeout", "0"}, "PATCH /v1/waves/w1/tasks/b",
			`{"goal":"G","dependencies":[],"write_scope":[],"workspace":"x","worker":"w-2","timeout_secs":0}`,
		},
	} {
		wavehub(t, append([]string{"--run", "run_1", "wave"}, c.line...)...).want(t, 0)
		h.sent(c.route, c.body)
	}
	wavehub(t, "wave", "list", "--status", "running", "--run", "run_1", "--cursor", "c").want(t, 0, "w1", "failed", "more with: --cursor c2")
	if got := h.last(); got.query != "status=running&run=run_1&cursor=c" {
		t.Errorf("query %q", got.query)
	}
	for _, r := range h.requests() {
		if strings.HasPrefix(r.route, "GET /v1/ids") {
			t.Errorf("a token was taken for an abbreviation: %s", r.route)
		}
	}
}

// escaped is a path within a JSON text.
func escaped(path string) string { return strings.ReplaceAll(path, `\`, `\\`) }

func TestWavesFromStdin(t *testing.T) {
	h := waveHub(t)
	wavehubIn(t, t.Context(), "[1]", "wave", "create", "--run", "run_1", "--tasks", "-").want(t, 0)
	h.sent("POST /v1/waves", `{"run_id":"run_1","policy":{},"source":{"format":"tasks-json","name":"-","text":"[1]"}}`)
	wavehubIn(t, t.Context(), "[1]", "wave", "plan", "-").want(t, 0)
	wavehubIn(t, t.Context(), "\xff", "wave", "plan", "-").want(t, 2, "FILE: - is not valid UTF-8")
}

// Tokens may hold what has a meaning in an address.
func TestWaveTokensInAddresses(t *testing.T) {
	h := waveHub(t)
	h.fail("GET /v1/waves/a%41?#", 404, "wave_not_found")
	wavehub(t, "wave", "status", "a%41?#").want(t, 3, "(wave_not_found)")
}

func TestWaveUsageErrors(t *testing.T) {
	h := waveHub(t)
	tasks := h.file("t.json", "[]")
	policies := []string{"order: dag\nnope: 1", "retry: 1.5", "order: dag\norder: dag", "[]", "{", "timeout_secs: x"}
	var lines [][]string
	for _, text := range policies {
		lines = append(lines, []string{"create", "--goal", "G", "--policy", h.file("p", text)})
	}
	for _, line := range []string{
		"", "create", "create x", "plan", "plan a b", "run", "spawn", "spawn a b", "status", "cancel", "retry", "graph", "task", "task add w1", "task add w1 t", "task update w1",
		"task update w1 b", "task add w1 t --goal g --worker w --agent sh", "task add w1 t --goal g --repo r", "task add w1 t --goal g --timeout 1.5s", "task add w1 t --goal g --timeout -1s",
		"create --goal G --format gsd", "create --goal G --replace", "create --tasks - --metadata -", "create --goal G --worker w --on p",
		"create --goal G --timeout -1s", "create --goal G --timeout 1.5s", "create --goal G --timeout x", "create --goal G --timeout 1e9", "create --goal G --liveness 100ms", "create --goal G --idle -1s",
		"create --goal G --concurrency -1", "create --goal G --retry -1", "create --goal G --max-iterations 0", "create --goal G --retry 1.5", "create --goal G --id=",
		"create --goal G --budget 5", "create --goal G --budget cost=5", "create --goal G --budget cost_usd=x", "create --goal G --budget cost_usd=-1", "create --goal G --budget cost_usd=NaN",
		"create --goal G --budget tokens=1.5", "create --goal G --budget tokens=1,tokens=2", "create --goal G --budget cost_usd=inf", "create --from-checkpoint x --order dag", "create --from-checkpoint /nonexistent",
		"create --goal G --metadata " + tasks, "create --goal G --metadata /nonexistent", "create --tasks " + tasks + " --from " + tasks, "create --from " + tasks + " --format nope", "create --tasks /nonexistent",
		"plan " + tasks + " --format gsd", "plan " + tasks + " --format nope", "plan " + tasks + " --from-format nope", "graph w1 --format nope", "spawn w1 --timeout 0.5s", "spawn w1 --timeout -5s",
		"retry w1 --max-iterations 5", "retry w1 --reason R", "retry w1 --max-iterations 0 --reason R", "retry w1 --timeout 1ms", "cancel w1 --timeout 16s", "cancel w1 --timeout -1s",
	} {
		lines = append(lines, strings.Fields(line))
	}
	for _, line := range lines {
		r := wavehub(t, append([]string{"--run", "run_1", "wave"}, line...)...)
		if r.code != 2 || r.out != "" || !strings.Contains(r.errout, "(invalid_argument)") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", line, r.code, r.out, r.errout)
		}
	}
	if n := len(h.requests()); n != 0 {
		t.Errorf("%d requests were sent: %v", n, h.last())
	}
}

const findingsDoc = `{"code":"dependency_unknown","tasks":["b"],"detail":"there is no task c","line":4},{"code":"dependency_cycle","tasks":["a","b"],"detail":"a, b, a"}`

func TestFindingsAreAllPrinted(t *testing.T) {
	h := waveHub(t)
	h.handle("POST /v1/waves", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 400, "application/problem+json", `{"code":"plan_invalid","title":"T","status":400,"retry":"never","findings":[`+findingsDoc+`]}`)
	})
	r := wavehub(t, "--run", "run_1", "wave", "create", "--tasks", h.file("t.json", "[]"))
	r.want(t, 2, "(plan_invalid)", "line 4: dependency_unknown [b]: there is no task c", "dependency_cycle [a, b]: a, b, a")
	r = wavehub(t, "--json", "--run", "run_1", "wave", "create", "--tasks", h.file("t.json", "[]"))
	var p client.Problem
	if err := json.Unmarshal([]byte(r.errout), &p); err != nil || len(p.Findings) != 2 || p.Findings[0].Line != 4 || p.Findings[1].Tasks[1] != "b" {
		t.Errorf("%v: %s", err, r.errout)
	}
}

func TestPlanExitsByItsVerdict(t *testing.T) {
	h := waveHub(t)
	tasks := h.file("t.json", "[]")
	wavehub(t, "wave", "plan", tasks).want(t, 0, "a", "b")
	h.on("POST /v1/waves/plan", 200, planDoc("false", findingsDoc))
	wavehub(t, "wave", "plan", tasks).want(t, 1, "dependency_unknown", "there is no task c")
	for _, args := range [][]string{{"--json"}, {"--format", "json"}} {
		r := wavehub(t, append([]string{"wave", "plan", tasks}, args...)...)
		if r.want(t, 1); r.out != planDoc("false", findingsDoc)+"\n" {
			t.Errorf("%q prints %s", args, r.out)
		}
	}
}

func TestWaveStatusForPeople(t *testing.T) {
	h := waveHub(t)
	r := wavehub(t, "wave", "status", "w1", "--exit-status")
	r.want(t, 0, "w1  running  iteration 1 of 3  run run_1", "Port to v2", "1.5 USD, 9 tokens, 1 attempt unmetered", "1\ta\trunning\tcodex@windows\t1\tdispatch_1\t-\t-",
		"2a\tb\tpending\tw-1\t0\t-\tdependency\t-", "0 of 2 completed, 1 running, 1 pending", "left over: dispatch_9 of a on windows, stop_unknown", "next: wavehub wave watch w1")
	for status, code := range map[string]int{"failed": 1, "cancelled": 1, "completed": 0, "pending": 0} {
		h.on("GET /v1/waves/w1", 200, snapshotDoc(status))
		wavehub(t, "wave", "status", "w1", "--exit-status").want(t, code)
		wavehub(t, "wave", "status", "w1", "--exit-status", "--json").want(t, code)
		wavehub(t, "wave", "status", "w1").want(t, 0)
	}
}

// The id is the first word, for scripts.
func TestCreateBeginsWithTheID(t *testing.T) {
	waveHub(t)
	r := wavehub(t, "--run", "run_1", "wave", "create", "--goal", "G")
	r.want(t, 0, "serialized: a before b, which moves to 1b: both write src/x", "warning: scope_undeclared [a]: D", "next: wavehub wave spawn w1")
	if !strings.HasPrefix(r.out, "w1  pending  2 tasks") {
		t.Errorf("stdout %q", r.out)
	}
}

func TestRunCreatesSpawnsAndFollows(t *testing.T) {
	h := waveHub(t)
	h.on("POST /v1/waves", 201, createdDoc("running"))
	serveLog(h, []string{"wave_started", "wave_failed"}, []string{"running", "failed"})
	tasks := h.file("tasks.json", "[]")
	wavehub(t, "--run", "run_1", "wave", "run", tasks, "--exit-status", "--timeout", "2h").want(t, 1, "wave w1 runs") // the time is the wave's, and not that of watching it
	if first := h.requests()[0]; first.route != "POST /v1/waves" || !strings.Contains(first.body, `"spawn":true`) || !strings.Contains(first.body, `"format":"auto"`) || !strings.Contains(first.body, `"timeout_secs":7200`) {
		t.Errorf("%s %s", first.route, first.body)
	}
	h.fail("POST /v1/waves", 400, "plan_invalid")
	wavehub(t, "--run", "run_1", "wave", "run", tasks).want(t, 2, "(plan_invalid)")
}

// checkpoint makes a checkpoint folder with some levels.
func checkpoint(t *testing.T, dir string, levels ...string) string {
	t.Helper()
	files := map[string]string{"graph.json": `{"g":1}`, "state.json": `{"s":1}`, "MAX_ITERATIONS_REACHED": "x", "waves/nine/done.json": "no", "waves/07/done.json": "no", "waves/3/failures.json": "no"}
	for _, level := range levels {
		files["waves/"+level+"/done.json"] = "done " + level
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCheckpointFoldersAreSentAsTheyAre(t *testing.T) {
	h := waveHub(t)
	above := t.TempDir()
	dir := checkpoint(t, filepath.Join(above, "w1"), "1", "12")
	want := `{"run_id":"run_1","policy":{},"checkpoint":{"graph":"{\"g\":1}","state":"{\"s\":1}","done":{"1":"done 1","12":"done 12"},"exhausted":true}}`
	for _, from := range []string{dir, above} {
		wavehub(t, "--run", "run_1", "wave", "create", "--from-checkpoint", from).want(t, 0)
		h.sent("POST /v1/waves", want)
	}
	checkpoint(t, filepath.Join(above, "w2"))
	wavehub(t, "--run", "run_1", "wave", "create", "--from-checkpoint", above).want(t, 2, "holds those of 2 waves")
	wavehub(t, "--run", "run_1", "wave", "create", "--from-checkpoint", t.TempDir()).want(t, 2, "there is no graph.json")
}

func TestServeTakesTheLivenessOfWaves(t *testing.T) {
	newHub(t)
	for _, value := range []string{"-1s", "1.5s", "x"} {
		wavehub(t, "serve", "--wave-liveness", value).want(t, 2, "--wave-liveness takes")
	}
	cmd := (&app{}).serveCommand()
	if err := cmd.Flags().Parse([]string{"--wave-liveness", "2m"}); err != nil {
		t.Fatal(err)
	}
	if given, err := serveFlags(cmd); err != nil || given["wave_liveness_secs"] != 120 {
		t.Errorf("%v %v", given, err)
	}
}
