package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

const (
	runDoc     = `{"run":{"run_id":"run_1","objective":"o","generation":1,"parent_run_id":null,"created_at":"t"},"binding":{"run_id":"run_1","generation":1,"consumer_token":"whc_token"},"mutation":{"request_id":"req_1","replayed":false}}`
	bindingDoc = `{"run":{"run_id":"run_1","objective":"o","generation":1,"parent_run_id":null,"created_at":"t"},"mailbox":{"box":"run:run_1","messages":0,"unacknowledged":0,"delivery_id":null},"audit":[]}`
	sentDoc    = `{"message":{"message_id":"msg_1","seq":9007199254740993},"state":"queued","verdict":null,"mutation":{"request_id":"req_1","replayed":false}}`
	runsDoc    = `{"runs":[{"run_id":"run_9","objective":"o","generation":1,"parent_run_id":null,"created_at":"t"}],"next_cursor":null}`
	timedOut   = `{"run_id":"run_1","delivery_id":null,"messages":[],"count":0,"replayed":false,"waiting_behind":0,"acknowledged":null,"timed_out":true,"cancelled":false,"connection_lost":false,"mutation":{"request_id":"r","replayed":false}}`
)

func receiptDoc(state string) string {
	return `{"run_id":"run_1","task_id":"task_1","dispatch_id":"dispatch_1","state":"` + state + `","dispatch_state":"starting","stage":"accepted","server":{"peer_id":null,"name":"n"},"setup":{"requested":"","effective":"none","source":"default","hook_found":false,"startup_policy":"","state":"not_applicable"},"readiness_source":null,"timeout_ms":1,"effects":[],"residual_resources":[],"defaults":[],"failed_stage":null,"last_error":"E","next_commands":[],"warnings":[],"mutation":{"request_id":"req_00000000000000000000000001","replayed":false}}`
}

func stopDoc(state string) string {
	return `{"dispatch_id":"dispatch_1","state":"` + state + `","already_settled":false,"process_action":"unknown","residual_resources":[],"next_commands":[],"last_error":null,"mutation":{"request_id":"req_00000000000000000000000001","replayed":false}}`
}

