package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/store"
)

// TestWholeRun goes through every operation of a Run; every answer is held
// against the document on its way.
func TestWholeRun(t *testing.T) {
	w := newWorld(t)
	out := w.post(201, "/v1/runs", `{"objective":"audit"}`)
	run, consumer := out.text("run", "run_id"), out.text("binding", "consumer_token")
	task := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look","title":"Look"}`).text("task", "task_id")
	start := w.post(201, "/v1/tasks/"+task+"/workers", `{"worktree":"path:/x","agent":"fake"}`)
	dispatch := start.text("dispatch_id")
	worker, _ := fakeAuthority{}.Capability("", hub.DispatchID(dispatch))
	as := func(status int, method, path, body string) response {
		return w.must(status, request{method: method, path: path, body: body, token: worker})
	}

	question := as(201, "POST", "/v1/messages", `{"type":"question","body":"which?","options":["a","b"]}`).text("message", "message_id")
	if got := as(200, "GET", "/v1/messages/"+question+"/answer?wait_ms=1", ""); got.at("timed_out") != true || got.at("answer") != nil {
		t.Errorf("no answer yet: %s", got.raw)
	}
	w.get(403, "/v1/messages/"+question+"/answer?wait_ms=0")
	if got := as(200, "GET", "/v1/messages/"+question+"/answer?wait_ms=0", ""); got.at("timed_out") != true || len(got.at("resume_command").([]any)) != 4 {
		t.Errorf("only looking: %s", got.raw)
	}
	waiting := make(chan response, 1)
	go func() { // without wait_ms it waits
		waiting <- w.do(request{method: "GET", path: "/v1/messages/" + question + "/answer", token: worker})
	}()
	w.delivery(question, "queued")
	batch := w.must(200, w.check(run, consumer, ``))
	if batch.at("count") != 1.0 {
		t.Errorf("the question is delivered: %s", batch.raw)
	}
	w.delivery(question, "delivered")
	w.must(403, request{method: "POST", path: "/v1/messages/" + question + "/reply", body: `{"body":"a"}`, token: w.operator})
	reply := w.must(201, request{
		method: "POST", path: "/v1/messages/" + question + "/reply", body: `{"body":"a"}`, token: w.operator,
		header: map[string]string{consumerHeader: consumer},
	}).text("message", "message_id")
	w.delivery(reply, "queued")
	if got := as(200, "GET", "/v1/messages/"+question+"/answer?wait_ms=1", ""); got.at("answer") != "a" || got.at("answer_message_id") != reply {
		t.Errorf("the answer: %s", got.raw)
	}
	if got := <-waiting; got.status != 200 || got.at("answer") != "a" || len(got.at("resume_command").([]any)) != 0 {
		t.Errorf("the waited for answer: %s", got.raw)
	}
	w.must(200, w.check(run, consumer, `{"ack":"`+batch.text("delivery_id")+`"}`))
	w.delivery(question, "acknowledged")
	box := "/v1/mailboxes/dispatch:" + dispatch
	if got := as(200, "POST", box+"/check", `{}`); got.at("count") != 1.0 {
		t.Errorf("the worker's mail: %s", got.raw)
	}
	if got := as(200, "GET", box+"/messages?mode=all&types=answer,guidance", ""); len(got.at("messages").([]any)) != 1 {
		t.Errorf("the worker's history: %s", got.raw)
	}
	as(403, "GET", "/v1/mailboxes/run:"+run+"/messages", "")
	as(200, "GET", "/v1/messages/"+reply, "")
	foreign := w.post(201, "/v1/messages", `{"to":"run:`+run+`","type":"status","body":"not the worker's"}`).text("message", "message_id")
	as(404, "GET", "/v1/messages/"+foreign, "")

	late := w.post(201, "/v1/messages", `{"to":"dispatch:`+dispatch+`","type":"guidance","body":"hurry"}`).text("message", "message_id")
	report := `{"type":"worker_done","task_id":"` + task + `","dispatch_id":"` + dispatch + `","outcome":"succeeded","body":"found 3","result":{"n":3}}`
	as(422, "POST", "/v1/messages", strings.Replace(report, "succeeded", "great", 1))
	done := as(201, "POST", "/v1/messages", report)
	if done.at("verdict") != "accepted" {
		t.Errorf("the report: %s", done.raw)
	}
	w.delivery(late, "undelivered")
	if got := w.get(200, "/v1/tasks/"+task); got.at("task", "state") != "completed" || got.at("task", "result") != "found 3" {
		t.Errorf("the Task: %s", got.raw)
	}
	if got := w.get(200, "/v1/dispatches/"+dispatch); got.at("dispatch", "state") != "succeeded" || got.at("observation", "process") != "live" {
		t.Errorf("the Dispatch: %s", got.raw)
	}
	if got := w.get(200, "/v1/dispatches?live=true"); len(got.at("dispatches").([]any)) != 0 {
		t.Errorf("live Dispatches: %s", got.raw)
	}
	w.get(200, "/v1/dispatches/"+dispatch+"/output")
	if got := w.post(200, "/v1/dispatches/"+dispatch+"/stop", ``); got.at("already_settled") != true {
		t.Errorf("stop of a settled one: %s", got.raw)
	}
	if got := w.get(200, "/v1/hub"); got.at("counts", "runs") != 1.0 {
		t.Errorf("the hub: %s", got.raw)
	}
	if got := w.get(200, "/v1/runs/"+run); got.at("binding_state") != nil || got.at("mailbox", "messages") != 3.0 {
		t.Errorf("the Run: %s", got.raw)
	}
}

