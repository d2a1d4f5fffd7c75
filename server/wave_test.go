package server

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/openapi/api"
)

// entryOf is a task of sh in a folder of the fixture, in JSON; more is further fields.
func entryOf(token, more string) string {
	return `{"task_id":"` + token + `","goal":"do ` + token + `","start":{"agent":"fake","worktree":"path:/` + token + `"},"write_scope":["` + token + `"]` + more + `}`
}

// newWave creates a pending wave of the entries.
func (w *world) newWave(id string, entries ...string) response {
	w.t.Helper()
	run := w.post(201, "/v1/runs", `{"objective":"o","bind":"none"}`).text("run", "run_id")
	return w.post(201, "/v1/waves", `{"run_id":"`+run+`","wave_id":"`+id+`","goal":"G","tasks":[`+strings.Join(entries, ",")+`]}`)
}

// codes are those of the findings of a plan or a problem, sorted.
func (r response) codes() []string {
	var out []string
	for _, f := range r.at("findings").([]any) {
		out = append(out, f.(map[string]any)["code"].(string))
	}
	slices.Sort(out)
	return out
}

func TestAcceptance_V02_FindingsByREST(t *testing.T) {
	w := newWorld(t)
	run := w.post(201, "/v1/runs", `{"objective":"o","bind":"none"}`).text("run", "run_id")
	for name, c := range map[string]struct {
		tasks []string
		codes []string
		named string // in a detail
	}{
		"self cycle":       {[]string{entryOf("a", `,"dependencies":["a"]`)}, []string{"dependency_cycle"}, "a"},
		"2-cycle":          {[]string{entryOf("a", `,"dependencies":["b"]`), entryOf("b", `,"dependencies":["a"]`)}, []string{"dependency_cycle"}, "b"},
		"3-cycle":          {[]string{entryOf("a", `,"dependencies":["c"]`), entryOf("b", `,"dependencies":["a"]`), entryOf("c", `,"dependencies":["b"]`)}, []string{"dependency_cycle"}, "c"},
		"unknown":          {[]string{entryOf("a", `,"dependencies":["nobody"]`)}, []string{"dependency_unknown"}, "nobody"},
		"duplicate":        {[]string{entryOf("a", ``), entryOf("a", ``)}, []string{"task_duplicate"}, ""},
		"all of it":        {[]string{entryOf("a", `,"dependencies":["nobody"]`), entryOf("b", `,"dependencies":["b"]`), entryOf("c--d", ``)}, []string{"dependency_cycle", "dependency_unknown", "token_invalid"}, ""},
		"negative time":    {[]string{entryOf("a", `,"timeout_secs":-1`)}, []string{"timeout_invalid"}, ""},
		"no such agent":    {[]string{`{"task_id":"a","goal":"g","start":{"agent":"nobody","worktree":"path:/a"},"write_scope":[]}`}, []string{"agent_unconfigured"}, ""},
		"no placement":     {[]string{`{"task_id":"a","goal":"g","write_scope":[]}`}, []string{"placement_invalid"}, ""},
		"two placements":   {[]string{`{"task_id":"a","goal":"g","worker":"w-1","start":{"agent":"fake","worktree":"path:/a"},"write_scope":[]}`}, []string{"placement_invalid"}, ""},
		"unknown worker":   {[]string{`{"task_id":"a","goal":"g","worker":"w-9","write_scope":[]}`}, []string{"worker_not_found"}, ""},
		"escaping scope":   {[]string{`{"task_id":"a","goal":"g","worker":"w-1","write_scope":["../x"]}`}, []string{"scope_invalid"}, ""},
		"two that clash":   {[]string{entryOf("a", ``), `{"task_id":"b","goal":"g","worker":"w-1","write_scope":["A/"]}`}, []string{"scope_conflict"}, ""},
		"no such peer":     {[]string{`{"task_id":"a","goal":"g","start":{"on":"nobody","agent":"sh","worktree":"path:/a"},"write_scope":[]}`}, []string{"peer_not_found"}, ""},
		"nothing to check": {[]string{entryOf("a", ``)}, []string{"verify_command_missing"}, ""},
	} {
		policy := `{}`
		if name == "nothing to check" {
			policy = `{"verify":"required"}`
		}
		body := `"tasks":[` + strings.Join(c.tasks, ",") + `],"policy":` + policy
		before := w.commits.Load()
		plan := w.post(200, "/v1/waves/plan", `{`+body+`}`)
		if plan.at("valid") != false || !slices.Equal(plan.codes(), c.codes) || !strings.Contains(plan.raw, c.named) {
			t.Errorf("%s: planned as %s", name, plan.raw)
		}
		refused := w.post(400, "/v1/waves", `{"run_id":"`+run+`","wave_id":"w1",`+body+`}`)
		if refused.code() != "plan_invalid" || !slices.Equal(refused.codes(), c.codes) {
			t.Errorf("%s: refused as %s", name, refused.raw)
		}
		if w.commits.Load() != before {
			t.Errorf("%s: something was stored", name)
		}
	}
	if got := w.get(200, "/v1/waves"); len(got.at("waves").([]any)) != 0 {
		t.Errorf("there are waves: %s", got.raw)
	}
	twice := w.newWave("twice", entryOf("root", ``), entryOf("leaf", `,"dependencies":["root","root"]`))
	if deps := twice.at("tasks").([]any)[1].(map[string]any)["dependencies"]; fmt.Sprint(deps) != "[root]" {
		t.Errorf("the dependencies are %v", deps)
	}
}

