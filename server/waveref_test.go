package server

import (
	"strings"
	"testing"
)

// Of which wave a Dispatch is, is the word of the engine: no body may say it.
func TestNoBodyNamesAWave(t *testing.T) {
	w := newWorld(t)
	run, task, _, _ := w.working()
	wave := `"wave":{"wave_id":"w1","wave_task_id":"a"}`
	before := w.commits.Load()
	for path, body := range map[string]string{
		"/v1/tasks/" + task + "/workers":    `{"worktree":"path:/x","agent":"fake",` + wave + `}`,
		"/v1/tasks/" + task + "/dispatches": `{"to":"worker:w-1",` + wave + `}`,
		"/v1/runs/" + run + "/workers":      `{"task":{"spec":"s"},"start":{"worktree":"path:/x","agent":"fake",` + wave + `}}`,
	} {
		if got := w.do(request{method: "POST", path: path, body: body, token: w.operator}); got.status != 400 {
			t.Errorf("%s: %d %s", path, got.status, got.raw)
		}
	}
	if w.commits.Load() != before {
		t.Error("a refused body committed something")
	}
}

// What a worker used is shown with its Dispatch: while it works as observed, then as
// it was settled.
func TestUsageIsShown(t *testing.T) {
	w := newWorld(t)
	_, task, dispatch, token := w.working()
	say := func(status int, body string) response {
		t.Helper()
		return w.must(status, request{method: "POST", path: "/v1/messages", body: body, token: token})
	}
	say(201, `{"type":"status","body":"half","usage":{"cost_usd":1}}`)
	shown := w.get(200, "/v1/dispatches/"+dispatch)
	if cost := shown.at("observation", "usage", "cost_usd"); cost != 1.0 || shown.at("dispatch", "usage") != nil {
		t.Errorf("while it works: %s", shown.raw)
	}
	long := `{"type":"status","body":"b","usage":{"a":"` + strings.Repeat("x", 4<<10) + `"}}`
	if got := w.do(request{method: "POST", path: "/v1/messages", body: long, token: token}); got.code() != "too_large" {
		t.Errorf("usage of any size: %d %s", got.status, got.raw)
	}
	say(201, `{"type":"worker_done","task_id":"`+task+`","dispatch_id":"`+dispatch+`","outcome":"succeeded","body":"b","usage":{"cost_usd":2}}`)
	shown = w.get(200, "/v1/dispatches/"+dispatch)
	if cost := shown.at("dispatch", "usage", "cost_usd"); cost != 2.0 {
		t.Errorf("settled: %s", shown.raw)
	}
}
