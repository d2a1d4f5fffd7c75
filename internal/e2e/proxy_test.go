//go:build unix

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// proxying is a home and its worker hub, which has a repository inside the granted
// folder and one outside of it.
type proxying struct {
	Pairing
	repo, secret string
	net          *muter
}

func newProxying(t *testing.T) proxying {
	x := proxying{Pairing: Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker")}}
	x.repo = NewRepo(t, map[string]string{"a.txt": "a\n"})
	x.secret = NewRepo(t, map[string]string{"b.txt": "b\n"})
	x.Root = x.repo
	x.net = newMuter(t, strings.TrimPrefix(x.Worker.Endpoint().URL, "https://"))
	Pair(t, x.Home, x.Worker, x.Root, x.net.Addr())
	get[api.RepoResult](t, x.Worker.Caller(), "repo", "add", x.repo, "--name", "open")
	get[api.RepoResult](t, x.Worker.Caller(), "repo", "add", x.secret, "--name", "secret")
	return x
}

// through are a command line's arguments for the worker hub.
func through(args ...string) []string { return append([]string{"--hub", "worker"}, args...) }

// TestAcceptance_ProxiedVerbs: every verb that a home may send to its worker hub
// does there what it does here.
func TestAcceptance_ProxiedVerbs(t *testing.T) {
	t.Parallel()
	x := newProxying(t)
	c := x.Home.Caller()
	if repos := get[api.RepoPage](t, c, through("repo", "list")...).Repos; len(repos) != 1 || repos[0].Name != "open" || repos[0].Path != x.repo {
		t.Errorf("the repositories are %+v", repos)
	}
	if here := get[api.RepoPage](t, c, "repo", "list").Repos; len(here) != 0 {
		t.Errorf("the home has %+v", here)
	}
	tree := get[api.WorktreeReceipt](t, c, through("worktree", "create", "--repo", "open", "--name", "vet")...)
	if tree.State != "ready" || !exists(filepath.Join(tree.Worktree.Path, "a.txt")) || !strings.HasPrefix(tree.Worktree.Path, x.Worker.Data("worktrees")) {
		t.Fatalf("the worktree is %+v", tree)
	}
	if all := get[api.WorktreePage](t, c, through("worktree", "list", "--repo", "open")...).Worktrees; len(all) != 1 || all[0].WorktreeId != tree.Worktree.WorktreeId {
		t.Errorf("the worktrees are %+v", all)
	}
	for _, where := range []string{"vet", "id:" + tree.Worktree.WorktreeId, "path:" + tree.Worktree.Path} {
		if got := get[api.WorktreeDetail](t, c, through("worktree", "show", where)...); got.Worktree.WorktreeId != tree.Worktree.WorktreeId {
			t.Errorf("%s is %+v", where, got)
		}
	}
	x.terminal(t, c, tree.Worktree.WorktreeId)
	if agents := get[api.AgentPage](t, c, through("agent", "list")...).Agents; len(agents) == 0 || agents[0].Program != nil {
		t.Errorf("the agents are %+v", agents)
	}
	get[api.WorkerRegistered](t, x.Worker.Caller(), "worker-identity", "register", "w-1")
	if ws := get[api.WorkerPage](t, c, through("worker-identity", "list")...).Workers; len(ws) != 1 || ws[0].Name != "w-1" {
		t.Errorf("the identities are %+v", ws)
	}
	x.dispatches(t, c)
}

// terminal makes, drives and reads a terminal on the worker hub.
func (x proxying) terminal(t *testing.T, c Caller, worktree string) {
	t.Helper()
	made := get[api.TerminalReceipt](t, c, through("terminal", "create", "--worktree", "id:"+worktree, "--command", "read -r x; echo got $x; cat a.txt; read -r _")...)
	term := made.Terminal.TerminalId
	if got := get[api.TerminalSent](t, c, through("terminal", "send", term, "--text", "one", "--enter")...); got.State != "sent" {
		t.Errorf("sent: %+v", got)
	}
	if got := get[api.TerminalWait](t, c, through("terminal", "wait", term, "--for", "text:^got one$", "--timeout", "20s")...); !got.Met {
		t.Errorf("waited: %+v", got)
	}
	if got := get[api.TerminalScreen](t, c, through("terminal", "read", term)...); !strings.Contains(strings.Join(got.Lines, "\n"), "got one") {
		t.Errorf("the screen is %q", got.Lines)
	}
	if got := get[api.TerminalDetail](t, c, through("terminal", "show", term)...); got.Terminal.TerminalId != term || got.Observation.Process != "live" {
		t.Errorf("shown: %+v", got)
	}
	if ts := get[api.TerminalPage](t, c, through("terminal", "list", "--live")...).Terminals; len(ts) != 1 || ts[0].TerminalId != term {
		t.Errorf("the terminals are %+v", ts)
	}
	follow := begin(t, func() (Result, error) { return c.CLI(through("terminal", "read", term, "--raw", "--follow")...), nil })
	get[api.TerminalSent](t, c, through("terminal", "send", term, "--key", "enter")...)
	if r := follow.get(t, commandLimit).value; r.Code != 0 || !strings.Contains(r.Stdout, "got one") {
		t.Errorf("followed: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// dispatches shows the home's Dispatches on the worker hub.
func (x proxying) dispatches(t *testing.T, c Caller) {
	t.Helper()
	run, own := x.Home.NewRun("elsewhere"), x.Worker.NewRun("of the worker hub itself")
	own.heldWorker(t, x.Worker)
	w := run.heldWorker(t, x.Worker, x.Place()...)
	if ds := get[api.DispatchPage](t, c, through("worker", "list", "--live")...).Dispatches; len(ds) != 1 || ds[0].DispatchId != w.DispatchId || ds[0].Server.Name != "worker" {
		t.Errorf("the Dispatches are %+v", ds)
	}
	shown := get[api.DispatchDetail](t, c, through("worker", "show", w.DispatchId)...)
	if shown.Dispatch.State != "ready" || shown.Observation.Process != "live" || shown.Dispatch.TaskId != w.TaskId {
		t.Errorf("shown: %+v", shown)
	}
}

// TestAcceptance_ProxyRefusals: what a home may not do on its worker hub is
// refused there, whatever its own command line would let it send.
func TestAcceptance_ProxyRefusals(t *testing.T) {
	t.Parallel()
	x := newProxying(t)
	c, w := x.Home.Caller(), x.Worker.Caller()
	own := newTerminal(t, Caller{hub: x.Worker, dir: x.repo}, "--dir", x.repo, "--command", "read -r _")
	hidden := newTerminal(t, Caller{hub: x.Worker, dir: x.secret}, "--dir", x.secret, "--command", "read -r _")
	link := filepath.Join(x.repo, "link")
	must(t, os.Symlink(x.secret, link))
	get[api.WorktreeReceipt](t, w, "worktree", "create", "--repo", "secret", "--name", "far")
	for _, r := range []struct {
		code string
		args []string
	}{
		{"repo_not_granted", []string{"worktree", "create", "--repo", "secret", "--name", "x"}},
		{"repo_not_granted", []string{"terminal", "create", "--dir", x.secret}},
		{"repo_not_granted", []string{"terminal", "create", "--dir", link}},
		{"repo_not_granted", []string{"terminal", "create", "--worktree", "far"}},
		{"worktree_not_found_on_server", []string{"worktree", "show", "far"}},
		{"repo_not_found", []string{"worktree", "list", "--repo", "secret"}},
		{"out_of_scope", []string{"terminal", "read", own}},
		{"out_of_scope", []string{"terminal", "send", own, "--key", "enter"}},
		{"out_of_scope", []string{"terminal", "wait", own, "--for", "exit"}},
		{"terminal_not_found", []string{"terminal", "show", hidden}},
		{"terminal_not_found", []string{"terminal", "send", hidden, "--key", "enter"}},
		{"dispatch_not_found", []string{"worker", "show", id.New("dispatch_")}},
		{"out_of_scope", []string{"terminal", "close", own}},
		{"out_of_scope", []string{"worktree", "remove", "far"}},
		{"out_of_scope", []string{"repo", "add", x.repo}},
		{"out_of_scope", []string{"run", "list"}},
		{"out_of_scope", []string{"check"}},
		{"out_of_scope", []string{"peer", "list"}},
		{"out_of_scope", []string{"serve"}},
		{"out_of_scope", []string{"status"}},
	} {
		refused(t, c, r.code, through(r.args...)...)
	}
	refused(t, c, "peer_not_found", "--hub", "nobody", "repo", "list")
	refused(t, c, "invalid_argument", "--hub", "home", "repo", "list")
	refused(t, w, "server_required", "--hub", "home", "repo", "list")
	x.refusedByTheHubs(t)
}

// refusedByTheHubs sends what no command line sends.
func (x proxying) refusedByTheHubs(t *testing.T) {
	t.Helper()
	run := x.Home.NewRun("with a worker")
	worker := run.heldWorker(t, x.Home)
	identity := get[api.WorkerRegistered](t, x.Home.Caller(), "worker-identity", "register", "w-1")
	for what, r := range map[string]struct{ method, path, token, body, code string }{
		"a capability":  {"GET", "/v1/repos", worker.Cap.Token, "", "out_of_scope"},
		"a worker's":    {"GET", "/v1/repos", *identity.Worker.Token, "", "out_of_scope"},
		"a Run":         {"POST", "/v1/runs", x.Home.Token(), `{"objective":"x"}`, "out_of_scope"},
		"an invite":     {"POST", "/v1/pairing/invites", x.Home.Token(), `{}`, "out_of_scope"},
		"the hub":       {"GET", "/v1/hub", x.Home.Token(), "", "out_of_scope"},
		"a stream":      {"GET", "/v1/mailboxes/run:" + run.Run + "/stream", x.Home.Token(), "", "out_of_scope"},
		"a closed door": {"GET", "/v1/repos", "whu_none", "", "invalid_token"},
	} {
		if p := x.Home.raw(t, r.method, r.path, r.token, r.body); string(p.Code) != r.code {
			t.Errorf("%s: %+v", what, p)
		}
	}
}

// raw sends a request for the hub worker and returns the problem that it is
// answered with.
func (h *Hub) raw(t testing.TB, method, path, token, body string) (p api.Problem) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.Endpoint().URL+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Wavehub-Hub", "worker")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := trusting.RoundTrip(r)
	must(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, json.Unmarshal(raw, &p))
	return p
}

// TestAcceptance_ProxyGrants: what the worker hub takes away is gone with the next
// command; a peer that was removed there, or here, does nothing.
func TestAcceptance_ProxyGrants(t *testing.T) {
	t.Parallel()
	x := newProxying(t)
	c := x.Home.Caller()
	grant := func(args ...string) {
		t.Helper()
		get[api.PeerResult](t, x.Worker.Caller(), append([]string{"peer", "grant", "home"}, args...)...)
	}
	made := get[api.TerminalReceipt](t, c, through("terminal", "create", "--dir", x.repo, "--command", "read -r _")...).Terminal.TerminalId
	grant("--allow-repo", x.secret)
	refused(t, c, "terminal_not_found", through("terminal", "read", made)...)
	if repos := get[api.RepoPage](t, c, through("repo", "list")...).Repos; len(repos) != 1 || repos[0].Name != "secret" {
		t.Errorf("after the change: %+v", repos)
	}
	grant("--verb", "start", "--verb", "read")
	refused(t, c, "out_of_scope", through("repo", "list")...)
	grant("--verb", "proxy", "--allow-repo", x.repo)
	get[api.TerminalScreen](t, c, through("terminal", "read", made)...) // what was only hidden is back
	get[api.PeerResult](t, x.Worker.Caller(), "peer", "remove", "home")
	refused(t, c, "peer_revoked", through("repo", "list")...)
	removed := get[api.PeerResult](t, c, "peer", "remove", "worker").Peer
	refused(t, c, "peer_not_found", through("repo", "list")...)
	refused(t, c, "peer_revoked", "--hub", removed.PeerId, "repo", "list")
}

// TestAcceptance_ProxyLosesAnAnswer: a mutation whose answer is lost is unknown;
// the printed command returns the worker hub's receipt and does nothing twice. A
// hub that cannot be reached got nothing.
func TestAcceptance_ProxyLosesAnAnswer(t *testing.T) {
	t.Parallel()
	x := newProxying(t)
	c, witness := x.Home.Caller(), filepath.Join(x.repo, "witness")
	x.net.set(func() bool { return len(x.Worker.spawns()) > 0 })
	args := through("terminal", "create", "--dir", x.repo, "--command", "echo ran >> witness; read -r _", "--json")
	call := begin(t, func() (Result, error) { return c.CLI(args...), nil })
	eventually(t, "the terminal runs", 20*time.Second, func() bool { return exists(witness) })
	eventually(t, "the terminal is on record", 20*time.Second, func() bool {
		ts := get[api.TerminalPage](t, x.Worker.Caller(), "terminal", "list", "--live").Terminals
		return len(ts) == 1 && ts[0].Process == "live"
	})
	x.net.cut()
	r := call.get(t, commandLimit).value
	problem := r.problem(t, "outcome_unknown")
	if len(problem.NextCommands) != 1 || problem.NextCommands[0][1] != "--hub" {
		t.Fatalf("%+v", problem)
	}
	x.net.set(func() bool { return false })
	x.net.cut()
	var again Result
	eventually(t, "the command returns the receipt", 30*time.Second, func() bool {
		again = c.paste(`exec "$@"`, problem.NextCommands[0]...)
		return again.Code == 0
	})
	receipt := decode[api.TerminalReceipt](t, again.Stdout)
	if receipt.State != "ready" || !receipt.Mutation.Replayed || receipt.Mutation.RequestId != problem.RequestId {
		t.Errorf("the receipt is %+v", receipt)
	}
	raw, err := os.ReadFile(witness)
	if err != nil || string(raw) != "ran\n" {
		t.Errorf("it ran %q %v", raw, err)
	}
	x.Worker.Kill()
	x.net.cut()
	refused(t, c, "remote_runtime_unavailable", through("terminal", "create", "--dir", x.repo)...)
}

// TestAcceptance_ProxyIsNeverTheOperator: in a terminal that a home made, the
// program has no credential of that hub.
func TestAcceptance_ProxyIsNeverTheOperator(t *testing.T) {
	t.Parallel()
	x := newProxying(t)
	c := x.Home.Caller()
	made := get[api.TerminalReceipt](t, c, through("terminal", "create", "--dir", x.repo, "--command",
		`"$WAVEHUB_BIN" repo list; echo "exit $?"; env -u WAVEHUB_DISPATCH_FILE "$WAVEHUB_BIN" repo list; echo "then $?"; read -r _`)...).Terminal.TerminalId
	get[api.TerminalWait](t, c, through("terminal", "wait", made, "--for", "text:^then ", "--timeout", "30s")...)
	if got := strings.Join(get[api.TerminalScreen](t, c, through("terminal", "read", made)...).Lines, "\n"); !strings.Contains(got, "exit 4") || !strings.Contains(got, "then 4") {
		t.Errorf("the program in it says\n%s", got)
	}
}

// TestAcceptance_ProxyAnswersHaveALimit of 1 MiB, which says what to do.
func TestAcceptance_ProxyAnswersHaveALimit(t *testing.T) {
	t.Parallel()
	x := newProxying(t)
	c := x.Home.Caller()
	made := get[api.TerminalReceipt](t, c, through("terminal", "create", "--dir", x.repo, "--command", "head -c 900000 /dev/zero | tr '\\0' x; echo; echo end; read -r _")...).Terminal.TerminalId
	get[api.TerminalWait](t, c, through("terminal", "wait", made, "--for", "text:^end$", "--timeout", "60s")...)
	refused(t, c, "too_large", through("terminal", "read", made, "--raw", "--limit", "1000000")...)
	if got := get[api.TerminalOutput](t, c, through("terminal", "read", made, "--raw", "--limit", "500000")...); len(got.Data) != 500000 {
		t.Errorf("%d bytes were read", len(got.Data))
	}
}