func TestAcceptance_V04_TokensByREST(t *testing.T) {
	w := newWorld(t)
	run := w.post(201, "/v1/runs", `{"objective":"o","bind":"none"}`).text("run", "run_id")
	for _, token := range []string{"a--b", "a.b", strings.Repeat("a", 129), "-a", "a-", "a b", "a*", "a>", "a/b", "", "ä"} {
		plan := w.post(200, "/v1/waves/plan", `{"tasks":[{"task_id":"`+token+`","goal":"g","start":{"agent":"fake","worktree":"path:/x"},"write_scope":[]}]}`)
		if plan.at("valid") != false || !slices.Equal(plan.codes(), []string{"token_invalid"}) {
			t.Errorf("the task %q: %s", token, plan.raw)
		}
		if token == "" {
			continue // a wave without a name gets one
		}
		before := w.commits.Load()
		got := w.do(request{method: "POST", path: "/v1/waves", body: `{"run_id":"` + run + `","wave_id":"` + token + `"}`, token: w.operator})
		if got.status != 400 || w.commits.Load() != before {
			t.Errorf("the wave %q: %d %s", token, got.status, got.raw)
		}
	}
	for _, token := range []string{"a%41?#[]", strings.Repeat("a", 128), `a"b\c`} {
		quoted, err := json.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		in := strings.Trim(string(quoted), `"`)
		w.newWave(in, strings.Replace(entryOf("x", ``), `"task_id":"x"`, `"task_id":`+string(quoted), 1))
		shown := w.get(200, "/v1/waves/"+url.PathEscape(token))
		if shown.text("wave", "wave_id") != token || shown.at("tasks").([]any)[0].(map[string]any)["session_id"] != token+"--"+token {
			t.Errorf("%q is shown as %s", token, shown.raw)
		}
		got := w.must(200, request{method: "PATCH", path: "/v1/waves/" + url.PathEscape(token) + "/tasks/" + url.PathEscape(token), body: `{"goal":"else"}`, token: w.operator})
		if goal := got.at("tasks").([]any)[0].(map[string]any)["goal"]; goal != "else" {
			t.Errorf("%q: the goal is %v", token, goal)
		}
	}
}

// times are what timeout_secs may be given as, and what becomes of it: 0 is refused.
var times = map[string]int64{
	`0`: 1, `1`: 1, `1e9`: 604800, `1000000000`: 604800, `604801`: 604800, `90.0`: 90, `9e1`: 90, `-1`: 0, `1.5`: 0, `"x"`: 0, `"1"`: 0, `-0.5`: 0, `null`: 0, `[]`: 0, `true`: 0, `1e19`: 0,
}