func TestExitCodes(t *testing.T) {
	start := []string{"worker", "start", "--task", "task_1", "--worktree", "current", "--agent", "sh"}
	stop := []string{"worker", "stop", "dispatch_1"}
	done := []string{"done", "B", "--wait-verdict"}
	cases := []struct {
		name, route string
		status      int
		doc         string // of a result, or the code of a problem
		args        []string
		want        int
		inDispatch  bool
	}{
		{"ready", "POST /v1/tasks/task_1/workers", 201, receiptDoc("ready"), start, 0, false},
		{"starting", "POST /v1/tasks/task_1/workers", 201, receiptDoc("starting"), append(start, "--no-wait"), 0, false},
		{"failed start", "POST /v1/tasks/task_1/workers", 201, receiptDoc("failed"), start, 1, false},
		{"unknown start", "POST /v1/tasks/task_1/workers", 202, receiptDoc("outcome_unknown"), start, 10, false},
		{"stopped", "POST /v1/dispatches/dispatch_1/stop", 200, stopDoc("stopped"), stop, 0, false},
		{"stop that goes on", "POST /v1/dispatches/dispatch_1/stop", 202, stopDoc("stopping"), stop, 10, false},
		{"unknown stop", "POST /v1/dispatches/dispatch_1/stop", 202, stopDoc("stop_unknown"), stop, 10, false},
		{"check timed out", "POST /v1/mailboxes/dispatch:dispatch_1/check", 200, timedOut, []string{"check", "--wait"}, 0, true},
		{"check timed out, asked for", "POST /v1/mailboxes/dispatch:dispatch_1/check", 200, timedOut, []string{"check", "--wait", "--exit-status"}, 7, true},
		{"accepted", "GET /v1/messages/msg_1/verdict", 200, `{"message_id":"msg_1","verdict":"accepted","timed_out":false}`, done, 0, true},
		{"duplicate", "GET /v1/messages/msg_1/verdict", 200, `{"message_id":"msg_1","verdict":"duplicate","timed_out":false}`, done, 0, true},
		{"stale", "GET /v1/messages/msg_1/verdict", 200, `{"message_id":"msg_1","verdict":"stale","reason":"stopped","timed_out":false}`, done, 5, true},
		{"rejected", "GET /v1/messages/msg_1/verdict", 200, `{"message_id":"msg_1","verdict":"rejected","timed_out":false}`, done, 5, true},
		{"no verdict", "GET /v1/messages/msg_1/verdict", 200, `{"message_id":"msg_1","verdict":null,"timed_out":true}`, done, 7, true},
		{"usage", "GET /v1/hub", 400, "invalid_argument", []string{"status"}, 2, false},
		{"not found", "GET /v1/runs/run_1", 404, "run_not_found", []string{"run", "show", "run_1"}, 3, false},
		{"credential", "GET /v1/hub", 401, "invalid_token", []string{"status"}, 4, false},
		{"conflict", "POST /v1/runs", 409, "already_bound", []string{"run", "create", "--objective", "o", "--bind"}, 5, false},
		{"busy", "GET /v1/hub", 503, "hub_draining", []string{"status"}, 6, false},
		{"hub failed", "GET /v1/hub", 500, "internal", []string{"status"}, 1, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t)
			h.on("POST /v1/messages", 201, sentDoc)
			if c.inDispatch {
				h.enterDispatch()
			}
			if c.status >= 400 {
				h.fail(c.route, c.status, c.doc)
			} else {
				h.on(c.route, c.status, c.doc)
			}
			wavehub(t, c.args...).want(t, c.want)
			r := wavehub(t, append(c.args, "--json")...)
			r.want(t, c.want)
			if c.status >= 400 && (r.out != "" || !json.Valid([]byte(r.errout)) || !strings.Contains(r.errout, c.doc)) {
				t.Errorf("stdout %q, stderr %q", r.out, r.errout)
			}
		})
	}
}

// TestEveryCodeHasItsExitCode: whatever a hub refuses with, the command ends as
// the catalogue says.
func TestEveryCodeHasItsExitCode(t *testing.T) {
	h := newHub(t)
	spec, err := api.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range spec.Components.Schemas["ErrorCode"].Value.Enum {
		code := name.(string)
		info := hub.Code(code).Info()
		h.fail("GET /v1/hub", info.Status, code)
		wavehub(t, "status").want(t, info.Exit, "T of "+code, "("+code+")")
	}
}

