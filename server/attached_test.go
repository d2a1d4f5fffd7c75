package server

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// workerID is the id of an identity.
func (w *world) workerID(name string) (id hub.WorkerID) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(rx store.Rx) error {
		one, err := rx.WorkerByName(name)
		id = one.ID
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) newTask() string {
	w.t.Helper()
	run := w.post(201, "/v1/runs", `{"objective":"o"}`).text("run", "run_id")
	return w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"the task"}`).text("task", "task_id")
}

func TestAttachedWorkerByHTTP(t *testing.T) {
	w := newWorld(t)
	key := string(hub.NewRequestID())
	register := request{method: "POST", path: "/v1/workers", token: w.operator, body: `{"name":"w-2"}`, key: key}
	made := w.must(201, register)
	token, id := made.text("worker", "token"), made.text("worker", "worker_id")
	if again := w.must(201, register); again.text("worker", "token") != token || !strings.HasPrefix(token, "whw_") {
		t.Errorf("registered as %s, then %s", made.raw, again.raw)
	}
	if shown := w.get(200, "/v1/requests/"+key); shown.text("response", "worker", "token") != token {
		t.Errorf("the receipt shows %s", shown.raw)
	}
	task := w.newTask()
	given := w.post(201, "/v1/tasks/"+task+"/dispatches", `{"to":"worker:w-2","no_wait":true}`)
	if given.text("state") != "starting" || given.text("preamble") == "" || given.text("worker") != "w-2" {
		t.Errorf("the receipt is %s", given.raw)
	}
	d := given.text("dispatch_id")
	by := func(method, path, body string) request {
		return request{method: method, path: path, body: body, token: token}
	}
	own := w.must(200, by("GET", "/v1/workers/self/dispatches", ""))
	first := own.at("dispatches").([]any)[0].(map[string]any)
	payload := first["payload"].(map[string]any)
	if first["dispatch_id"] != d || first["delivered"] != false || payload["prompt"] != "the task" || payload["session_id"] != d || first["backend_ctx"] != nil {
		t.Errorf("its own are %s", own.raw)
	}
	if seen := w.listed(id); seen["presence"].(map[string]any)["state"] != "offline" {
		t.Errorf("before its presence it is %v", seen)
	}
	present := w.must(200, by("PUT", "/v1/workers/self/presence", `{"dispatches":["`+d+`"]}`))
	if present.at("dispatches").([]any)[0] != d {
		t.Errorf("the presence is answered %s", present.raw)
	}
	if seen := w.listed(id); seen["presence"].(map[string]any)["state"] != "deaf" {
		t.Errorf("a presence without a wait is %v", seen)
	}
	if shown := w.get(200, "/v1/dispatches/"+d); shown.text("dispatch", "state") != "ready" || shown.text("observation", "process") != "unverifiable" {
		t.Errorf("taken up it is %s", shown.raw)
	}
	changed := w.must(200, by("PATCH", "/v1/sessions/"+d, `{"backend_ctx":{"id":"abc"}}`))
	if changed.text("session", "backend_ctx", "id") != "abc" || changed.text("session", "worker") != id {
		t.Errorf("the session is %s", changed.raw)
	}
	w.must(201, by("POST", "/v1/messages", `{"type":"worker_done","task_id":"`+task+`","dispatch_id":"`+d+`","outcome":"succeeded","body":"b"}`))
	if got := w.get(200, "/v1/sessions/"+d); got.text("session", "status") != "closed" || got.text("session", "backend_ctx", "id") != "abc" {
		t.Errorf("at the end the session is %s", got.raw)
	}
	w.post(200, "/v1/workers/w-2/drain", `{}`)
	if refused := w.do(request{method: "POST", path: "/v1/tasks/" + w.newTask() + "/dispatches", token: w.operator, body: `{"to":"worker:w-2"}`}); refused.code() != string(hub.CodeWorkerDraining) {
		t.Errorf("a draining worker: %s", refused.raw)
	}
	w.post(200, "/v1/workers/"+id+"/revoke", `{}`)
	if refused := w.do(by("GET", "/v1/workers/self/dispatches", "")); refused.status != 401 {
		t.Errorf("a revoked worker: %s", refused.raw)
	}
}

// listed is one identity of the list.
func (w *world) listed(id string) map[string]any {
	w.t.Helper()
	for _, one := range w.get(200, "/v1/workers").at("workers").([]any) {
		if m := one.(map[string]any); m["worker_id"] == id {
			return m
		}
	}
	w.t.Fatalf("%s is not listed", id)
	return nil
}

func TestAttachedGenerationHeader(t *testing.T) {
	w := newWorld(t)
	box := "/v1/mailboxes/worker:" + string(w.workerID("w-1")) + "/check"
	check := func(generation string) response {
		return w.do(request{method: "POST", path: box, token: w.attached, body: `{}`, header: map[string]string{"Wavehub-Generation": generation}})
	}
	if got := check("1"); got.status != 200 {
		t.Errorf("the first loop: %s", got.raw)
	}
	made := w.must(200, request{method: "POST", path: "/v1/workers/self/attach", token: w.attached, body: `{}`})
	if made.at("worker", "generation") != 2.0 {
		t.Errorf("attach answers %s", made.raw)
	}
	for generation, code := range map[string]string{"1": "consumer_fenced", "2": "", "0": "invalid_argument", "x": "invalid_argument", "3": "consumer_fenced"} {
		if got := check(generation); got.code() != code {
			t.Errorf("generation %s: %s", generation, got.raw)
		}
	}
	if got := w.do(request{method: "POST", path: box, token: w.operator, body: `{}`}); got.code() != string(hub.CodeOutOfScope) {
		t.Errorf("the operator checks it: %s", got.raw)
	}
}

// A stream tells of mail, without its content, and that the hub lives; while it is
// open the worker is online, and it ends with the worker's token.
func TestAttachedStream(t *testing.T) {
	w := newWorld(t)
	srv := w.live(time.Hour)
	id := w.workerID("w-1")
	path := "/v1/mailboxes/worker:" + string(id) + "/stream"
	if got := w.do(request{method: "GET", path: "/v1/mailboxes/worker:" + string(hub.NewWorkerID()) + "/stream", token: w.operator}); got.code() != string(hub.CodeWorkerNotFound) {
		t.Errorf("an unknown mailbox: %s", got.raw)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := w.call(ctx, srv.URL, request{method: "GET", path: path, token: w.attached})
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%+v, %v", resp, err)
	}
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	expect := func(want string) {
		t.Helper()
		if line, err := events.ReadString('\n'); err != nil || line != want {
			t.Fatalf("the stream says %q (%v), want %q", line, err, want)
		}
	}
	expect(":\n")
	expect("\n")
	if seen := w.listed(string(id)); seen["presence"].(map[string]any)["state"] != "online" {
		t.Errorf("while it listens it is %v", seen)
	}
	given := w.post(201, "/v1/tasks/"+w.newTask()+"/dispatches", `{"to":"worker:w-1","no_wait":true}`)
	for _, line := range []string{"event: mail\n", "data: {}\n", "\n"} {
		expect(line)
	}
	if given.text("dispatch_id") == "" {
		t.Error("nothing was given")
	}
	w.post(200, "/v1/workers/w-1/revoke", `{}`)
	if line, err := events.ReadString('\n'); err == nil {
		t.Errorf("after the revocation the stream says %q", line)
	}
}

func TestAttachedStreamSaysThatTheHubLives(t *testing.T) {
	w := newWorld(t)
	srv := w.live(time.Millisecond)
	run, _ := w.bound()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := w.call(ctx, srv.URL, request{method: "GET", path: "/v1/mailboxes/run:" + run + "/stream", token: w.reader})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	for range 3 {
		if line, err := events.ReadString('\n'); err != nil || line != ":\n" {
			t.Fatalf("the stream says %q, %v", line, err)
		}
		if _, err := events.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
}

// An attached worker reads and hears its own mailbox, and no other one.
func TestAttachedReadsItsOwnMailboxOnly(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	_, dispatch := w.started()
	w.identity("w-2")
	for _, box := range []string{"run:" + run, "dispatch:" + dispatch, "worker:" + string(w.workerID("w-2"))} {
		for _, q := range []request{
			{method: "GET", path: "/v1/mailboxes/" + box + "/messages"}, {method: "POST", path: "/v1/mailboxes/" + box + "/check", body: `{}`},
			{method: "GET", path: "/v1/mailboxes/" + box + "/stream"}, // the last, for one that is let in has no end
		} {
			q.token = w.attached
			if got := w.do(q); got.status != 403 || got.code() != string(hub.CodeOutOfScope) {
				t.Fatalf("%s %s: %s", q.method, q.path, got.raw)
			}
		}
	}
	if got := w.do(request{method: "GET", path: "/v1/mailboxes/worker:" + string(w.workerID("w-1")) + "/messages", token: w.attached}); got.status != 200 {
		t.Errorf("its own: %s", got.raw)
	}
}
