package server

import (
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// wide is text of n decoded bytes, each two of which take six in JSON.
func wide(n int) string { return strings.Repeat(`\u00e9`, n/2) + strings.Repeat("x", n%2) }

// sized is a JSON object of n bytes.
func sized(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }

// TestLimitsCountDecodedBytes: each limit takes what is at its edge, however
// much longer that is in JSON, and refuses one byte more by the field's name,
// with nothing stored.
func TestLimitsCountDecodedBytes(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	task := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"x"}`).text("task", "task_id")
	to := `{"to":"run:` + run + `","type":"status",`
	for _, c := range []struct {
		method, path, field string
		limit               int
		body                func(n int) string
	}{
		{"POST", "/v1/messages", "subject", 512, func(n int) string { return to + `"subject":"` + wide(n) + `"}` }},
		{"POST", "/v1/messages", "body", 64 << 10, func(n int) string { return to + `"body":"` + wide(n) + `"}` }},
		{"POST", "/v1/messages", "payload", 64 << 10, func(n int) string { return to + `"payload":` + sized(n) + `}` }},
		{"POST", "/v1/runs/" + run + "/tasks", "spec", 1 << 20, func(n int) string { return `{"spec":"` + wide(n) + `"}` }},
		{"PATCH", "/v1/tasks/" + task, "spec", 1 << 20, func(n int) string { return `{"spec":"` + wide(n) + `"}` }},
	} {
		q := request{method: c.method, path: c.path, body: c.body(c.limit), token: w.operator}
		if got := w.do(q); got.status >= 300 {
			t.Errorf("%s of %d bytes: %d %.300s", c.field, c.limit, got.status, got.raw)
		}
		before := w.commits.Load()
		q.body = c.body(c.limit + 1)
		got := w.do(q)
		if got.status != 413 || got.code() != "too_large" || got.text("field") != c.field || w.commits.Load() != before {
			t.Errorf("%s of %d bytes: %d %.300s, %d commits", c.field, c.limit+1, got.status, got.raw, w.commits.Load()-before)
		}
	}
}

// A limit does not depend on how the sender's library writes JSON.
func TestEscapesAndSpacesCountNothing(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	to := `{"to":"run:` + run + `","type":"status","payload":`
	for name, payload := range map[string]string{
		"escapes": `{"a":"` + strings.Repeat(`\u00e9`, 30_000) + `"}`,
		"spaces":  `{` + strings.Repeat(" ", 100_000) + `"a":1}`,
	} {
		if got := w.post(201, "/v1/messages", to+payload+`}`); got.text("state") != "accepted" {
			t.Errorf("%s: %s", name, got.raw)
		}
	}
	page := w.get(200, "/v1/mailboxes/run:"+run+"/messages")
	if len(page.raw) > 70_000 || !strings.Contains(page.raw, strings.Repeat("é", 30_000)) || !strings.Contains(page.raw, `"payload":{"a":1}`) {
		t.Errorf("they are kept as %d bytes", len(page.raw))
	}
}

// reporting is a report of a new worker.
type reporting struct {
	w              *world
	task, dispatch string
	token          string
}

func (w *world) reporting() reporting {
	_, task, dispatch, token := w.working()
	return reporting{w, task, dispatch, token}
}

func (r reporting) send(more string) response {
	body := `{"type":"worker_done","task_id":"` + r.task + `","dispatch_id":"` + r.dispatch + `","outcome":"succeeded",` + more + `}`
	return r.w.do(request{method: "POST", path: "/v1/messages", body: body, token: r.token})
}

// refuses holds a report that is too large against what it must leave as it was.
func (r reporting) refuses(field, more string) {
	r.w.t.Helper()
	if got := r.send(more); got.status != 413 || got.code() != "too_large" || got.text("field") != field {
		r.w.t.Errorf("too large: %d %.300s", got.status, got.raw)
	}
	if got := r.w.get(200, "/v1/dispatches/"+r.dispatch); got.text("dispatch", "state") != "ready" {
		r.w.t.Errorf("the Dispatch is %s", got.text("dispatch", "state"))
	}
}

// TestResultsHaveALimit: a result of 64 KiB settles, a longer one changes
// nothing.
func TestResultsHaveALimit(t *testing.T) {
	w := newWorld(t)
	r := w.reporting()
	r.refuses("result", `"body":"b","result":`+sized(64<<10+1))
	if got := r.send(`"body":"b","result":` + sized(64<<10)); got.status != 201 || got.text("verdict") != "accepted" {
		t.Errorf("at the edge: %d %.300s", got.status, got.raw)
	}
}

// TestWholeMessagesHaveALimit: subject, body and payload together have at most
// 224 KiB, also where each of them is within its own limit.
func TestWholeMessagesHaveALimit(t *testing.T) {
	w := newWorld(t)
	fields := func(last int) string {
		files := strings.Repeat(`"`+strings.Repeat("f", 4000)+`",`, 24) + `"` + strings.Repeat("l", last) + `"`
		return `"subject":"` + strings.Repeat("s", 512) + `","body":"` + wide(64<<10) + `","result":` + sized(64<<10) + `,"files_modified":[` + files + `]`
	}
	first := w.reporting()
	probe := first.send(fields(1))
	if probe.status != 201 {
		t.Fatalf("%d %.300s", probe.status, probe.raw)
	}
	room := 224<<10 - w.bytesOf(probe.text("message", "message_id"))
	if room < 1 || room > 4000 {
		t.Fatalf("%d bytes of room", room)
	}
	r := w.reporting()
	r.refuses("payload", fields(1+room+1))
	edge := r.send(fields(1 + room))
	if edge.status != 201 || edge.text("verdict") != "accepted" || w.bytesOf(edge.text("message", "message_id")) != 224<<10 {
		t.Errorf("at the edge: %d %.300s", edge.status, edge.raw)
	}
}

func (w *world) bytesOf(message string) (n int) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(rx store.Rx) error {
		m, err := rx.Message(hub.MessageID(message))
		n = m.Bytes()
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}
