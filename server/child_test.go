package server

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// chief is a worker that may coordinate, in the folder /x.
type chief struct {
	w               *world
	token           string
	parent          string // the Run of its Dispatch
	task, dispatch  string
	other, stranger string // another Run, and a Dispatch of it
}

func (w *world) coordinator() chief {
	w.t.Helper()
	c := chief{w: w}
	c.parent = w.post(201, "/v1/runs", `{"objective":"audit"}`).text("run", "run_id")
	out := w.post(201, "/v1/runs/"+c.parent+"/workers", `{"task":{"spec":"coordinate"},"start":{"worktree":"path:/x","agent":"fake","may_coordinate":true}}`)
	c.task, c.dispatch = out.text("task_id"), out.text("dispatch_id")
	c.token, _ = fakeAuthority{}.Capability("", hub.DispatchID(c.dispatch))
	var task string
	task, c.stranger = w.started()
	c.other = w.get(200, "/v1/tasks/"+task).text("task", "run_id")
	return c
}

func (c chief) do(method, path, body string) response {
	c.w.t.Helper()
	return c.w.do(request{method: method, path: path, body: body, token: c.token})
}

// must demands an answer without a problem.
func (c chief) must(method, path, body string) response {
	c.w.t.Helper()
	got := c.do(method, path, body)
	if got.status >= 300 {
		c.w.t.Fatalf("%s %s: %d %s", method, path, got.status, got.raw)
	}
	return got
}

// refused demands the problem.
func (c chief) refused(code, method, path, body string) {
	c.w.t.Helper()
	if got := c.do(method, path, body); got.code() != code {
		c.w.t.Errorf("%s %s %s: %d %s, want %s", method, path, body, got.status, got.raw, code)
	}
}

func (c chief) child() string {
	c.w.t.Helper()
	return c.must("POST", "/v1/runs", `{"objective":"parts"}`).text("run", "run_id")
}

const onX = `{"worktree":"path:/x","agent":"fake"}`

func TestAWorkerCreatesOneChildRun(t *testing.T) {
	w := newWorld(t)
	c := w.coordinator()
	c.refused("run_required", "GET", "/v1/binding", "")
	c.refused("out_of_scope", "POST", "/v1/runs/"+c.parent+"/tasks", `{"spec":"s"}`)
	c.refused("out_of_scope", "POST", "/v1/runs", `{"objective":"o","parent_run_id":"`+c.other+`"}`)
	c.refused("invalid_argument", "POST", "/v1/runs", `{"objective":"o","bind":"none"}`)
	c.refused("invalid_argument", "POST", "/v1/runs", `{"objective":" "}`)
	key := string(hub.NewRequestID())
	create := request{method: "POST", path: "/v1/runs", body: `{"objective":"parts"}`, token: c.token, key: key}
	made, again := w.must(201, create), w.must(201, create)
	child := made.text("run", "run_id")
	if made.text("run", "parent_run_id") != c.parent || made.at("binding", "generation") != 1.0 || made.at("binding", "consumer_token") != nil || made.text("binding", "secret_state") != "withheld" {
		t.Errorf("the Run is %s", made.raw)
	}
	shown := w.must(200, request{method: "GET", path: "/v1/requests/" + key, token: c.token})
	if again.text("run", "run_id") != child || again.at("mutation", "replayed") != true || shown.at("response", "binding", "consumer_token") != nil {
		t.Errorf("repeated: %s\nshown: %s", again.raw, shown.raw)
	}
	c.refused("already_bound", "POST", "/v1/runs", `{"objective":"another"}`)
	if got := c.must("GET", "/v1/binding", ""); got.text("run", "run_id") != child || got.text("binding_state") != "live" {
		t.Errorf("the binding is %s", got.raw)
	}
	if got := w.get(200, "/v1/runs"); len(got.at("runs").([]any)) != 3 {
		t.Errorf("the Runs are %s", got.raw)
	}
}

