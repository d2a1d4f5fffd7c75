//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// verbs is every verb and arguments that its command line lacks something with.
var verbs = map[string][]string{
	"status": {"x"}, "version": {"x"}, "run create": {}, "run current": {"x"}, "run show": {}, "run list": {"x"}, "run use": {},
	"task create": {}, "task list": {"x"}, "task show": {}, "task update": {}, "task cancel": {}, "worker start": {}, "worker list": {"x"}, "worker show": {},
	"worker read": {}, "worker wait": {}, "worker stop": {}, "worker abandon": {}, "send": {}, "done": {}, "ask": {}, "check": {"x"}, "reply": {},
	"message show": {}, "question list": {"x"}, "progress": {}, "config set": {"log_level"},
	"request show": {}, "watch": {}, "events": {}, "wave watch": {}, "peer invite": {"x"}, "peer add": {"only-a-name"}, "peer list": {"x"}, "peer show": {},
	"peer invite list": {"x"}, "peer invite revoke": {}, "peer rename": {"one"}, "peer set": {"one"}, "peer grant": {"one"}, "peer remove": {},
	"peer ping": {}, "peer rotate": {"x"}, "peer reverse": {"x", "sideways"},
	"repo add": {}, "repo list": {"x"}, "worktree list": {"x"}, "worktree create": {}, "worktree show": {}, "worktree remove": {},
	"terminal create": {"x"}, "terminal list": {"x"}, "terminal show": {}, "terminal read": {}, "terminal send": {}, "terminal wait": {}, "terminal close": {}, "serve": {"x"}, "config show": {"x"}, "config path": {},
	"dispatch": {}, "worker-identity register": {}, "worker-identity list": {"x"}, "worker-identity drain": {}, "worker-identity revoke": {},
	"wave plan": {}, "wave create": {}, "wave run": {}, "wave spawn": {}, "wave status": {}, "wave list": {"x"}, "wave cancel": {}, "wave retry": {},
	"wave graph": {}, "wave task add": {"w1"}, "wave task update": {"w1", "a"},
	"attach": {}, "session get": {}, "session set-backend-ctx": {"x"}, "restore": {},
}

func TestVerbs_BadCommandLinesExit2(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	for verb, args := range verbs {
		words := strings.Fields(verb)
		if r := h.CLI(append(words, "--no-such-flag")...); r.Code != 2 || r.Stdout != "" || r.Stderr == "" {
			t.Errorf("%s --no-such-flag: exit %d\n%s%s", verb, r.Code, r.Stdout, r.Stderr)
		}
		if r := h.CLI(append(words, args...)...); r.Code != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, "invalid_argument") {
			t.Errorf("%s %q: exit %d\n%s%s", verb, args, r.Code, r.Stdout, r.Stderr)
		}
		if r := h.CLI(append(words, "--help")...); r.Code != 0 || !strings.Contains(r.Stdout, words[0]) {
			t.Errorf("%s --help: exit %d", verb, r.Code)
		}
	}
	for _, args := range [][]string{{"nonsense"}, {"run", "nonsense"}, {"run"}, {"status", "--timeout", "soon"}, {"status", "--retry-request", id.New("req_")},
		{"run", "create", "--objective", "x", "--retry-request", "req_x"}, {"run", "create", "--objective", "x", "--bind", "--no-bind"}} {
		if r := h.CLI(args...); r.Code != 2 {
			t.Errorf("%q: exit %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
		}
	}
}

