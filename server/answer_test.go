package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// waited is something that a worker waits for: how it asks, how that comes, and
// how it fails.
type waited struct {
	q      request
	come   func()
	field  string
	value  any
	fail   func()
	code   string
	status int
}

// question is a worker that waits for the answer to its question.
func (w *world) question() waited {
	w.t.Helper()
	run := w.post(201, "/v1/runs", `{"objective":"o"}`)
	task := w.post(201, "/v1/runs/"+run.text("run", "run_id")+"/tasks", `{"spec":"look"}`).text("task", "task_id")
	d := w.post(201, "/v1/tasks/"+task+"/workers", `{"worktree":"path:/x","agent":"fake"}`).text("dispatch_id")
	token, _ := fakeAuthority{}.Capability("", hub.DispatchID(d))
	asked := w.must(201, request{method: "POST", path: "/v1/messages", body: `{"type":"question","body":"which?"}`, token: token}).text("message", "message_id")
	return waited{
		q: request{method: "GET", path: "/v1/messages/" + asked + "/answer?wait_ms=600000", token: token},
		come: func() {
			w.must(201, request{
				method: "POST", path: "/v1/messages/" + asked + "/reply", body: `{"body":"the left one"}`, token: w.operator,
				header: map[string]string{consumerHeader: run.text("binding", "consumer_token")},
			})
		},
		field: "answer", value: "the left one",
		fail: func() { w.post(200, "/v1/dispatches/"+d+"/abandon", ``) }, code: "dispatch_inactive", status: 409,
	}
}

// verdict is a worker of another hub's Run that waits for what that makes of
// its report.
func (w *world) verdict() waited {
	w.t.Helper()
	home, d, task := hub.NewPeerID(), hub.NewDispatchID(), hub.NewTaskID()
	w.update(func(tx store.Tx) error {
		p := hub.Peer{ID: home, Name: "home", Lineage: "hub_h", Fingerprint: "f", Role: hub.RoleHome, State: hub.PeerActive}
		if err := tx.PutPeer(p); err != nil {
			return err
		}
		return tx.PutAttachment(hub.Attachment{
			Dispatch: d, Home: home, Run: hub.NewRunID(), Task: task, Capability: hub.CapActive, Terminal: hub.NewTerminalID(),
		})
	})
	token, sum := fakeAuthority{}.Capability(home, d)
	w.credential(store.Credential{Sum: sum, Kind: store.CredDispatch, Subject: string(d), Home: home})
	body := `{"type":"worker_done","task_id":"` + string(task) + `","dispatch_id":"` + string(d) + `","outcome":"succeeded","body":"b"}`
	sent := w.must(201, request{method: "POST", path: "/v1/messages", body: body, token: token}).text("message", "message_id")
	return waited{
		q: request{method: "GET", path: "/v1/messages/" + sent + "/verdict?wait_ms=600000", token: token},
		come: func() {
			w.update(func(tx store.Tx) error {
				tx.Signal(hub.Signal{Topic: hub.TopicVerdict, Key: sent})
				return tx.SetVerdict(hub.MessageID(sent), hub.VerdictStale, "the reason")
			})
		},
		field: "verdict", value: "stale",
		fail: func() { close(w.draining) }, code: "hub_draining", status: 503,
	}
}

var waits = map[string]func(*world) waited{"answer": (*world).question, "verdict": (*world).verdict}

// TestWaitsOfWorkersStayAlive: white space keeps the connection of a wait for an
// answer or a verdict; what was waited for comes behind it.
func TestWaitsOfWorkersStayAlive(t *testing.T) {
	for name, of := range waits {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := of(w)
			srv := w.live(time.Millisecond)
			resp, body := w.waiting(t.Context(), srv.URL, x.q)
			x.come()
			out := document(t, body)
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" || out[x.field] != x.value || out["timed_out"] != false {
				t.Errorf("%d %v", resp.StatusCode, out)
			}
		})
	}
}