func (w *world) delivery(message, want string) {
	w.t.Helper()
	if got := w.get(200, "/v1/messages/"+message); got.text("delivery") != want {
		w.t.Errorf("%s is %s, want %s: %s", message, got.text("delivery"), want, got.raw)
	}
}

func TestBindings(t *testing.T) {
	w := newWorld(t)
	here := map[string]string{contextHeader: "tty 7"}
	create := request{method: "POST", path: "/v1/runs", body: `{"objective":"one"}`, token: w.operator, header: here}
	run := w.must(201, create).text("run", "run_id")
	current := request{method: "GET", path: "/v1/binding", token: w.operator, header: here}
	if got := w.must(200, current); got.text("run", "run_id") != run || got.text("binding_state") != "live" {
		t.Errorf("the binding: %s", got.raw)
	}
	if got := w.must(409, create); got.code() != "already_bound" || got.at("next_commands") == nil {
		t.Errorf("a second Run: %s", got.raw)
	}
	none := request{method: "POST", path: "/v1/runs", body: `{"objective":"two","bind":"none"}`, token: w.operator, header: here}
	if got := w.must(201, none); got.at("binding") != nil {
		t.Errorf("bind none: %s", got.raw)
	}
	w.post(200, "/v1/runs/"+run+"/bind", "")
	if got := w.must(200, current); got.text("binding_state") != "fenced" {
		t.Errorf("the binding after a take-over: %s", got.raw)
	}
	if got := w.must(400, request{method: "GET", path: "/v1/binding", token: w.operator}); got.code() != "run_required" {
		t.Errorf("no binding: %s", got.raw)
	}
	for _, bad := range []string{"a\x01b", strings.Repeat("x", 513), "\xff"} {
		current.header = map[string]string{contextHeader: bad}
		if got := w.must(400, current); got.text("field") != contextHeader {
			t.Errorf("context %q: %s", bad, got.raw)
		}
	}
	current.header = map[string]string{consumerHeader: tokenOf("whc_", "nobody")}
	if got := w.must(400, current); got.code() != "run_required" {
		t.Errorf("a consumer token of elsewhere: %s", got.raw)
	}
	w.must(200, request{method: "GET", path: "/v1/runs", token: w.operator, header: current.header})
}

func TestReplaysAnswerTheSame(t *testing.T) {
	w := newWorld(t)
	key := string(hub.NewRequestID())
	q := request{method: "POST", path: "/v1/runs", body: `{"objective":"x","bind":"auto"}`, token: w.operator, key: key}
	first := w.must(201, q)
	q.body = ` { "bind" : "auto", "objective" : "x" } ` // the same, written otherwise
	again := w.must(201, q)
	if again.at("mutation", "replayed") != true || first.at("mutation", "replayed") != false || again.text("mutation", "request_id") != key {
		t.Errorf("%s\n%s", first.raw, again.raw)
	}
	if first.text("binding", "consumer_token") != again.text("binding", "consumer_token") || again.text("binding", "consumer_token") == "" {
		t.Error("the replay derives another secret")
	}
	q.body = `{"objective":"y"}`
	if got := w.must(409, q); got.code() != "request_mismatch" || got.text("request_id") != key {
		t.Errorf("%s", got.raw)
	}
	w.post(200, "/v1/runs/"+first.text("run", "run_id")+"/bind", "")
	q.body = `{"objective":"x","bind":"auto"}`
	if got := w.must(201, q); got.at("binding", "consumer_token") != nil || got.text("binding", "secret_state") != "fenced" {
		t.Errorf("after the take-over: %s", got.raw)
	}
}