func TestVerbs_ExitCodesAreThoseOfTheCatalogue(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("codes")
	c := run.Caller
	w := run.heldWorker(t, h)
	h.NewRun("has the terminal that these tests may be run from")
	for _, x := range []struct {
		code string
		by   Caller
		args []string
	}{
		{"run_not_found", c, []string{"run", "show", id.New("run_")}},
		{"run_not_found", c, []string{"run", "use", id.New("run_")}},
		{"task_not_found", c, []string{"task", "show", id.New("task_")}},
		{"dispatch_not_found", c, []string{"worker", "show", id.New("dispatch_")}},
		{"dispatch_not_found", c, []string{"worker", "wait", id.New("dispatch_")}},
		{"dispatch_not_found", c, []string{"worker", "stop", id.New("dispatch_")}},
		{"dispatch_not_found", c, []string{"worker", "abandon", id.New("dispatch_")}},
		{"dispatch_not_found", c, []string{"worker", "read", id.New("dispatch_")}},
		{"message_not_found", c, []string{"reply", "--id", id.New("msg_"), "--body", "x"}},
		{"message_not_found", c, []string{"message", "show", id.New("msg_")}},
		{"run_not_found", c, []string{"question", "list", "--run", id.New("run_")}},
		{"invalid_argument", c, []string{"question", "list", "--state", "open"}},
		{"invalid_argument", c, []string{"progress", "outside"}},
		{"invalid_argument", c, []string{"config", "set", "listen", "nowhere"}},
		{"invalid_argument", c, []string{"config", "set", "nmae", "x"}},
		{"run_not_found", StartHub(t, "empty").Caller(), []string{"run", "use", "--latest", "--consumer-file", filepath.Join(t.TempDir(), "f")}},
		{"request_not_found", c, []string{"request", "show", id.New("req_")}},
		{"peer_not_found", c, []string{"peer", "show", "nobody"}},
		{"repo_not_found", c, []string{"worker", "start", "--task", run.Task("x"), "--repo", "none", "--worktree", "new-top-level", "--name", "x", "--agent", "sh"}},
		{"worktree_not_found_on_server", c, []string{"worker", "start", "--task", run.Task("x"), "--worktree", "nowhere", "--agent", "sh"}},
		{"peer_not_found", c, []string{"worker", "start", "--task", run.Task("x"), "--on", "nobody", "--worktree", "path:/", "--agent", "sh"}},
		{"agent_unconfigured", c, []string{"worker", "start", "--task", run.Task("x"), "--worktree", "path:" + t.TempDir(), "--agent", "nobody"}},
		{"consumer_required", h.Caller(), []string{"check", "--run", run.Run}},
		{"out_of_scope", w.Caller(), []string{"run", "create", "--objective", "x", "--no-bind"}},
		{"worker_not_found", c, []string{"worker-identity", "drain", "nobody"}},
		{"worker_not_found", c, []string{"dispatch", "--task", run.Task("x"), "--to", "worker:nobody"}},
		{"terminal_not_found", c, []string{"dispatch", "--task", run.Task("x"), "--to", "terminal:" + id.New("term_")}},
		{"session_not_found", c, []string{"session", "get", "nothing"}},
		{"wave_not_found", c, []string{"wave", "status", "nothing"}},
		{"wave_not_found", c, []string{"wave", "graph", "nothing"}},
		{"wave_not_found", c, []string{"wave", "spawn", "nothing"}},
		{"wave_not_found", c, []string{"wave", "cancel", "nothing"}},
		{"wave_not_found", c, []string{"wave", "retry", "nothing"}},
		{"wave_not_found", c, []string{"wave", "task", "add", "nothing", "a", "--goal", "g", "--worker", "w"}},
		{"wave_not_found", c, []string{"wave", "task", "update", "nothing", "a", "--goal", "g"}},
		{"run_not_found", c, []string{"wave", "list", "--run", id.New("run_")}},
		{"run_not_found", c, []string{"wave", "create", "--goal", "g", "--run", id.New("run_")}},
		{"invalid_argument", c, []string{"wave", "create", "--goal", "g", "--order", "sideways"}},
		{"invalid_argument", c, []string{"wave", "list", "--status", "gone"}},
		{"out_of_scope", w.Caller(), []string{"wave", "create", "--goal", "g"}},
		{"invalid_argument", w.Caller(), []string{"send", "--to", run.Box(), "--type", "status", "--subject", "s", "--body", "b"}},
		{"invalid_argument", w.Caller(), []string{"check", "--run", run.Run}},
		{"invalid_argument", w.Caller(), []string{"ask", "--question", "Which?", "--option", "a", "--option", "b", "--option", "a"}},
		{"invalid_token", h.Caller("WAVEHUB_DISPATCH_FILE=/nonexistent"), []string{"status"}},
		{"lifecycle_invalid", w.Caller(), []string{"send", "--type", "worker_done", "--subject", "s", "--body", "b"}},
		{"hub_unreachable", NewHub(t, "none").Caller(), []string{"status"}},
	} {
		if r := x.by.CLI(append(x.args, "--json")...); r.Code != exitOf(t, x.code) || !strings.Contains(r.Stderr, `"`+x.code+`"`) {
			t.Errorf("%q: exit %d, want %d %s\n%s%s", x.args, r.Code, exitOf(t, x.code), x.code, r.Stdout, r.Stderr)
		}
	}
}