func TestUsageErrors(t *testing.T) {
	newHub(t)
	for _, line := range []string{
		"", "nope", "run", "run nope", "run show", "run show a b", "status x", "status --nope", "check --ack", "check --ack=",
		"check --peek --ack delivery_1", "check --all --ack delivery_1", "check --peek --all", "check --wait --timeout 11m", "status --timeout -1s", "status --timeout x",
		"run create", "run create --objective o --bind --no-bind", "task create --run run_1", "worker start --task t", "worker start --worktree current",
		"send --subject s", "send --type status", "done x", "ask", "ask --resume msg_1 --question q", "reply --body b", "peer add n u", "config path nope",
		"status --retry-request req_00000000000000000000000001", "run create --objective o --retry-request req_1", "send --to run:r --type status --payload {", "send --to run:r --type status --body-file /nonexistent",
		"task update t --title x --if-match=", "task create --run run_1 --spec s --retry-request=", "task create --spec s --run=", "worker list --task=", "worker start --task t --worktree current --agent sh --retry-of=",
	} {
		r := wavehub(t, strings.Fields(line)...)
		if r.code != 2 || r.out != "" || !strings.Contains(r.errout, "(invalid_argument)") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", line, r.code, r.out, r.errout)
		}
	}
	wavehub(t, "statis").want(t, 2, "did you mean status?", "--help")
	r := wavehub(t, "run", "show", "--json")
	var p client.Problem
	if err := json.Unmarshal([]byte(r.errout), &p); err != nil || p.Code != "invalid_argument" || r.code != 2 {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestJSONIsPassedOnAsReceived(t *testing.T) {
	h := newHub(t)
	doc := `{"counts":{"runs":1,"tasks":2,"dispatches_live":3,"messages":4},  "hub":{"hub_id":"h","name":"n\u003c","version":"v","url":"u","fingerprint":"f","store_id":"s","store_epoch":9007199254740993,"features":[],"started_at":"t"},"future":[1.50]}`
	h.on("GET /v1/hub", 200, " \n"+doc+"\n")
	r := wavehub(t, "status", "--json")
	r.want(t, 0)
	if r.out != doc+"\n" || r.errout != "" {
		t.Errorf("stdout %q, stderr %q", r.out, r.errout)
	}
	if got := h.last().head.Get("Authorization"); got != "Bearer whu_operator" {
		t.Errorf("credential %q", got)
	}
	wavehub(t, "status").want(t, 0, "1 runs, 2 tasks, 3 live dispatches, 4 messages")
}

func TestProblemsOfTheProgramHaveTheirStatus(t *testing.T) {
	newHub(t)
	wavehub(t, "run", "show", "--json").want(t, 2, `"status":400`)
}

func TestVersionsOfATask(t *testing.T) {
	h := newHub(t)
	h.fail("PATCH /v1/tasks/task_1", 412, "precondition_failed")
	for given, sent := range map[string]string{"5": `"v5"`, "v5": `"v5"`, `"v5"`: `"v5"`, "*": "*", "five": "five"} {
		wavehub(t, "task", "update", "task_1", "--title", "x", "--if-match", given).want(t, 5, "(precondition_failed)")
		if got := h.last().head.Get("If-Match"); got != sent {
			t.Errorf("--if-match %s sends %s", given, got)
		}
	}
}

func TestRunRequired(t *testing.T) {
	h := newHub(t)
	h.on("GET /v1/runs", 200, runsDoc)
	h.fail("GET /v1/binding", 403, "consumer_required")
	for _, args := range [][]string{{"task", "list"}, {"task", "create", "--spec", "s"}, {"check"}} {
		wavehub(t, args...).want(t, 2, "(run_required)", "wavehub run create --objective 'Describe the goal'", "wavehub run use run_9")
	}
	t.Setenv(envConsumer, "whc_x")
	wavehub(t, "task", "list").want(t, 2, "(run_required)", "the consumer token of the environment", "wavehub run use run_9")
	h.fail("GET /v1/binding", 409, "consumer_fenced")
	wavehub(t, "task", "list").want(t, 5, "(consumer_fenced)")
	h.on("GET /v1/binding", 200, bindingDoc)
	h.on("GET /v1/runs/run_1/tasks", 200, `{"tasks":[],"next_cursor":null}`)
	wavehub(t, "task", "list", "--json").want(t, 0, `{"tasks":[],"next_cursor":null}`)
	if head := h.last().head; head.Get("Wavehub-Consumer") != "whc_x" || head.Get("Wavehub-Context") != "" {
		t.Errorf("headers %v", head)
	}
	h.on("GET /v1/runs/run_2/tasks", 200, `{"tasks":[],"next_cursor":null}`)
	wavehub(t, "--run", "run_2", "task", "list").want(t, 0)
}

func TestRecoverCommand(t *testing.T) {
	h := newHub(t)
	h.handle("POST /v1/runs/run_1/tasks", lose)
	r := wavehub(t, "--run", "run_1", "task", "create", "--spec", "go vet ./... && echo 'x'")
	r.want(t, 10, "(outcome_unknown)")
	key := h.last().head.Get("Idempotency-Key")
	if !id.Valid("req_", key) {
		t.Fatalf("key %q", key)
	}
	r.want(t, 10, "request: "+key, `recover: wavehub --run run_1 task create --spec 'go vet ./... && echo '\''x'\''' --retry-request `+key)

	r = wavehub(t, "task", "create", "--json", "--retry-request="+key, "--run", "run_1", "--spec", "s")
	var p client.Problem
	if err := json.Unmarshal([]byte(r.errout), &p); err != nil || r.code != 10 || p.Code != "outcome_unknown" || p.RequestId != key {
		t.Fatalf("%v: %+v", err, r)
	}
	want := "wavehub task create --json --run run_1 --spec s --retry-request " + key
	if len(p.NextCommands) != 1 || strings.Join(p.NextCommands[0], " ") != want {
		t.Errorf("next commands %v", p.NextCommands)
	}
	if got := h.last().head.Get("Idempotency-Key"); got != key {
		t.Errorf("the replay has key %q", got)
	}
}

// TestRecoveryWithoutItsInput: a command that read stdin would not be the same
// when it is pasted.
func TestRecoveryWithoutItsInput(t *testing.T) {
	h := newHub(t)
	send := []string{"send", "--to", "run:run_1", "--type", "status", "--body-file", "-"}
	h.handle("POST /v1/messages", lose)
	r := wavehubIn(t, t.Context(), "text", send...)
	key := h.last().head.Get("Idempotency-Key")
	r.want(t, 10, "recover: wavehub request show "+key, "hint: repeat it with the same input and --retry-request "+key)
	h.handle("POST /v1/messages", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 503, "application/problem+json", `{"code":"hub_draining","title":"T","status":503,"retry":"same_request"}`)
	})
	r = wavehubIn(t, t.Context(), "text", send...)
	if r.want(t, 6, "with the same input"); strings.Contains(r.errout, "recover:") {
		t.Errorf("stderr %q", r.errout)
	}
}

