package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// working is a Run with a Task whose worker runs.
func (w *world) working() (run, task, dispatch, token string) {
	w.t.Helper()
	run = w.post(201, "/v1/runs", `{"objective":"o"}`).text("run", "run_id")
	task = w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look"}`).text("task", "task_id")
	dispatch = w.post(201, "/v1/tasks/"+task+"/workers", `{"worktree":"path:/x","agent":"fake"}`).text("dispatch_id")
	token, _ = fakeAuthority{}.Capability("", hub.DispatchID(dispatch))
	return run, task, dispatch, token
}

// A batch is all of its messages in their order, or none.
func TestMessageBatch(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	message := func(i int) string { return fmt.Sprintf(`{"to":"run:%s","type":"status","body":"m%d"}`, run, i) }
	batch := func(ms ...string) string { return `{"messages":[` + strings.Join(ms, ",") + `]}` }
	key := string(hub.NewRequestID())
	send := func(body string) response {
		return w.do(request{method: "POST", path: "/v1/messages:batch", body: body, token: w.operator, header: map[string]string{"Idempotency-Key": key}})
	}
	bad := send(batch(message(0), `{"to":"run:`+run+`","type":"status","subject":"`+strings.Repeat("s", 513)+`"}`))
	if bad.code() != "too_large" || bad.text("field") != "messages[1].subject" {
		t.Errorf("a bad message: %d %s", bad.status, bad.raw)
	}
	foreign := send(batch(message(0), `{"to":"run:`+string(hub.NewRunID())+`","type":"status","body":"x"}`))
	if foreign.code() != "run_not_found" {
		t.Errorf("a message to nobody: %d %s", foreign.status, foreign.raw)
	}
	if got := w.get(200, "/v1/mailboxes/run:"+run+"/messages"); len(got.at("messages").([]any)) != 0 {
		t.Errorf("a refused batch left %s", got.raw)
	}
	var all []string
	for i := range 100 {
		all = append(all, message(i))
	}
	first := send(batch(all...))
	results := first.at("results").([]any)
	if first.status != 201 || len(results) != 100 {
		t.Fatalf("%d %s", first.status, first.raw)
	}
	for i, r := range results {
		if seq := r.(map[string]any)["message"].(map[string]any)["seq"]; seq != float64(i+1) {
			t.Fatalf("message %d has place %v", i, seq)
		}
	}
	again := send(batch(all...))
	if again.status != 201 || strings.Replace(again.raw, `"replayed":true`, `"replayed":false`, 1) != first.raw {
		t.Errorf("a replay differs: %s", again.raw)
	}
	if got := w.get(200, "/v1/requests/"+key); fmt.Sprint(got.at("response", "results")) != fmt.Sprint(first.at("results")) {
		t.Errorf("the record: %s", got.raw)
	}
	for _, body := range []string{`{"messages":[]}`, batch(append(all, message(100))...), `{}`} {
		if got := w.do(request{method: "POST", path: "/v1/messages:batch", body: body, token: w.operator}); got.status != 400 {
			t.Errorf("%.40s: %d %s", body, got.status, got.raw)
		}
	}
}

func TestQuestionsAreListed(t *testing.T) {
	w := newWorld(t)
	run, _, dispatch, token := w.working()
	ask := func(text string) string {
		return w.must(201, request{method: "POST", path: "/v1/messages", body: `{"type":"question","body":"` + text + `","options":["a","b"]}`, token: token}).text("message", "message_id")
	}
	first, second := ask("first?"), ask("second?")
	listed := w.get(200, "/v1/questions?run="+run+"&state=pending&limit=1")
	q := listed.at("questions").([]any)[0].(map[string]any)
	if q["message_id"] != second || q["question"] != "second?" || q["dispatch_id"] != dispatch || fmt.Sprint(q["options"]) != "[a b]" {
		t.Errorf("%s", listed.raw)
	}
	next := w.get(200, "/v1/questions?run="+run+"&state=pending&limit=1&cursor="+listed.text("next_cursor"))
	if qs := next.at("questions").([]any); len(qs) != 1 || qs[0].(map[string]any)["message_id"] != first || next.at("next_cursor") != nil {
		t.Errorf("the next page: %s", next.raw)
	}
	w.post(200, "/v1/dispatches/"+dispatch+"/abandon", `{}`)
	if got := w.get(200, "/v1/questions?state=pending"); len(got.at("questions").([]any)) != 0 {
		t.Errorf("pending after the end: %s", got.raw)
	}
	if got := w.get(200, "/v1/questions?run="+run+"&state=closed"); len(got.at("questions").([]any)) != 2 {
		t.Errorf("closed: %s", got.raw)
	}
	w.get(400, "/v1/questions?state=lost")
	w.get(400, "/v1/questions?cursor="+listed.text("next_cursor"))
}

