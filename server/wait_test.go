package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/server/servertest"
)

// live serves the API over a real connection with a short keep-alive.
func (w *world) live(every time.Duration) *httptest.Server {
	w.server.keepAlive = every
	srv := httptest.NewServer(servertest.Validate(w.t, w.server.API()))
	w.t.Cleanup(srv.Close)
	return srv
}

func (w *world) call(ctx context.Context, base string, q request) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, base+q.path, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.Header = q.http().Header
	return http.DefaultClient.Do(r)
}

// waiting starts a call and returns its answer once the first white space came.
func (w *world) waiting(ctx context.Context, base string, q request) (*http.Response, *bufio.Reader) {
	w.t.Helper()
	resp, err := w.call(ctx, base, q)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	body := bufio.NewReader(resp.Body)
	if b, err := body.ReadByte(); err != nil || b != ' ' {
		w.t.Fatalf("the first byte is %q, %v", b, err)
	}
	return resp, body
}

func document(t *testing.T, r io.Reader) map[string]any {
	t.Helper()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	return out
}

func (w *world) bound() (run, consumer string) {
	w.t.Helper()
	out := w.post(201, "/v1/runs", `{"objective":"audit"}`)
	return out.text("run", "run_id"), out.text("binding", "consumer_token")
}

func (w *world) check(run, consumer, body string) request {
	return request{
		method: "POST", path: "/v1/mailboxes/run:" + run + "/check", body: body, token: w.operator,
		header: map[string]string{consumerHeader: consumer},
	}
}

func TestCheckKeepsTheConnectionAlive(t *testing.T) {
	w := newWorld(t)
	srv := w.live(time.Millisecond)
	run, consumer := w.bound()
	resp, body := w.waiting(t.Context(), srv.URL, w.check(run, consumer, `{"wait_ms":600000}`))
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("status %d, %v", resp.StatusCode, resp.Header)
	}
	w.post(201, "/v1/messages", `{"to":"run:`+run+`","type":"status","body":"here"}`)
	out := document(t, body)
	if out["count"] != 1.0 || out["delivery_id"] == nil {
		t.Errorf("%v", out)
	}
}

func TestProblemAfterTheFirstByte(t *testing.T) {
	w := newWorld(t)
	srv := w.live(time.Millisecond)
	run, consumer := w.bound()
	_, body := w.waiting(t.Context(), srv.URL, w.check(run, consumer, `{"wait_ms":600000}`))
	w.post(200, "/v1/runs/"+run+"/bind", "")
	out := document(t, body)
	problem, _ := out["problem"].(map[string]any)
	if problem["code"] != "consumer_fenced" || problem["status"] != 409.0 || problem["request_id"] == "" {
		t.Errorf("%v", out)
	}
}

func TestProblemBeforeTheFirstByteHasItsStatus(t *testing.T) {
	w := newWorld(t)
	srv := w.live(time.Hour)
	run, consumer := w.bound()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan *http.Response, 1)
	go func() {
		resp, err := w.call(ctx, srv.URL, w.check(run, consumer, `{"wait_ms":600000}`))
		if err != nil {
			t.Errorf("the waiting call: %v", err)
		}
		done <- resp
	}()
	eventually(t, func() bool { return w.server.meter.waits.Load() == 1 })
	w.post(200, "/v1/runs/"+run+"/bind", "")
	if resp := <-done; resp != nil && (resp.StatusCode != 409 || document(t, resp.Body)["code"] != "consumer_fenced") {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestClientThatLeavesFreesTheMailbox: the waiter goes with its client.
func TestClientThatLeavesFreesTheMailbox(t *testing.T) {
	w := newWorld(t)
	srv := w.live(time.Millisecond)
	run, consumer := w.bound()
	ctx, cancel := context.WithCancel(t.Context())
	_, _ = w.waiting(ctx, srv.URL, w.check(run, consumer, `{"wait_ms":600000}`))
	<-w.waits
	if got := w.do(w.check(run, consumer, `{"wait_ms":1}`)); !strings.Contains(got.raw, "waiter_exists") {
		t.Errorf("a second waiter: %d %s", got.status, got.raw)
	}
	cancel()
	eventually(t, func() bool {
		return strings.Contains(w.do(w.check(run, consumer, `{"wait_ms":1}`)).raw, `"timed_out":true`)
	})
	if n := w.server.meter.waits.Load(); n != 0 {
		t.Errorf("%d waits are counted", n)
	}
	if log := w.log.all(); strings.Contains(log, "ERROR") {
		t.Errorf("a client that leaves is logged:\n%s", log)
	}
}

func TestDrainingEndsWaits(t *testing.T) {
	w := newWorld(t)
	srv := w.live(time.Millisecond)
	run, consumer := w.bound()
	task := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look"}`).text("task", "task_id")
	w.terminal.hold = make(chan struct{})
	defer close(w.terminal.hold)
	_, check := w.waiting(t.Context(), srv.URL, w.check(run, consumer, `{"wait_ms":600000}`))
	_, start := w.waiting(t.Context(), srv.URL, request{
		method: "POST", path: "/v1/tasks/" + task + "/workers", body: `{"worktree":"path:/x","agent":"fake"}`, token: w.operator,
	})
	eventually(t, func() bool { // the start is on record
		return strings.Contains(w.do(request{method: "GET", path: "/v1/tasks/" + task, token: w.operator}).raw, `"state":"dispatched"`)
	})
	close(w.draining)
	w.server.Drain()
	if problem, _ := document(t, check)["problem"].(map[string]any); problem["code"] != "hub_draining" {
		t.Errorf("the check: %v", problem)
	}
	if out := document(t, start); out["state"] != "outcome_unknown" || out["dispatch_id"] == "" || len(out["next_commands"].([]any)) == 0 {
		t.Errorf("the start: %v", out)
	}
}

func TestStartAfterKeepAlive(t *testing.T) {
	w := newWorld(t)
	srv := w.live(time.Millisecond)
	run, _ := w.bound()
	task := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look"}`).text("task", "task_id")
	w.terminal.hold = make(chan struct{})
	resp, body := w.waiting(t.Context(), srv.URL, request{
		method: "POST", path: "/v1/tasks/" + task + "/workers", body: `{"worktree":"path:/x","agent":"fake"}`, token: w.operator,
	})
	close(w.terminal.hold)
	if out := document(t, body); resp.StatusCode != 200 || out["state"] != "ready" {
		t.Errorf("%d %v", resp.StatusCode, out)
	}
}

func TestTooManyWaits(t *testing.T) {
	w := newWorld(t)
	run, consumer := w.bound()
	w.server.meter.waits.Store(maxWaits)
	got := w.do(w.check(run, consumer, `{"wait_ms":1}`))
	if got.code() != "rate_limited" || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.status, got.raw)
	}
	if got := w.do(w.check(run, consumer, `{}`)); got.status != 200 {
		t.Errorf("a check that does not wait: %d", got.status)
	}
}

func TestLosingAWaitsCallerIsNoError(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := request{method: "GET", path: "/v1/runs", token: w.operator}.http().WithContext(ctx)
	rec := httptest.NewRecorder()
	w.server.API().ServeHTTP(rec, r)
	if rec.Body.Len() != 0 || strings.Contains(w.log.all(), "ERROR") {
		t.Errorf("%q\n%s", rec.Body, w.log.all())
	}
}

// eventually asks again until it holds, for at most ten seconds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("it does not come true")
		}
	}
}