// TestALostVerdictIsWaitedForAgain: the report is on record, so repeating the
// command only waits on.
func TestALostVerdictIsWaitedForAgain(t *testing.T) {
	h := newHub(t)
	h.enterDispatch()
	h.on("POST /v1/messages", 201, sentDoc)
	h.handle("GET /v1/messages/msg_1/verdict", lose)
	wavehub(t, "done", "B", "--wait-verdict").want(t, 7, "recover: wavehub done B --wait-verdict --retry-request req_1")
}

func TestReceiptWithoutProofPrintsRecovery(t *testing.T) {
	h := newHub(t)
	h.on("POST /v1/dispatches/dispatch_1/stop", 202, stopDoc("stop_unknown"))
	r := wavehub(t, "worker", "stop", "dispatch_1", "--json")
	r.want(t, 10, "outcome_unknown", `"--retry-request","req_00000000000000000000000001"`)
	if r.out != stopDoc("stop_unknown")+"\n" {
		t.Errorf("stdout %q", r.out)
	}
}

func TestUnreachable(t *testing.T) {
	h := newHub(t)
	h.srv.Close()
	r := wavehub(t, "run", "create", "--objective", "o", "--bind")
	r.want(t, 6, "(hub_unreachable)", "recover: wavehub run create --objective o --bind --retry-request req_")
	t.Setenv("WAVEHUB_HOME", t.TempDir())
	wavehub(t, "status").want(t, 6, "(hub_unreachable)", "wavehub serve")
}