func TestVerbs_TheTourWithoutPeers(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	status := get[api.HubStatus](t, h.Caller(), "status")
	if status.Hub.Name != "mac" || status.Hub.Url != h.Endpoint().URL || status.Hub.Fingerprint != h.Endpoint().Fingerprint || status.Hub.StoreId == "" {
		t.Errorf("status: %+v", status)
	}
	run := h.NewRun("tour")
	g := newGate(t)
	start := run.Work(`"$WAVEHUB_BIN" send --type status --subject half --body-file - --milestone half <<X
half way
X
` + g.wait() + `"$WAVEHUB_BIN" check > guidance; echo '{"n": 1}' > result; "$WAVEHUB_BIN" done "$(cat guidance)" --result-file result`)
	half := run.Check()
	if half.Count != 1 || half.Messages[0].Body != "half way\n" || half.Messages[0].Subject != "half" {
		t.Errorf("the status is %+v", half.Messages)
	}
	get[api.CheckResult](t, run.Caller, "check", "--ack", *half.DeliveryId)
	get[api.SendResult](t, run.Caller, "send", "--to", "dispatch:"+start.DispatchId, "--type", "guidance", "--subject", "hint", "--body", "look at main.go")
	g.open(t, 1)
	if m := run.Done(start.DispatchId); !strings.Contains(m.Body, "look at main.go") || !strings.Contains(string(m.Payload), `{"n":1}`) && !strings.Contains(string(m.Payload), `{"n": 1}`) {
		t.Errorf("the report is %q %s", m.Body, m.Payload)
	}
	if task := get[api.TaskOnly](t, run.Caller, "task", "show", start.TaskId).Task; string(task.ResultData) != `{"n":1}` || !strings.Contains(*task.Result, "look at main.go") {
		t.Errorf("the Task keeps %s %s", *task.Result, task.ResultData)
	}
	h.CLI("status", "--json").clean(t)
	if r := run.CLI("worker", "list"); r.Code != 0 || !strings.Contains(r.Stdout, start.DispatchId) {
		t.Errorf("worker list for people: %+v", r)
	}
}

// clean demands one JSON document on stdout and nothing on stderr.
func (r Result) clean(t testing.TB) {
	t.Helper()
	decode[map[string]any](t, r.Stdout)
	if r.Code != 0 || r.Stderr != "" || strings.Count(r.Stdout, "\n") != 1 {
		t.Errorf("%q: %+v", r.Args, r)
	}
}

func TestVerbs_ExitCodesOfWaits(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("waits")
	local, remote := run.heldWorker(t, p.Home), run.heldWorker(t, p.Worker, p.Place()...)
	cmd, wait := run.startWaiting(t, "check", "--wait", "--timeout", "5m")
	must(t, cmd.Process.Signal(os.Interrupt))
	wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("an interrupted wait exits %d", code)
	}
	for _, x := range []struct {
		code int
		args []string
	}{
		{0, local.report("succeeded", "one")}, {0, local.report("succeeded", "one")}, {5, local.report("failed", "two")},
	} {
		if r := local.Caller().CLI(append(x.args, "--wait-verdict")...); r.Code != x.code {
			t.Errorf("%q: exit %d, want %d\n%s%s", x.args, r.Code, x.code, r.Stdout, r.Stderr)
		}
	}
	p.Home.Kill()
	if r := remote.Caller().CLI(append(remote.report("succeeded", "x"), "--wait-verdict", "--timeout", "200ms")...); r.Code != 7 {
		t.Errorf("a verdict that does not come: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	p.Home.Start()
	if r := remote.Caller().CLI(append(remote.report("succeeded", "x"), "--wait-verdict", "--timeout", "60s", "--json")...); r.Code != 0 {
		t.Errorf("the verdict on the repeated report: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := remote.Caller().CLI("ask", "--question", "Late?", "--timeout", "1s"); r.Code != exitOf(t, "dispatch_inactive") {
		t.Errorf("ask after the report: exit %d\n%s", r.Code, r.Stderr)
	}
}