// TestAcceptance_L09_PresenceIsNoMail: heartbeats are shown, make no message,
// and one that straggles in behind the end changes nothing.
func TestAcceptance_L09_PresenceIsNoMail(t *testing.T) {
	w := newWorld(t)
	run, task, dispatch, token := w.working()
	beat := func(id, token, body string) response {
		return w.do(request{method: "PUT", path: "/v1/dispatches/" + id + "/heartbeat", body: body, token: token})
	}
	if got := beat(dispatch, token, `{"waiting_for":"permission","usage":{"tokens":12}}`); got.status != 200 || got.text("dispatch_id") != dispatch {
		t.Fatalf("%d %s", got.status, got.raw)
	}
	shown := w.get(200, "/v1/dispatches/"+dispatch)
	if shown.at("observation", "waiting_for") != "permission" || shown.at("observation", "usage", "tokens") != 12.0 || shown.at("observation", "last_report_at") == nil {
		t.Errorf("%s", shown.raw)
	}
	if got := beat(dispatch, token, ``); got.status != 200 || w.get(200, "/v1/dispatches/"+dispatch).at("observation", "waiting_for") != "none" {
		t.Errorf("an empty heartbeat: %d %s", got.status, got.raw)
	}
	if got := w.get(200, "/v1/hub"); got.at("counts", "messages") != 0.0 {
		t.Errorf("presence made mail: %s", got.raw)
	}
	_, _, other, _ := w.working()
	for name, got := range map[string]response{
		"another Dispatch": beat(other, token, ``), "the operator": beat(dispatch, w.operator, ``),
	} {
		if got.code() != "out_of_scope" {
			t.Errorf("%s: %d %s", name, got.status, got.raw)
		}
	}
	for _, body := range []string{`{"waiting_for":"godot"}`, `{"from":"me"}`, `{"usage":[1]}`} {
		if got := beat(dispatch, token, body); got.status != 400 {
			t.Errorf("%s: %d %s", body, got.status, got.raw)
		}
	}
	if got := beat(dispatch, token, `{"usage":{"x":"`+strings.Repeat("y", 4096)+`"}}`); got.code() != "too_large" {
		t.Errorf("a large usage: %d %s", got.status, got.raw)
	}
	report := `{"type":"worker_done","task_id":"` + task + `","dispatch_id":"` + dispatch + `","outcome":"succeeded","body":"done"}`
	w.must(201, request{method: "POST", path: "/v1/messages", body: report, token: token})
	before := w.get(200, "/v1/dispatches/"+dispatch).raw
	if got := beat(dispatch, token, `{"waiting_for":"prompt"}`); got.code() != "dispatch_inactive" {
		t.Errorf("a straggler: %d %s", got.status, got.raw)
	}
	if after := w.get(200, "/v1/dispatches/"+dispatch).raw; cut(after, "observed_at") != cut(before, "observed_at") {
		t.Errorf("it changed the Dispatch:\n%s\n%s", before, after)
	}
	if got := w.get(200, "/v1/mailboxes/run:"+run+"/messages"); len(got.at("messages").([]any)) != 1 {
		t.Errorf("the mail is %s", got.raw)
	}
}

// cut is raw up to a field that changes with time.
func cut(raw, field string) string {
	before, _, _ := strings.Cut(raw, field)
	return before
}

// TestDocsPage: the page for people lists every operation with who may use it,
// and every document that they name.
func TestDocsPage(t *testing.T) {
	w := newWorld(t)
	got := w.must(200, request{method: "GET", path: "/docs", header: map[string]string{"Sec-Fetch-Site": "none"}})
	if got.header.Get("Content-Type") != "text/html; charset=utf-8" || got.header.Get("Content-Security-Policy") == "" {
		t.Errorf("headers %v", got.header)
	}
	for _, o := range w.server.apiOps {
		if !strings.Contains(got.raw, "<code>"+o.method+" "+o.pattern+"</code>") {
			t.Errorf("%s %s is missing", o.method, o.pattern)
		}
	}
	for part := range strings.SplitSeq(got.raw, `href="#`) {
		if name, _, ok := strings.Cut(part, `"`); ok && !strings.HasPrefix(part, "<!doctype") && !strings.Contains(got.raw, `id="`+name+`"`) {
			t.Errorf("there is no document %q", name)
		}
	}
	if !strings.Contains(got.raw, "For: operator, a Dispatch&#39;s worker, an attached worker.") {
		t.Error("it does not say who may send")
	}
}
