package server

import (
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func (w *world) patch(task, match, body string) response {
	w.t.Helper()
	q := request{method: "PATCH", path: "/v1/tasks/" + task, body: body, token: w.operator}
	if match != "" {
		q.header = map[string]string{"If-Match": match}
	}
	return w.do(q)
}

// TestTasksChangeOnlyAsTheyWereSeen: an ETag names a version of a Task; a change
// of another one is refused and changes nothing.
func TestTasksChangeOnlyAsTheyWereSeen(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	task := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look","title":"one"}`).text("task", "task_id")
	seen := w.get(200, "/v1/tasks/"+task).header.Get("ETag")
	changed := w.patch(task, seen, `{"title":"two"}`)
	now := changed.header.Get("ETag")
	if changed.status != 200 || changed.text("task", "title") != "two" || seen == "" || now == "" || now == seen {
		t.Fatalf("%d %s, ETag %s and then %s", changed.status, changed.raw, seen, now)
	}
	before, commits := w.get(200, "/v1/tasks/"+task), w.commits.Load()
	if before.header.Get("ETag") != now {
		t.Errorf("the change answers ETag %s, a look %s", now, before.header.Get("ETag"))
	}
	for _, match := range []string{seen, `"v99"`, "v2", seen + `, "v98"`, "W/" + now} {
		if got := w.patch(task, match, `{"title":"three","state":"cancelled"}`); got.status != 412 || got.code() != "precondition_failed" {
			t.Errorf("If-Match %s: %d %s", match, got.status, got.raw)
		}
	}
	if after := w.get(200, "/v1/tasks/"+task); after.raw != before.raw || w.commits.Load() != commits {
		t.Errorf("refused changes made\n%s\nof\n%s", after.raw, before.raw)
	}
	for match, title := range map[string]string{"*": "any", "": "without", `"v2", "v3", "v4"`: "listed"} {
		if got := w.patch(task, match, `{"title":"`+title+`"}`); got.status != 200 || got.text("task", "title") != title {
			t.Errorf("If-Match %q: %d %s", match, got.status, got.raw)
		}
	}
}

// TestStatesOfTasksThatCannotBeSet: no final state, and no reopening, beside a
// live Dispatch, which the refusal names with its Task; completed is never left.
func TestStatesOfTasksThatCannotBeSet(t *testing.T) {
	w := newWorld(t)
	_, task, dispatch, token := w.working()
	refused := func(when string) {
		t.Helper()
		before := w.get(200, "/v1/tasks/"+task).raw
		for _, state := range []string{"ready", "completed", "failed", "cancelled"} {
			if when == "completed" && state == "completed" {
				continue
			}
			got := w.patch(task, "", `{"state":"`+state+`","title":"changed"}`)
			detail := got.text("detail")
			if got.status != 409 || got.code() != "task_state_invalid" || !strings.Contains(detail, task) || !strings.Contains(detail, dispatch) {
				t.Errorf("%s, to %s: %d %s", when, state, got.status, got.raw)
			}
		}
		if after := w.get(200, "/v1/tasks/"+task).raw; after != before {
			t.Errorf("%s, refusals made\n%s\nof\n%s", when, after, before)
		}
	}
	refused("running")
	report := `{"type":"worker_done","task_id":"` + task + `","dispatch_id":"` + dispatch + `","outcome":"succeeded","body":"done"}`
	w.must(201, request{method: "POST", path: "/v1/messages", body: report, token: token})
	refused("completed")
	if got := w.patch(task, "", `{"title":"renamed"}`); got.status != 200 || got.text("task", "state") != "completed" || got.text("task", "title") != "renamed" {
		t.Errorf("a completed Task's text: %d %s", got.status, got.raw)
	}
	if got := w.do(request{
		method: "POST", path: "/v1/tasks/" + task + "/workers", token: w.operator,
		body: `{"worktree":"path:/x","agent":"fake","retry_of":"` + dispatch + `"}`,
	}); got.code() != "task_not_startable" {
		t.Errorf("a retry of it: %d %s", got.status, got.raw)
	}
	w.get(404, "/v1/tasks/"+string(hub.NewTaskID()))
}