func TestAcceptance_V05_TimesByREST(t *testing.T) {
	w := newWorld(t)
	run := w.post(201, "/v1/runs", `{"objective":"o","bind":"none"}`).text("run", "run_id")
	n := 0
	for given, want := range times {
		n++
		before := w.commits.Load()
		got := w.do(request{method: "POST", path: "/v1/waves", body: fmt.Sprintf(`{"run_id":"%s","wave_id":"w%d","policy":{"timeout_secs":%s}}`, run, n, given), token: w.operator})
		switch {
		case want == 0 && (got.code() != "invalid_argument" || got.text("field") != "policy.timeout_secs" || w.commits.Load() != before):
			t.Errorf("%s: %d %s", given, got.status, got.raw)
		case want != 0 && (got.status != 201 || got.at("wave", "policy", "timeout_secs") != float64(want)):
			t.Errorf("%s becomes %s", given, got.raw)
		}
		for path, field := range map[string]string{"/v1/waves/plan": "policy.timeout_secs", "/v1/waves/none/spawn": "timeout_secs", "/v1/waves/none/retry": "timeout_secs"} {
			body := `{"timeout_secs":` + given + `}`
			if path == "/v1/waves/plan" {
				body = `{"policy":` + body + `}`
			}
			got := w.do(request{method: "POST", path: path, body: body, token: w.operator})
			if refused := got.code() == "invalid_argument"; refused != (want == 0) || refused && got.text("field") != field {
				t.Errorf("%s %s: %d %s", path, given, got.status, got.raw)
			}
		}
	}
}

// TestTimesOfTasks: a negative one stays, for the plan to find.
func TestTimesOfTasks(t *testing.T) {
	for given, want := range times {
		c := &call{raw: []byte(`{"task_id":"a","goal":"g","timeout_secs":` + given + `}`)}
		var err error
		if c.value, err = parseStrict(c.raw); err != nil {
			t.Fatal(err)
		}
		b, err := decode[api.WaveEntry](c)
		switch got := waveEntry(b).TimeoutSecs; {
		case given == `-1` && (err != nil || got != -1), want != 0 && (err != nil || got != want), want == 0 && err == nil && got > 0:
			t.Errorf("%s becomes %d %v", given, got, err)
		}
	}
}

func TestWavePolicyBeginsWithTheDefaults(t *testing.T) {
	got, err := wavePolicy(api.WavePolicyInput{}, 17)
	if err != nil || got != hub.DefaultWavePolicy(17) {
		t.Errorf("%+v %v", got, err)
	}
	zero, secs := int64(0), int64(1_000_000_000)
	got, err = wavePolicy(api.WavePolicyInput{
		Order: "barrier", OnFailure: "continue", Conflicts: "allow", Verify: "required", Scope: "enforce", Mail: "all", Concurrency: 2, Retry: 3,
		MaxIterations: 9, TimeoutSecs: &secs, LivenessSecs: &zero, IdleSecs: &zero, Budget: &api.WaveBudget{CostUsd: new(1.5), Tokens: new(int64(7))},
	}, 17)
	want := hub.WavePolicy{
		Order: "barrier", OnFailure: "continue", Conflicts: "allow", Concurrency: 2, TimeoutSecs: hub.MaxWaveTime, Retry: 3, MaxIterations: 9,
		Verify: "required", Scope: "enforce", Budget: hub.Budget{CostUSD: 1.5, Tokens: 7}, Mail: "all",
	}
	if err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
}