// TestAWorkerOperatesItsChildRunAlone: what its operator may do, and nothing of
// what is of another Run, its own parent included.
func TestAWorkerOperatesItsChildRunAlone(t *testing.T) {
	w := newWorld(t)
	c := w.coordinator()
	child := c.child()
	task := c.must("POST", "/v1/runs/"+child+"/tasks", `{"spec":"a part"}`).text("task", "task_id")
	c.must("PATCH", "/v1/tasks/"+task, `{"title":"renamed"}`)
	start := c.must("POST", "/v1/tasks/"+task+"/workers", onX)
	part := start.text("dispatch_id")
	short := c.must("POST", "/v1/runs/"+child+"/workers", `{"task":{"spec":"another"},"start":`+onX+`}`).text("dispatch_id")
	for _, path := range []string{
		"/v1/runs/" + child, "/v1/runs/" + child + "/tasks", "/v1/tasks/" + task, "/v1/dispatches/" + part, "/v1/dispatches/" + part + "?wait_ms=1",
		"/v1/dispatches/" + part + "/output", "/v1/dispatches?run=" + child, "/v1/questions?run=" + child,
		"/v1/mailboxes/run:" + child + "/messages", "/v1/mailboxes/dispatch:" + part + "/messages",
	} {
		c.must("GET", path, "")
	}
	if got := c.must("GET", "/v1/dispatches", ""); len(got.at("dispatches").([]any)) != 2 {
		t.Errorf("its Dispatches are %s", got.raw)
	}
	c.must("POST", "/v1/dispatches/"+part+"/stop", `{}`)
	c.must("POST", "/v1/dispatches/"+short+"/abandon", `{}`)

	for _, run := range []string{c.parent, c.other} {
		c.refused("out_of_scope", "POST", "/v1/runs/"+run+"/tasks", `{"spec":"s"}`)
		c.refused("out_of_scope", "POST", "/v1/runs/"+run+"/workers", `{"task":{"spec":"s"},"start":`+onX+`}`)
		c.refused("out_of_scope", "POST", "/v1/runs/"+run+"/bind", `{}`)
		c.refused("out_of_scope", "POST", "/v1/mailboxes/run:"+run+"/check", `{}`)
		for _, path := range []string{"/v1/runs/" + run, "/v1/runs/" + run + "/tasks", "/v1/dispatches?run=" + run, "/v1/questions?run=" + run, "/v1/mailboxes/run:" + run + "/messages"} {
			c.refused("out_of_scope", "GET", path, "")
		}
	}
	c.refused("out_of_scope", "POST", "/v1/runs/"+child+"/bind", `{}`)
	c.refused("out_of_scope", "GET", "/v1/tasks/"+c.task, "")
	c.refused("out_of_scope", "PATCH", "/v1/tasks/"+c.task, `{"title":"mine"}`)
	for _, d := range []string{c.dispatch, c.stranger} {
		c.refused("out_of_scope", "GET", "/v1/dispatches/"+d, "")
		c.refused("out_of_scope", "GET", "/v1/dispatches/"+d+"/output", "")
		c.refused("out_of_scope", "POST", "/v1/dispatches/"+d+"/stop", `{}`)
		c.refused("out_of_scope", "POST", "/v1/dispatches/"+d+"/abandon", `{}`)
		c.refused("out_of_scope", "POST", "/v1/messages", `{"to":"dispatch:`+d+`","type":"guidance","body":"b"}`)
	}
	c.refused("out_of_scope", "GET", "/v1/mailboxes/dispatch:"+c.stranger+"/messages", "")
	c.refused("out_of_scope", "POST", "/v1/messages", `{"to":"run:`+c.other+`","type":"status","body":"b"}`)
	c.refused("dispatch_not_found", "GET", "/v1/dispatches/none", "")
}

func TestAWorkerIsTheConsumerOfItsChildRun(t *testing.T) {
	w := newWorld(t)
	c := w.coordinator()
	child := c.child()
	part := c.must("POST", "/v1/runs/"+child+"/workers", `{"task":{"spec":"a part"},"start":`+onX+`}`).text("dispatch_id")
	token, _ := fakeAuthority{}.Capability("", hub.DispatchID(part))
	asked := w.must(201, request{method: "POST", path: "/v1/messages", token: token, body: `{"type":"question","body":"Which?"}`}).text("message", "message_id")
	batch := c.must("POST", "/v1/mailboxes/run:"+child+"/check", `{"wait_ms":1000}`)
	if batch.at("count") != 1.0 {
		t.Fatalf("the batch is %s", batch.raw)
	}
	if got := c.must("GET", "/v1/messages/"+asked, ""); got.text("message", "body") != "Which?" {
		t.Errorf("the message is %s", got.raw)
	}
	if got := c.must("GET", "/v1/questions", ""); len(got.at("questions").([]any)) != 1 {
		t.Errorf("the questions are %s", got.raw)
	}
	c.must("POST", "/v1/messages/"+asked+"/reply", `{"body":"this"}`)
	c.must("POST", "/v1/messages", `{"to":"dispatch:`+part+`","type":"guidance","body":"look"}`)
	mail := w.get(200, "/v1/mailboxes/dispatch:"+part+"/messages").at("messages").([]any)
	for _, m := range mail {
		if from := m.(map[string]any)["from"]; from != "run:"+child {
			t.Errorf("mail from %v", from)
		}
	}
	c.must("POST", "/v1/mailboxes/run:"+child+"/check", `{"ack":"`+batch.text("delivery_id")+`"}`)

	c.must("POST", "/v1/messages", `{"type":"status","body":"for my own Run"}`)
	own := w.get(200, "/v1/mailboxes/run:"+c.parent+"/messages").at("messages").([]any)
	if len(own) != 1 || own[0].(map[string]any)["from"] != "dispatch:"+c.dispatch {
		t.Errorf("the parent's mail is %v", own)
	}

	w.post(200, "/v1/runs/"+child+"/bind", `{}`) // the operator takes it over
	c.refused("consumer_fenced", "POST", "/v1/mailboxes/run:"+child+"/check", `{}`)
	c.refused("consumer_fenced", "POST", "/v1/messages/"+asked+"/reply", `{"body":"that"}`)
	c.must("POST", "/v1/runs/"+child+"/tasks", `{"spec":"still its operator"}`)
	c.must("POST", "/v1/messages", `{"to":"dispatch:`+part+`","type":"guidance","body":"by whom"}`)
	mail = w.get(200, "/v1/mailboxes/dispatch:"+part+"/messages").at("messages").([]any)
	if from := mail[len(mail)-1].(map[string]any)["from"]; from != "dispatch:"+c.dispatch {
		t.Errorf("mail of a fenced consumer is from %v", from)
	}
}