// TestFailuresOfWorkersWaits: a wait that fails behind its first byte has status
// 200 and the problem as its document; before it, the problem's own status.
func TestFailuresOfWorkersWaits(t *testing.T) {
	for name, of := range waits {
		t.Run(name+" behind the first byte", func(t *testing.T) {
			w := newWorld(t)
			x := of(w)
			srv := w.live(time.Millisecond)
			resp, body := w.waiting(t.Context(), srv.URL, x.q)
			x.fail()
			out := document(t, body)
			problem, _ := out["problem"].(map[string]any)
			if resp.StatusCode != 200 || len(out) != 1 || problem["code"] != x.code || problem["status"] != float64(x.status) {
				t.Errorf("%d %v", resp.StatusCode, out)
			}
		})
		t.Run(name+" before it", func(t *testing.T) {
			w := newWorld(t)
			x := of(w)
			srv := w.live(time.Hour)
			got := w.callLater(srv.URL, x.q)
			eventually(t, func() bool { return w.server.meter.waits.Load() == 1 })
			x.fail()
			if resp := <-got; resp != nil && (resp.StatusCode != x.status || document(t, resp.Body)["code"] != x.code) {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
}

// callLater makes a call whose answer comes later, nil if there is none.
func (w *world) callLater(base string, q request) <-chan *http.Response {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	done := make(chan *http.Response, 1)
	go func() {
		resp, err := w.call(ctx, base, q)
		if err != nil {
			w.t.Errorf("the waiting call: %v", err)
		}
		done <- resp
	}()
	return done
}

// TestOnlyTheAskerIsAnswered: another Dispatch that waits for an answer or a
// verdict, or resumes such a wait, is refused and shown nothing, before
// and after there is one.
func TestOnlyTheAskerIsAnswered(t *testing.T) {
	for name, of := range waits {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x, stranger := of(w), w.worker()
			refused := func() {
				t.Helper()
				for _, wait := range []string{"10", "0"} {
					q := request{method: "GET", path: strings.Replace(x.q.path, "600000", wait, 1), token: stranger}
					got := w.must(403, q)
					if got.code() != "out_of_scope" || strings.Contains(got.raw, "left one") || strings.Contains(got.raw, "the reason") || strings.Contains(got.raw, "stale") {
						t.Errorf("%s", got.raw)
					}
				}
			}
			refused()
			x.come()
			refused()
			if got := w.must(200, x.q); got.at(x.field) != x.value {
				t.Errorf("the asker itself: %s", got.raw)
			}
		})
	}
}

// TestARunningStartCanBeLookedAt: the record of a start that is under way says
// how far it has come, and which Dispatch it began.
func TestARunningStartCanBeLookedAt(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	task := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look"}`).text("task", "task_id")
	w.terminal.hold = make(chan struct{})
	key := string(hub.NewRequestID())
	q := request{method: "POST", path: "/v1/tasks/" + task + "/workers", body: `{"worktree":"path:/x","agent":"fake"}`, token: w.operator, key: key}
	started := make(chan response, 1)
	go func() { started <- w.do(q) }()
	<-w.terminal.entered
	running := w.get(200, "/v1/requests/"+key)
	dispatch := w.get(200, "/v1/tasks/"+task).text("task", "latest_dispatch_id")
	if running.text("request", "state") != "running" || running.text("request", "stage") != "terminal_creating" ||
		dispatch == "" || running.text("request", "object") != dispatch {
		t.Errorf("%s, and %s", dispatch, running.raw)
	}
	if got := running.text("response", "dispatch_id"); got != dispatch || running.text("response", "stage") != "terminal_creating" || running.text("response", "state") != "starting" {
		t.Errorf("%s", running.raw)
	}
	close(w.terminal.hold)
	if got := <-started; got.status != 201 || got.text("dispatch_id") != dispatch || got.text("state") != "ready" {
		t.Errorf("%d %s", got.status, got.raw)
	}
	if got := w.get(200, "/v1/requests/"+key); got.text("request", "state") != "done" || got.text("request", "stage") != "input_accepted" {
		t.Errorf("%s", got.raw)
	}
}
