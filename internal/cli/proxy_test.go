package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

const (
	screenDoc        = `{"terminal_id":"term_1","process":"live","size":{"rows":5,"cols":20},"title":null,"lines":["hello"],"scrollback":[],"cursor_row":0,"cursor_col":0,"truncated":false}`
	ownDispatchesDoc = `{"dispatches":[{"dispatch_id":"dispatch_1","task_id":"task_1","run_id":"run_1","state":"ready","reason":null,"retry_of":null,"server":{"peer_id":null,"name":"w"},"created_at":"t","settled_at":null,"outcome":null}],"next_cursor":null}`
)

// TestHubSendsTheSameRequestElsewhere: the verb's own request, with the name of
// the hub that it is for.
func TestHubSendsTheSameRequestElsewhere(t *testing.T) {
	h := newHub(t)
	h.on("GET /v1/repos", 200, `{"repos":[],"next_cursor":null}`)
	h.on("GET /v1/terminals/term_1/screen", 200, screenDoc)
	h.on("GET /v1/dispatches", 200, ownDispatchesDoc)
	wavehub(t, "repo", "list").want(t, 0)
	if _, given := h.last().head["Wavehub-Hub"]; given {
		t.Error("a request to this hub names one")
	}
	wavehub(t, "--hub", "windows", "repo", "list", "--limit", "3", "--json").want(t, 0, `{"repos":[],"next_cursor":null}`)
	if got := h.last(); got.head.Get("Wavehub-Hub") != "windows" || got.query != "limit=3" || got.head.Get("Authorization") != "Bearer whu_operator" {
		t.Errorf("%+v", got)
	}
	wavehub(t, "terminal", "read", "term_1", "--hub=windows").want(t, 0, "hello")
	if h.last().head.Get("Wavehub-Hub") != "windows" {
		t.Errorf("%+v", h.last())
	}
	wavehub(t, "--hub", "windows", "worker", "list").want(t, 0, "dispatch_1\tready\twindows")
	wavehub(t, "worker", "list").want(t, 0, "dispatch_1\tready\tthis hub")
}

// TestHubKnowsNoFolderOfThisMachine: paths are the other hub's, and the caller's
// own folder is no place there.
func TestHubKnowsNoFolderOfThisMachine(t *testing.T) {
	h := newHub(t)
	h.fail("POST /v1/terminals", 403, "repo_not_granted")
	h.fail("POST /v1/worktrees", 403, "repo_not_granted")
	body := func(args ...string) map[string]any {
		t.Helper()
		wavehub(t, append([]string{"--hub", "windows"}, args...)...).want(t, 4, "repo_not_granted")
		var sent map[string]any
		if err := json.Unmarshal([]byte(h.last().body), &sent); err != nil {
			t.Fatal(err)
		}
		return sent
	}
	if got := body("terminal", "create", "--dir", `C:\src\demo`); got["dir"] != `C:\src\demo` || got["current_dir"] != nil {
		t.Errorf("%v", got)
	}
	if got := body("worktree", "create", "--repo", "demo", "--name", "vet", "--parent", `path:D:\x`); got["parent"] != `path:D:\x` || got["current_dir"] != nil {
		t.Errorf("%v", got)
	}
	before := len(h.requests())
	for _, args := range [][]string{
		{"terminal", "create"}, {"terminal", "create", "--worktree", "current"}, {"worktree", "create", "--name", "x"},
		{"worktree", "create", "--repo", "demo", "--name", "x", "--parent", "current"}, {"worktree", "show", "current"},
		{"terminal", "read", "term_01j8zq4"}, {"terminal", "read", "2w3x4y"}, {"worktree", "show", "id:wt_01j8zq4h5"}, {"worker", "show", "dispatch_01j8zq4h5"},
		{"repo", "list", "--hub", ""},
	} {
		wavehub(t, append([]string{"--hub", "windows"}, args...)...).want(t, 2, "invalid_argument")
	}
	if len(h.requests()) != before {
		t.Errorf("%d requests were sent", len(h.requests())-before)
	}
}

// TestHubIsRefusedBeforeAnythingIsSent by every verb that no other hub does.
func TestHubIsRefusedBeforeAnythingIsSent(t *testing.T) {
	h := newHub(t)
	a := &app{stdin: &bytes.Buffer{}, stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	var through []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.HasSubCommands() || cmd.Name() == "help" || strings.Contains(cmd.CommandPath(), "completion") {
			return
		}
		if marked(cmd, isProxied) {
			through = append(through, strings.TrimPrefix(cmd.CommandPath(), "wavehub "))
			return
		}
		args := words(strings.Split(cmd.Example+"\n", "\n")[0])
		if cmd.Hidden {
			return // it is none of a person's
		}
		r := wavehub(t, append([]string{"--hub", "windows"}, args[1:]...)...)
		r.want(t, 4, "out_of_scope", cmd.CommandPath()+" is not done through another hub")
	}
	walk(a.root())
	want := []string{
		"agent list", "repo list", "terminal create", "terminal list", "terminal read", "terminal send", "terminal show", "terminal wait",
		"worker list", "worker show", "worker-identity list", "worktree create", "worktree list", "worktree show",
	}
	if slices.Sort(through); !slices.Equal(through, want) {
		t.Errorf("sent on are %q", through)
	}
	h.enterDispatch()
	wavehub(t, "--hub", "windows", "repo", "list").want(t, 4, "out_of_scope", "inside a Dispatch")
	wavehub(t, "--hub", "windows", "repo").want(t, 2, "needs one of")
	if n := len(h.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestHubKeepsItsNameInTheRecovery: what repeats a request goes to the same hub.
func TestHubKeepsItsNameInTheRecovery(t *testing.T) {
	h := newHub(t)
	h.handle("POST /v1/terminals/term_1/input", func(w http.ResponseWriter, r *http.Request) {
		reply(w, 202, "application/problem+json", `{"code":"outcome_unknown","title":"T","detail":"lost","status":202,"retry":"inspect","request_id":"`+r.Header.Get("Idempotency-Key")+`"}`)
	})
	r := wavehub(t, "--hub", "windows", "terminal", "send", "term_1", "--text", "ls", "--json")
	var p client.Problem
	if err := json.Unmarshal([]byte(r.errout), &p); err != nil || r.code != 10 || p.Code != "outcome_unknown" {
		t.Fatalf("%v: %+v", err, r)
	}
	want := "wavehub --hub windows terminal send term_1 --text ls --json --retry-request " + h.last().head.Get("Idempotency-Key")
	if len(p.NextCommands) != 1 || strings.Join(p.NextCommands[0], " ") != want {
		t.Errorf("next commands %v", p.NextCommands)
	}
	r = wavehubIn(t, t.Context(), "ls", "--hub", "windows", "terminal", "send", "term_1", "--file", "-")
	if r.want(t, 10, "with the same input and --retry-request"); strings.Contains(r.errout, "recover:") {
		t.Errorf("stderr %q", r.errout)
	}
}