// What says two things at once, or what is no level, is refused before anything.
func TestWaveInputsThatContradict(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ path, body, field string }{
		{"/v1/waves/plan", `{"tasks":[],"source":{"text":""}}`, "source"},
		{"/v1/waves", `{"run_id":"r","tasks":[],"source":{"text":""}}`, "source"},
		{"/v1/waves", `{"run_id":"r","checkpoint":{"graph":"{}"},"policy":{"retry":1}}`, "policy"},
		{"/v1/waves", `{"run_id":"r","checkpoint":{"graph":"{}","done":{"01":"x"}}}`, "checkpoint.done.01"},
		{"/v1/waves", `{"run_id":"r","checkpoint":{"graph":"{}","done":{"0":"x"}}}`, "checkpoint.done.0"},
		{"/v1/waves", `{"run_id":"r","metadata":[]}`, "metadata"},
		{"/v1/waves", `{"run_id":"r","metadata":"{}"}`, "metadata"},
		{"/v1/waves/plan", `{"policy":{"nope":1}}`, "policy.nope"},
		{"/v1/waves/plan", `{"tasks":[{"task_id":"a","goal":"g","timeout":1}]}`, "tasks.0.timeout"},
		{"/v1/waves/plan", `{"tasks":[{"task_id":"a","goal":"g","timeout_secs":1.5}]}`, "tasks.0.timeout_secs"},
		{"/v1/waves/plan", `{"source":{"text":"[]","format":"xml"}}`, "source.format"},
	} {
		if got := w.post(400, c.path, c.body); got.code() != "invalid_argument" || got.text("field") != c.field {
			t.Errorf("%s %s: %s", c.path, c.body, got.raw)
		}
	}
}

func TestEntriesKeepWhatIsNotKnown(t *testing.T) {
	for raw, want := range map[string][]string{`{"task_id":"a","goal":"g"}`: nil, `{"task_id":"a","goal":"g","write_scope":[]}`: {}, `{"task_id":"a","goal":"g","write_scope":["x"]}`: {"x"}} {
		var in api.WaveEntry
		if err := json.Unmarshal([]byte(raw), &in); err != nil {
			t.Fatal(err)
		}
		e := waveEntry(in)
		if (e.WriteScope == nil) != (want == nil) || !slices.Equal(e.WriteScope, want) {
			t.Errorf("%s: %#v", raw, e.WriteScope)
		}
		back, err := json.Marshal(entryShown(e))
		if err != nil || len(back) != len(raw) {
			t.Errorf("%s goes out as %s", raw, back)
		}
	}
}

func TestWaveTasksAsShown(t *testing.T) {
	bare := waveTask(wave.TaskShown{WaveRow: hub.WaveRow{WaveTask: hub.WaveTask{Wave: "w1", Level: 2, Sub: 1, Task: "task_1", Entry: hub.WaveEntry{Token: "a", Goal: strings.Repeat("é", 1000), Worker: "w-1"}}}, Status: hub.WavePending})
	if bare.DispatchId != nil || bare.Usage != nil || bare.Reason != nil || bare.Result != nil || bare.VerifyResult != nil || bare.WaitingFor != nil || bare.WriteScope != nil || bare.Start != nil {
		t.Errorf("%+v", bare)
	}
	if bare.Sub != "a" || bare.SessionId != "w1--a" || len(bare.Goal) > maxShownGoal || bare.Dependencies == nil || bare.ScopeViolations == nil {
		t.Errorf("%+v", bare)
	}
	full := waveTask(wave.TaskShown{
		WaveRow: hub.WaveRow{
			WaveTask: hub.WaveTask{Entry: hub.WaveEntry{Start: &hub.WaveStart{On: "p", Terminal: "term_1"}, WriteScope: []string{}}, WaveProgress: hub.WaveProgress{StartedAt: 1}},
			Result:   "fine", Attempts: 2, Dispatch: &hub.Dispatch{ID: "dispatch_1", Findings: &hub.Findings{VerifyResult: "passed", VerifiedBy: "hub", Violations: []string{"x"}}},
		},
		Status: hub.WaveCompleted, Reason: "R", WaitingFor: "peer", Usage: &wave.Usage{Tokens: 3},
	})
	if *full.DispatchId != "dispatch_1" || *full.VerifyResult != "passed" || *full.VerifiedBy != "hub" || full.ScopeViolations[0] != "x" || full.Usage.Tokens != 3 ||
		*full.Reason != "R" || *full.WaitingFor != "peer" || *full.Result != "fine" || full.Start.Terminal != "term_1" || full.WriteScope == nil || full.StartedAt == nil {
		t.Errorf("%+v", full)
	}
}