// TestPlacesOfAWorkersWorkers: its own folder, and no peer.
func TestPlacesOfAWorkersWorkers(t *testing.T) {
	w := newWorld(t)
	c := w.coordinator()
	path := "/v1/runs/" + c.child() + "/workers"
	start := func(start string) string { return `{"task":{"spec":"s"},"start":` + start + `}` }
	c.must("POST", path, start(`{"worktree":"path:/x/below","agent":"fake"}`))
	c.refused("repo_not_granted", "POST", path, start(`{"worktree":"path:/xy","agent":"fake"}`))
	c.refused("repo_not_granted", "POST", path, start(`{"worktree":"path:/","agent":"fake"}`))
	c.refused("server_required", "POST", path, start(`{"worktree":"path:/x","agent":"fake","on":"a"}`))
	w.post(201, "/v1/repos", `{"path":"/x"}`)
	w.post(201, "/v1/repos", `{"path":"/other"}`)
	c.refused("repo_not_granted", "POST", path, start(`{"worktree":"path:/other","agent":"fake"}`))
}

// TestTheAuthorityEndsWithTheCapability: the Run stays for the operator.
func TestTheAuthorityEndsWithTheCapability(t *testing.T) {
	for name, end := range map[string]func(*world, chief){
		"a report": func(_ *world, c chief) {
			c.must("POST", "/v1/messages", `{"type":"worker_done","task_id":"`+c.task+`","dispatch_id":"`+c.dispatch+`","outcome":"succeeded","body":"b"}`)
		},
		"a stop":     func(w *world, c chief) { w.post(200, "/v1/dispatches/"+c.dispatch+"/stop", `{}`) },
		"an abandon": func(w *world, c chief) { w.post(200, "/v1/dispatches/"+c.dispatch+"/abandon", `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, idle := w.coordinator(), w.coordinator()
			child := c.child()
			part := c.must("POST", "/v1/runs/"+child+"/workers", `{"task":{"spec":"a part"},"start":`+onX+`}`).text("dispatch_id")
			waiting := make(chan response, 1)
			go func() { waiting <- c.do("POST", "/v1/mailboxes/run:"+child+"/check", `{"wait_ms":600000}`) }()
			<-w.waits
			end(w, c)
			end(w, idle)
			if got := <-waiting; got.code() != "dispatch_inactive" && got.text("problem", "code") != "dispatch_inactive" {
				t.Errorf("its wait ends with %s", got.raw)
			}
			idle.refused("dispatch_inactive", "POST", "/v1/runs", `{"objective":"too late"}`)
			c.refused("dispatch_inactive", "POST", "/v1/runs/"+child+"/tasks", `{"spec":"s"}`)
			c.refused("dispatch_inactive", "GET", "/v1/dispatches/"+part, "")
			c.refused("dispatch_inactive", "POST", "/v1/dispatches/"+part+"/stop", `{}`)
			c.refused("dispatch_inactive", "POST", "/v1/messages", `{"to":"dispatch:`+part+`","type":"guidance","body":"b"}`)
			w.post(200, "/v1/runs/"+child+"/bind", `{}`)
			if got := w.get(200, "/v1/dispatches/"+part); got.text("dispatch", "state") != "ready" {
				t.Errorf("the part is %s", got.raw)
			}
		})
	}
}

// TestAHeaderMakesNoContextForAWorker: its terminal is what the hub knows of it.
func TestAHeaderMakesNoContextForAWorker(t *testing.T) {
	w := newWorld(t)
	c, victim := w.coordinator(), w.coordinator()
	child := victim.child()
	var terminal hub.TerminalID
	if err := w.store.View(t.Context(), func(rx store.Rx) error {
		a, _, err := rx.Attachment("", hub.DispatchID(victim.dispatch))
		terminal = a.Terminal
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Wavehub-Context": "terminal:" + string(terminal), "Wavehub-Consumer": testTokens{}.Consumer(hub.RunID(child), 1)} {
		q := request{method: "POST", path: "/v1/mailboxes/run:" + child + "/check", body: `{}`, token: c.token, header: map[string]string{name: value}}
		if got := w.do(q); got.code() != "out_of_scope" {
			t.Errorf("%s: %d %s", name, got.status, got.raw)
		}
	}
}