func TestIdentityMismatchSendsNothing(t *testing.T) {
	h, other := newHub(t), newHub(t) // the environment names the second
	data := filepath.Join(os.Getenv("WAVEHUB_HOME"), "data")
	h.write(filepath.Join(data, "endpoint"), `{"url":"`+other.srv.URL+`","fingerprint":"hub_other","hub_id":"h"}`, 0o600)
	wavehub(t, "status").want(t, 4, "(hub_identity_mismatch)")
	if n := len(other.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestCapabilityNeverFallsBack(t *testing.T) {
	h := newHub(t)
	h.on("GET /v1/hub", 200, `{}`)
	path := h.enterDispatch()
	h.on("POST /v1/messages", 201, sentDoc)
	wavehub(t, "done", "B", "--json").want(t, 0, sentDoc)
	sent := h.last()
	if sent.head.Get("Authorization") != "Bearer whd_capability" || sent.head.Get("Wavehub-Context") != "" {
		t.Errorf("headers %v", sent.head)
	}
	want := `{"body":"B","dispatch_id":"dispatch_1","outcome":"succeeded","subject":"succeeded","task_id":"task_1","type":"worker_done"}`
	if sent.body != want {
		t.Errorf("sent %s", sent.body)
	}
	before := len(h.requests())
	for name, spoil := range map[string]func(){
		"garbage": func() { h.write(h.enterDispatch(), "{}", 0o600) },
		"link": func() {
			link := path + "link"
			if err := os.Symlink(path, link); err != nil {
				t.Logf("no link can be made here, a missing file stands in: %v", err)
			}
			t.Setenv(envDispatchFile, link)
		},
		"missing": func() { t.Setenv(envDispatchFile, path+"x") },
		"empty":   func() { t.Setenv(envDispatchFile, "") },
	} {
		spoil()
		r := wavehub(t, "status")
		if r.code != 4 || !strings.Contains(r.errout, "(invalid_token)") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if n := len(h.requests()); n != before {
		t.Errorf("%d requests were sent with another credential", n-before)
	}
}

func TestMailboxOfCheck(t *testing.T) {
	h := newHub(t)
	h.enterDispatch()
	h.on("POST /v1/mailboxes/dispatch:dispatch_1/check", 200, timedOut)
	h.on("POST /v1/mailboxes/run:run_2/check", 200, timedOut)
	wavehub(t, "check", "--wait", "--timeout", "2s", "--types", "guidance").want(t, 0)
	if got := h.last().body; got != `{"types":["guidance"],"wait_ms":2000}` {
		t.Errorf("sent %s", got)
	}
	wavehub(t, "check", "--run", "run_2").want(t, 2, "(invalid_argument)", "--run inside a Dispatch")
	wavehub(t, "check", "--mailbox", "run", "--run", "run_2").want(t, 0)
	wavehub(t, "check", "--mailbox", "dispatch", "--run", "run_2").want(t, 0)
	t.Setenv(envConsumer, "whc_x")
	wavehub(t, "check").want(t, 2, "(mailbox_ambiguous)", "try: wavehub check --mailbox dispatch", "try: env -u WAVEHUB_DISPATCH_FILE wavehub check\n")
	wavehub(t, "check", "--run", "run_2").want(t, 2, "(mailbox_ambiguous)", "try: env -u WAVEHUB_DISPATCH_FILE wavehub check --run run_2\n")
	t.Setenv(envTerminal, "term_1") // one of the worker's own processes cannot leave the Dispatch
	if r := wavehub(t, "check"); r.code != 2 || strings.Contains(r.errout, "env -u") {
		t.Errorf("inside: %+v", r)
	}
}

func TestConsumerFile(t *testing.T) {
	h := newHub(t)
	h.on("POST /v1/runs", 201, runDoc)
	dir := t.TempDir()
	path := filepath.Join(dir, "consumer")
	wavehub(t, "run", "create", "--objective", "o", "--consumer-file", filepath.Join(dir, "no", "folder")).want(t, 2)
	if n := len(h.requests()); n != 0 {
		t.Fatalf("%d requests, though the token could not be kept", n)
	}
	wavehub(t, "run", "create", "--objective", "o", "--consumer-file", path, "--json").want(t, 0, runDoc)
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != "whc_token\n" {
		t.Fatalf("file %q: %v", raw, err)
	}
	wavehub(t, "run", "create", "--objective", "o", "--consumer-file", path).want(t, 0) // a consumer file may be replaced
	t.Setenv(envConsumerFile, path)
	h.on("GET /v1/binding", 200, bindingDoc)
	wavehub(t, "run", "current").want(t, 0, "run_1")
	if got := h.last().head.Get("Wavehub-Consumer"); got != "whc_token" {
		t.Errorf("consumer %q", got)
	}
	other := filepath.Join(dir, "other")
	h.write(other, "precious", 0o600)
	wavehub(t, "run", "use", "run_1", "--consumer-file", other).want(t, 2)
	fresh := filepath.Join(dir, "fresh")
	wavehub(t, "run", "use", "run_1", "--consumer-file", fresh).want(t, 3)
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("the reserved file stays: %v", err)
	}
	t.Setenv(envConsumerFile, fresh) // named before it is made
	wavehub(t, "run", "create", "--objective", "o", "--no-bind").want(t, 0)
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("--no-bind makes a consumer file: %v", err)
	}
	wavehub(t, "run", "create", "--objective", "o").want(t, 0)
	if raw, err := os.ReadFile(fresh); err != nil || string(raw) != "whc_token\n" {
		t.Errorf("file %q: %v", raw, err)
	}
	if err := os.Remove(fresh); err != nil {
		t.Fatal(err)
	}
	h.on("POST /v1/runs/run_1/bind", 200, runDoc)
	wavehub(t, "check", "--run", "run_1").want(t, 4, "(invalid_token)")
	wavehub(t, "run", "use", "run_1").want(t, 0)
	if raw, err := os.ReadFile(fresh); err != nil || string(raw) != "whc_token\n" || h.last().head.Get("Wavehub-Context") != "" {
		t.Errorf("file %q: %v", raw, err)
	}
}

// A consumer that neither a terminal nor a file keeps is shown.
func TestAKeptTokenIsNotShown(t *testing.T) {
	h := newHub(t)
	h.on("POST /v1/runs", 201, runDoc)
	r := wavehub(t, "run", "create", "--objective", "o")
	kept := h.last().head.Get("Wavehub-Context") != ""
	if shown := strings.Contains(r.out, "WAVEHUB_CONSUMER=whc_token"); r.code != 0 || shown == kept {
		t.Errorf("with a terminal %v: %q", kept, r.out)
	}
	if r := wavehub(t, "run", "create", "--objective", "o", "--consumer-file", filepath.Join(t.TempDir(), "f")); strings.Contains(r.out, "whc_token") {
		t.Errorf("a kept token is shown: %q", r.out)
	}
}

func TestAsk(t *testing.T) {
	h := newHub(t)
	h.enterDispatch()
	h.on("POST /v1/messages", 201, sentDoc)
	var waits []string
	h.handle("GET /v1/messages/msg_1/answer", func(w http.ResponseWriter, r *http.Request) {
		waits = append(waits, r.URL.Query().Get("wait_ms"))
		reply(w, 200, "application/json", `{"message_id":"msg_1","thread_id":"msg_1","answer":null,"answer_message_id":null,"timed_out":true,"resume_command":["wavehub","ask","--resume","msg_1"]}`)
	})
	r := wavehub(t, "ask", "--question", "Q", "--option", "a", "--option", "b, c", "--json")
	r.want(t, 0)
	var out struct {
		TimedOut bool     `json:"timed_out"`
		Resume   []string `json:"resume_command"`
	}
	if err := json.Unmarshal([]byte(r.out), &out); err != nil || !out.TimedOut || strings.Join(out.Resume, " ") != "wavehub ask --resume msg_1" {
		t.Errorf("%v: %q", err, r.out)
	}
	if !strings.Contains(r.errout, "wavehub ask --resume msg_1") {
		t.Errorf("stderr %q", r.errout)
	}
	wavehub(t, "ask", "--resume", "msg_1", "--timeout", "5s", "--exit-status").want(t, 7, "wavehub ask --resume msg_1")
	wavehub(t, "ask", "--resume", "msg_1", "--timeout", "0").want(t, 0)
	if strings.Join(waits, " ") != "90000 5000 0" {
		t.Errorf("waits %v", waits)
	}
	h.fail("GET /v1/messages/msg_1/answer", 409, "dispatch_inactive")
	wavehub(t, "ask", "--resume", "msg_1").want(t, 5, "(dispatch_inactive)")
	h.handle("GET /v1/messages/msg_1/answer", lose)
	wavehub(t, "ask", "--question", "Q", "--json").want(t, 7, `"connection_lost":true`, `"resume_command":["wavehub","ask","--resume","msg_1"]`)
}

func TestVerdictIsPutIntoTheAnswer(t *testing.T) {
	h := newHub(t)
	h.enterDispatch()
	h.on("POST /v1/messages", 201, sentDoc)
	h.on("GET /v1/messages/msg_1/verdict", 200, `{"message_id":"msg_1","verdict":"stale","reason":"stopped","timed_out":false}`)
	r := wavehub(t, "send", "--type", "worker_done", "--task-id", "task_1", "--dispatch-id", "dispatch_1", "--outcome", "succeeded", "--body", "B", "--wait-verdict", "--json")
	r.want(t, 5, `"verdict":"stale"`, `"reason":"stopped"`, `"seq":9007199254740993`)
	h.handle("GET /v1/messages/msg_1/verdict", lose) // the report is stored: it is shown, and its verdict is open
	wavehub(t, "done", "B", "--wait-verdict", "--json").want(t, 7, `"message_id":"msg_1"`, `"verdict":null`)
}

func TestInputs(t *testing.T) {
	h := newHub(t)
	h.enterDispatch()
	h.on("POST /v1/messages", 201, sentDoc)
	dir := t.TempDir()
	h.write(filepath.Join(dir, "json"), `{"a": 1}`, 0o644)
	h.write(filepath.Join(dir, "text"), "plain", 0o644)
	wavehubIn(t, t.Context(), "from stdin", "send", "--type", "status", "--body-file", "-", "--result-file", filepath.Join(dir, "json")).want(t, 0)
	if got := h.last().body; got != `{"body":"from stdin","result":{"a":1},"type":"status"}` {
		t.Errorf("sent %s", got)
	}
	wavehub(t, "done", "--body-file", filepath.Join(dir, "text"), "--failed", "--result-file", filepath.Join(dir, "text")).want(t, 0)
	if got := h.last().body; !strings.Contains(got, `"body":"plain"`) || !strings.Contains(got, `"result":"plain"`) || !strings.Contains(got, `"outcome":"failed"`) {
		t.Errorf("sent %s", got)
	}
	wavehubIn(t, t.Context(), "\xff", "send", "--type", "status", "--body-file", "-").want(t, 2, "not valid UTF-8")
}

func TestPathsAreMadeAbsolute(t *testing.T) {
	h := newHub(t)
	h.on("POST /v1/pairing/invites", 201, `{"invite":{"invite_id":"invite_1","code":"c","addresses":[],"fingerprint":"f","expires_at":"t","grants":{"verbs":[],"repos":[],"max_workers":0}},"mutation":{"request_id":"r","replayed":false}}`)
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	wavehub(t, "peer", "invite", "--allow-repo", "x", "--allow-repo", "y", "--ttl", "10m").want(t, 0, "code: c")
	var sent client.InviteCreate
	if err := json.Unmarshal([]byte(h.last().body), &sent); err != nil {
		t.Fatal(err)
	}
	if sent.TtlMs != 600000 || len(sent.AllowRepos) != 2 || sent.AllowRepos[0] != filepath.Join(cwd, "x") {
		t.Errorf("sent %+v", sent)
	}
	h.on("POST /v1/tasks/task_1/workers", 201, receiptDoc("ready"))
	wavehub(t, "worker", "start", "--task", "task_1", "--worktree", "current", "--agent", "sh", "--timeout", "1500us").want(t, 0)
	var start client.WorkerStart
	if err := json.Unmarshal([]byte(h.last().body), &start); err != nil || start.CurrentDir != cwd || start.TimeoutMs != 2 {
		t.Errorf("sent %+v, %v", start, err)
	}
}

func TestPairingCodeIsNotAskedForWithoutATerminal(t *testing.T) {
	h := newHub(t)
	wavehubIn(t, t.Context(), "code\n", "peer", "add", "windows", "https://127.0.0.1:1").want(t, 2, "--code-file")
	wavehubIn(t, t.Context(), " code \n", "peer", "add", "windows", "https://127.0.0.1:1", "--code-file", "-").want(t, 3)
	if got := h.last().body; got != `{"code":"code","name":"windows","url":"https://127.0.0.1:1"}` {
		t.Errorf("sent %s", got)
	}
}

func TestInterrupted(t *testing.T) {
	h := newHub(t)
	h.enterDispatch()
	arrived := make(chan struct{})
	left := make(chan struct{})
	h.handle("POST /v1/mailboxes/dispatch:dispatch_1/check", func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(left)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	wavehubIn(t, ctx, "", "check", "--wait").want(t, exitInterrupted)
	<-left // the wait ended at the hub too
}

func TestWorkerTextIsMadeSafe(t *testing.T) {
	h := newHub(t)
	h.on("GET /v1/dispatches/dispatch_1/output", 200, `{"dispatch_id":"dispatch_1","source":"terminal","source_identity":"","provider":null,"server":{"peer_id":null,"name":"n"},"owner_epoch":1,"terminal":{"text":"a\u001b[31mb","truncated":false},"cursor":null,"status":{"worker":"ready","terminal":"live"},"fallback_reason":null,"warnings":[]}`)
	r := wavehub(t, "worker", "read", "dispatch_1", "--limit", "10")
	if r.want(t, 0); strings.ContainsRune(r.out, 0x1b) || h.last().query != "limit=10" {
		t.Errorf("stdout %q, query %q", r.out, h.last().query)
	}
}

func TestConfigInvalid(t *testing.T) {
	h := newHub(t)
	dir := filepath.Join(os.Getenv("WAVEHUB_HOME"), "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.write(filepath.Join(dir, "config.yaml"), "lissten: x\n", 0o600)
	wavehub(t, "status").want(t, 1, "(config_invalid)", "lissten", "config.yaml")
	wavehub(t, "version", "--json").want(t, 0, `"version":"test"`)
	h.enterDispatch() // a worker does not depend on the user's file
	h.on("POST /v1/messages", 201, sentDoc)
	wavehub(t, "done", "B").want(t, 0)
}

func TestConfigPath(t *testing.T) {
	newHub(t)
	home := os.Getenv("WAVEHUB_HOME")
	for what, path := range map[string]string{"ca": "data/cert.pem", "token": "data/token", "config": "config/config.yaml", "data": "data"} {
		if r := wavehub(t, "config", "path", what); r.out != filepath.Join(home, filepath.FromSlash(path))+"\n" {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// TestEveryVerbIsDocumented: each visible command has an example that starts
// with the program's name and that its own flags and arguments accept.
func TestEveryVerbIsDocumented(t *testing.T) {
	a := &app{stdin: &bytes.Buffer{}, stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	root := a.root()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if cmd.Short == "" || cmd.Example == "" {
			t.Errorf("%s lacks Short or Example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			checkExample(t, root, cmd, strings.TrimSuffix(line, "\n"))
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func checkExample(t *testing.T, root, owner *cobra.Command, line string) {
	t.Helper()
	argv := words(line)
	if len(argv) < 2 || argv[0] != "wavehub" {
		t.Errorf("%s: example %q does not start with wavehub", owner.CommandPath(), line)
		return
	}
	cmd, rest, err := root.Find(argv[1:])
	if err != nil || cmd == root {
		t.Errorf("%s: example %q names no verb: %v", owner.CommandPath(), line, err)
		return
	}
	if owner.Runnable() && !owner.HasSubCommands() && cmd != owner {
		t.Errorf("%s: example %q is of %s", owner.CommandPath(), line, cmd.CommandPath())
	}
	flags := pflag.NewFlagSet(line, pflag.ContinueOnError)
	flags.AddFlagSet(cmd.Flags())
	flags.AddFlagSet(cmd.InheritedFlags())
	if err := flags.Parse(rest); err != nil {
		t.Errorf("%s: example %q: %v", owner.CommandPath(), line, err)
		return
	}
	if cmd.Args != nil && cmd.Args(cmd, flags.Args()) != nil {
		t.Errorf("%s: example %q: arguments %v are refused", owner.CommandPath(), line, flags.Args())
	}
}

// words splits a line of double-quoted and plain words.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