func TestSummaryCountsEveryStatus(t *testing.T) {
	got := waveSummary(wave.Summary{Total: 3, ByStatus: map[hub.WaveStatus]int{hub.WaveCompleted: 2, hub.WaveFailed: 1}, Gate: hub.WaveFailed})
	if len(got.ByStatus) != 5 || got.ByStatus["pending"] != 0 || got.ByStatus["completed"] != 2 || got.Done != 2 || got.MergeGate != "failed" || got.Levels == nil {
		t.Errorf("%+v", got)
	}
}

// TestWavesAreListed newest first, by status and Run, in pages.
func TestWavesAreListed(t *testing.T) {
	w := newWorld(t)
	runs := []string{}
	for range 2 {
		runs = append(runs, w.post(201, "/v1/runs", `{"objective":"o","bind":"none"}`).text("run", "run_id"))
	}
	w.update(func(tx store.Tx) error {
		for i := range 5 {
			one := hub.Wave{
				ID: hub.WaveID(fmt.Sprintf("w%d", i)), UID: hub.WaveUID(fmt.Sprintf("wave_%d", i)), Run: hub.RunID(runs[i%2]), Status: hub.WaveStatuses[i%2],
				Policy: hub.DefaultWavePolicy(90), Ending: &hub.WaveEnding{As: hub.WaveFailed, Reason: hub.EndTimeout},
			}
			if err := tx.PutWave(one); err != nil {
				return err
			}
		}
		return nil
	})
	names := func(r response) (out []string) {
		for _, v := range r.at("waves").([]any) {
			out = append(out, v.(map[string]any)["wave_id"].(string))
		}
		return out
	}
	first := w.get(200, "/v1/waves?limit=3")
	if !slices.Equal(names(first), []string{"w4", "w3", "w2"}) {
		t.Errorf("%s", first.raw)
	}
	cursor := first.text("next_cursor")
	if second := w.get(200, "/v1/waves?limit=3&cursor="+cursor); !slices.Equal(names(second), []string{"w1", "w0"}) || second.at("next_cursor") != nil {
		t.Errorf("%s", second.raw)
	}
	if got := w.get(400, "/v1/waves?status=running&cursor="+cursor); got.code() != "cursor_invalid" {
		t.Errorf("a cursor of other filters: %s", got.raw)
	}
	for query, want := range map[string][]string{"status=running": {"w3", "w1"}, "run=" + runs[0]: {"w4", "w2", "w0"}, "status=failed": nil, "status=pending&run=" + runs[1]: nil} {
		if got := w.get(200, "/v1/waves?"+query); !slices.Equal(names(got), want) {
			t.Errorf("%s: %s", query, got.raw)
		}
	}
	if got := w.get(404, "/v1/waves?run="+string(hub.NewRunID())); got.code() != "run_not_found" {
		t.Errorf("%s", got.raw)
	}
}