func TestEveryRequestCanBeShown(t *testing.T) {
	w := newWorld(t)
	show := func(answer response) {
		t.Helper()
		got := w.get(200, "/v1/requests/"+answer.text("mutation", "request_id"))
		if got.text("request", "state") != "done" {
			t.Errorf("%s", got.raw)
		}
		want := answer.body
		if _, ok := want["messages"]; ok {
			want["messages"], want["count"] = []any{}, 0.0 // the receipt does not hold them
		}
		a, errA := json.Marshal(want)
		b, errB := json.Marshal(got.at("response"))
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("shown as\n%s, answered\n%s", b, a)
		}
	}
	bound := w.post(201, "/v1/runs", `{"objective":"x"}`)
	run, consumer := bound.text("run", "run_id"), bound.text("binding", "consumer_token")
	show(bound)
	task := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look"}`)
	show(task)
	start := w.post(201, "/v1/tasks/"+task.text("task", "task_id")+"/workers", `{"worktree":"path:/x","agent":"fake"}`)
	show(start)
	show(w.post(201, "/v1/messages", `{"to":"run:`+run+`","type":"status","body":"x"}`))
	show(w.must(200, w.check(run, consumer, ``)))
	show(w.post(200, "/v1/dispatches/"+start.text("dispatch_id")+"/stop", `{}`))
	show(w.post(201, "/v1/repos", `{"path":"/x/y"}`))
	w.get(200, "/v1/repos")
	w.get(200, "/v1/worktrees")

	other := w.must(404, request{method: "GET", path: "/v1/requests/" + start.text("mutation", "request_id"), token: w.reader})
	if other.code() != "request_not_found" {
		t.Errorf("another principal's receipt: %s", other.raw)
	}
	w.get(404, "/v1/requests/"+string(hub.NewRequestID()))
}

func TestUnknownOutcomesAre202(t *testing.T) {
	w := newWorld(t)
	w.terminal.lose = true
	run, _ := w.bound()
	task := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look"}`).text("task", "task_id")
	start := w.post(202, "/v1/tasks/"+task+"/workers", `{"worktree":"path:/x","agent":"fake"}`)
	if start.text("state") != "outcome_unknown" || len(start.at("next_commands").([]any)) == 0 {
		t.Errorf("%s", start.raw)
	}
	stop := w.post(202, "/v1/dispatches/"+start.text("dispatch_id")+"/stop", `{"timeout_ms":50}`)
	if stop.text("state") != "stop_unknown" {
		t.Errorf("%s", stop.raw)
	}
	got := w.get(200, "/v1/requests/"+start.text("mutation", "request_id"))
	if got.text("request", "state") != "unknown" || got.text("response", "state") != "outcome_unknown" {
		t.Errorf("%s", got.raw)
	}
	w.post(200, "/v1/dispatches/"+start.text("dispatch_id")+"/abandon", ``)
}

func TestPeersOfTheHub(t *testing.T) {
	w := newWorld(t)
	if got := w.post(201, "/v1/pairing/invites", `{"allow_repos":["/x"],"ttl_ms":60000}`); got.text("invite", "code") != "abc-def" {
		t.Errorf("%s", got.raw)
	}
	join := `{"name":"b","url":"https://b:1","code":"very-secret"}`
	w.peers.state = hub.PeerActive
	w.post(201, "/v1/peers", join)
	if strings.Contains(string(w.peers.last.Payload), "very-secret") || !strings.Contains(string(w.peers.last.Payload), "https://b:1") {
		t.Errorf("the receipt's payload: %s", w.peers.last.Payload)
	}
	w.peers.state = hub.PeerPending
	w.post(202, "/v1/peers", join)
	w.get(200, "/v1/peers")
	w.get(200, "/v1/peers/a")
	w.get(404, "/v1/peers/zzz")
}