// A replay is the same wave, shown as it is; another body under the key is refused.
func TestWavesAreCreatedOnce(t *testing.T) {
	w := newWorld(t)
	run := w.post(201, "/v1/runs", `{"objective":"o","bind":"none"}`).text("run", "run_id")
	key := string(hub.NewRequestID())
	create := func(goal string) response {
		body := `{"run_id":"` + run + `","goal":"` + goal + `","tasks":[` + entryOf("a", ``) + `]}`
		return w.do(request{method: "POST", path: "/v1/waves", body: body, token: w.operator, key: key})
	}
	first, again := create("G"), create("G")
	if first.status != 201 || again.status != 201 || strings.Replace(again.raw, `"replayed":true`, `"replayed":false`, 1) != first.raw {
		t.Errorf("%d %s\n%d %s", first.status, first.raw, again.status, again.raw)
	}
	if other := create("H"); other.code() != "request_mismatch" {
		t.Errorf("%s", other.raw)
	}
	id := first.text("wave", "wave_id")
	if got := w.get(200, "/v1/requests/"+key); got.text("response", "wave_id") != id {
		t.Errorf("the record: %s", got.raw)
	}
	if got := w.get(200, "/v1/waves/"+id+"/graph"); got.text("wave_id") != id || len(got.at("levels").([]any)) != 1 {
		t.Errorf("the graph: %s", got.raw)
	}
	taken := w.do(request{method: "POST", path: "/v1/waves", body: `{"run_id":"` + run + `","wave_id":"` + id + `"}`, token: w.operator})
	if taken.code() != "wave_exists" {
		t.Errorf("a taken name: %s", taken.raw)
	}
}

func TestLargeWaveBodies(t *testing.T) {
	w := newWorld(t)
	anonymous := request{method: "POST", path: "/v1/waves/plan", body: `{"x":`}
	if got := w.do(anonymous); got.code() != "invalid_token" {
		t.Errorf("a body of nobody: %s", got.raw)
	}
	reads := anonymous
	reads.token = w.reader
	if got := w.do(reads); got.code() != "out_of_scope" {
		t.Errorf("a body of a reader: %s", got.raw)
	}
	if got := w.post(413, "/v1/waves/w1/spawn", `{"x":"`+strings.Repeat("y", otherBody)+`"}`); got.code() != "too_large" {
		t.Errorf("%s", got.raw)
	}
	values := `{"tasks":[` + strings.Repeat(`0,`, maxWaveValues) + `0]}`
	if got := w.post(400, "/v1/waves/plan", values); got.code() != "invalid_json" || !strings.Contains(got.raw, "values") {
		t.Errorf("%s", got.raw)
	}
}

// largeWave is the body of a wave of n tasks in chains, 1.5 edges each.
func largeWave(run string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"run_id":"%s","goal":"large","tasks":[`, run)
	for i := range n {
		more := fmt.Sprintf(`,"read_scope":["docs"],"verify_cmd":"go test ./...","timeout_secs":600,"dependencies":["t%d","t%d"]`, max(0, i-10), max(0, i-20))
		if i < 20 {
			more = ""
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(entryOf(fmt.Sprintf("t%d", i), more))
	}
	b.WriteString(`]}`)
	return b.String()
}

// read is all that the edge does with the body of a wave before the use-case.
func (o *operation) read(raw []byte) (in wave.CreateInput, err error) {
	c := &call{op: o, raw: raw}
	if c.value, err = parseWithin(raw, o.maxValues()); err != nil {
		return in, err
	}
	if err := o.checkBody(c); err != nil {
		return in, err
	}
	body, err := decode[api.WaveCreate](c)
	if err != nil {
		return in, err
	}
	if _, err := receipt.New(hub.Principal{}, "", o.id, arguments(c, "", "", "")); err != nil {
		return in, err
	}
	return waveInput(body, hub.DefaultLiveness)
}

func TestTheLargestWaveIsReadFast(t *testing.T) {
	w := newWorld(t)
	raw, begun := []byte(largeWave("run_1", hub.MaxWaveTasks)), time.Now()
	in, err := w.server.apiOps["POST /v1/waves"].read(raw)
	if err != nil || len(in.Plan.Tasks) != hub.MaxWaveTasks {
		t.Fatalf("%d tasks: %v", len(in.Plan.Tasks), err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func BenchmarkWaveBody20000(b *testing.B) {
	doc, err := api.GetSpec()
	if err != nil {
		b.Fatal(err)
	}
	ops, err := operationsOf(doc, apiScopes, apiBody)
	if err != nil {
		b.Fatal(err)
	}
	op, raw := ops["POST /v1/waves"], []byte(largeWave("run_1", hub.MaxWaveTasks))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := op.read(raw); err != nil {
			b.Fatal(err)
		}
	}
}