// TestDeliveryToAnotherHub: what is recorded for a relay queue is queued until
// it is acknowledged.
func TestDeliveryToAnotherHub(t *testing.T) {
	w := newWorld(t)
	home := hub.NewPeerID()
	id := hub.NewDispatchID()
	w.update(func(tx store.Tx) error {
		if err := tx.PutPeer(hub.Peer{ID: home, Name: "home", Lineage: "hub_h", Fingerprint: "f", Role: hub.RoleHome, State: hub.PeerActive}); err != nil {
			return err
		}
		return tx.PutAttachment(hub.Attachment{
			Dispatch: id, Home: home, Run: hub.NewRunID(), Task: hub.NewTaskID(), Capability: hub.CapActive,
			Terminal: hub.NewTerminalID(),
		})
	})
	token, sum := fakeAuthority{}.Capability(home, id)
	w.credential(store.Credential{Sum: sum, Kind: store.CredDispatch, Subject: string(id), Home: home})
	sent := w.must(201, request{method: "POST", path: "/v1/messages", body: `{"type":"status","body":"x"}`, token: token})
	if sent.text("state") != "queued" || sent.at("message", "seq") != 0.0 {
		t.Errorf("%s", sent.raw)
	}
	message := sent.text("message", "message_id")
	w.delivery(message, "queued")
	w.update(func(tx store.Tx) error {
		return tx.AckQueue(store.QueueKey{Peer: home, Dispatch: id, Direction: hub.ToHome}, 1)
	})
	w.delivery(message, "at_owner")
}

func TestSecretsStayOutOfLogsAndProblems(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Ready = func() error { panic("ready broke") }
		c.Store = brokenList{c.Store}
	})
	if got := w.must(500, request{method: "GET", path: "/readyz"}); got.code() != "internal" || got.text("detail") != "" {
		t.Errorf("%s", got.raw)
	}
	log := w.log.all()
	if n := strings.Count(log, "ERROR"); n != 1 || !strings.Contains(log, "GET /readyz") || !strings.Contains(log, "flow_test.go") {
		t.Errorf("a panic is logged %d times:\n%s", n, log)
	}
	if got := w.get(500, "/v1/runs"); got.text("detail") != "" || strings.Contains(got.raw, "SELECT") {
		t.Errorf("%s", got.raw)
	}
	if log = w.log.all(); strings.Count(log, "ERROR") != 2 || !strings.Contains(log, "GET /v1/runs error=reading: SELECT broke") {
		t.Errorf("the failure is not logged once with its route:\n%s", log)
	}
	for _, secret := range []string{w.operator, keystore.TokenSum(w.operator)} {
		if strings.Contains(w.log.all(), secret) {
			t.Error("a token is in the log")
		}
	}
}

// brokenList is a store that cannot list Runs.
type brokenList struct{ store.Store }

func (b brokenList) View(ctx context.Context, fn func(store.Rx) error) error {
	return b.Store.View(ctx, func(rx store.Rx) error { return fn(brokenRx{rx}) })
}

type brokenRx struct{ store.Rx }

func (brokenRx) RunList(store.Page) ([]hub.Run, int64, error) {
	return nil, 0, errors.New("reading: SELECT broke")
}

// TestRefusalsNameTheirRequest: a client finds the id it sent in every refusal,
// also in those of the guards.
func TestRefusalsNameTheirRequest(t *testing.T) {
	w := newWorld(t)
	for name, q := range map[string]request{
		"no token":      {body: `{"objective":"x"}`},
		"no JSON":       {body: `{`, token: w.operator},
		"unknown field": {body: `{"objective":"x","more":1}`, token: w.operator},
	} {
		key := string(hub.NewRequestID())
		q.method, q.path, q.header = "POST", "/v1/runs", map[string]string{"Idempotency-Key": key}
		if got := w.do(q); got.status < 400 || got.at("request_id") != key {
			t.Errorf("%s: %d %s", name, got.status, got.raw)
		}
	}
	malformed := request{method: "POST", path: "/v1/runs", body: `{"objective":"x"}`, token: w.operator, header: map[string]string{"Idempotency-Key": "mine"}}
	if got := w.do(malformed); got.status != 400 || got.at("request_id") != nil {
		t.Errorf("a malformed id comes back: %d %s", got.status, got.raw)
	}
}
