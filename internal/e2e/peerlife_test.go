//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// shown is a peer as its hub shows it.
func (h *Hub) shown(t testing.TB, name string) api.PeerDetail {
	t.Helper()
	return get[api.PeerDetail](t, h.Caller(), "peer", "show", name)
}

// linked waits until the home's link is up.
func (p Pairing) linked(t testing.TB) {
	t.Helper()
	eventually(t, "the link is up", 20*time.Second, func() bool { return p.Home.shown(t, p.Worker.Name).Link.State == "up" })
}

// warned demands a warning of the product in an answer.
func warned(t testing.TB, r api.PeerResult, words string) {
	t.Helper()
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, words) }) {
		t.Errorf("no word of %q in %q", words, r.Warnings)
	}
}

func TestAcceptance_F10_ARemovedWorkerHub(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("removed")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	p.linked(t)
	removed := get[api.PeerResult](t, p.Home.Caller(), "peer", "remove", "worker")
	if removed.Peer.State != "removed" {
		t.Errorf("the peer is %s", removed.Peer.State)
	}
	warned(t, removed, "shown and abandoned")
	eventually(t, "the worker hub knows", time.Second, func() bool { return p.Worker.shown(t, "home").Peer.Condition == "peer_revoked" })
	if n := run.notice(t); n.State != "removed" || n.Code != "peer_revoked" {
		t.Errorf("the Run is told %+v", n)
	}

	if d := run.Show(w.DispatchId); d.Dispatch.State != "ready" || d.Observation.Link != "down" || d.Observation.Process != "unverifiable" {
		t.Errorf("shown: %+v", d)
	}
	task := run.Task("true")
	for code, lines := range map[string][][]string{
		"peer_revoked": {
			{"worker", "stop", w.DispatchId}, {"worker", "read", w.DispatchId}, {"peer", "rename", removed.Peer.PeerId, "x"},
			{"send", "--to", "dispatch:" + w.DispatchId, "--type", "guidance", "--subject", "s", "--body", "b"},
			{"worker", "start", "--task", task, "--on", removed.Peer.PeerId, "--worktree", "path:" + p.Root, "--agent", "sh"},
		},
		"peer_not_found": {append([]string{"worker", "start", "--task", task}, p.Place()...), {"peer", "grant", "worker", "--no-verbs"}},
	} {
		for _, args := range lines {
			refused(t, run.Caller, code, args...)
		}
	}
	if d := run.Show(w.DispatchId); d.Dispatch.State != "ready" || run.State(task) != "ready" {
		t.Errorf("a refusal had an effect: %+v", d.Dispatch)
	}
	if s := p.Home.shown(t, "worker"); s.Peer.State != "removed" || s.Holds.Dispatches != 1 {
		t.Errorf("the tombstone: %+v", s)
	}
	if a := get[api.StopResult](t, run.Caller, "worker", "abandon", w.DispatchId); a.State != "abandoned" {
		t.Errorf("abandoned: %+v", a)
	}
	if l := get[api.PeerPage](t, p.Home.Caller(), "peer", "list"); len(l.Peers) != 0 {
		t.Errorf("a peer that holds nothing is listed: %+v", l.Peers)
	}
	refused(t, p.Home.Caller(), "peer_not_found", "peer", "show", "worker")
}

func TestAcceptance_F10_ARemovedHome(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("removed")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	p.linked(t)
	asked := begin(t, func() (Result, error) {
		return w.Caller().CLI("ask", "--question", "Which?", "--timeout", "60s", "--json"), nil
	})
	run.Check("--wait", "--timeout", "20s")
	removed := get[api.PeerResult](t, p.Worker.Caller(), "peer", "remove", "home")
	warned(t, removed, "workers of that hub go on here")
	eventually(t, "the home knows", time.Second, func() bool { return p.Home.shown(t, "worker").Peer.Condition == "peer_revoked" })
	if r := asked.get(t, 5*time.Second).value; !strings.Contains(r.Stderr, "peer_revoked") {
		t.Errorf("the question that waited: %+v", r)
	}
	for _, args := range [][]string{{"done", "all of it"}, {"progress", "half"}, {"check"}, {"ask", "--question", "And now?"}} {
		refused(t, w.Caller(), "peer_revoked", args...)
	}
	s := p.Worker.shown(t, removed.Peer.PeerId)
	if s.Holds.Workers != 1 || len(s.Holds.Stranded) != 1 || s.Holds.Stranded[0].DispatchId != w.DispatchId {
		t.Fatalf("stranded: %+v", s.Holds)
	}
	if r := p.Worker.CLI("peer", "show", "home"); !strings.Contains(r.Stdout, "stranded: "+w.DispatchId) {
		t.Errorf("for people: %+v", r)
	}
	eventually(t, "the home cannot connect", 20*time.Second, func() bool {
		s := p.Home.shown(t, "worker")
		return s.Link.State == "down" && s.Link.Stage != nil && *s.Link.Stage == "tls"
	})
	refused(t, run.Caller, "peer_revoked", append([]string{"worker", "start", "--task", run.Task("x")}, p.Place()...)...)
	refused(t, run.Caller, "peer_revoked", "worker", "read", w.DispatchId)
	terminal := *s.Holds.Stranded[0].TerminalId
	if c := get[api.TerminalClosed](t, p.Worker.Caller(), "terminal", "close", terminal); c.ProcessAction != "ended" {
		t.Errorf("closed: %+v", c)
	}
	if l := get[api.PeerPage](t, p.Worker.Caller(), "peer", "list"); len(l.Peers) != 0 {
		t.Errorf("a peer that holds nothing is listed: %+v", l.Peers)
	}
}

// Pairing the same two hubs with the same stores again is the same pairing, under
// whatever name: what was held flows.
func TestAcceptance_F10_PairedAgainWithTheSameStores(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("again")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	before := get[api.PeerResult](t, p.Home.Caller(), "peer", "remove", "worker").Peer
	get[api.PeerResult](t, p.Worker.Caller(), "peer", "remove", "home")
	refused(t, w.Caller(), "peer_revoked", "progress", "half")
	p.Worker.Name = "desk"
	Pair(t, p.Home, p.Worker, p.Root, "")
	p.linked(t)
	if s := p.Home.shown(t, "desk"); s.Peer.PeerId != before.PeerId || s.Holds.Dispatches != 1 {
		t.Errorf("paired again: %+v", s)
	}
	if r := w.Caller().CLI("done", "all of it"); r.Code != 0 {
		t.Fatalf("the report: %+v", r)
	}
	if m := run.Done(w.DispatchId); m.Body != "all of it" {
		t.Errorf("the report: %+v", m)
	}
}

// repaired removes the home's peer and pairs it with by, under the same name.
func (p Pairing) repaired(t *testing.T, by *Hub) {
	t.Helper()
	get[api.PeerResult](t, p.Home.Caller(), "peer", "remove", p.Worker.Name)
	by.Name = p.Worker.Name
	Pair(t, p.Home, by, p.Root, "")
	eventually(t, "the new link is up", 20*time.Second, func() bool { return p.Home.shown(t, by.Name).Link.State == "up" })
}

// pinned demands that nothing reaches a Dispatch but show and abandon.
func (c Coordinator) pinned(t *testing.T, dispatch, code string) {
	t.Helper()
	for _, args := range [][]string{
		{"worker", "stop", dispatch}, {"worker", "read", dispatch},
		{"send", "--to", "dispatch:" + dispatch, "--type", "guidance", "--subject", "s", "--body", "b"},
	} {
		refused(t, c.Caller, code, args...)
	}
	if d := c.Show(dispatch); d.Dispatch.State != "ready" || d.Observation.Attachment != "unknown" {
		t.Errorf("shown: %+v", d)
	}
	if a := get[api.StopResult](t, c.Caller, "worker", "abandon", dispatch); a.State != "abandoned" {
		t.Errorf("abandoned: %+v", a)
	}
}

func TestAcceptance_F09_ANameThatIsPairedAnewRetargetsNothing(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("pinned")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	other := StartHub(t, "other")
	p.repaired(t, other)
	fresh := run.heldWorker(t, other, p.Place()...)
	run.pinned(t, w.DispatchId, "peer_changed")
	if d := run.Show(fresh.DispatchId); d.Observation.Process != "live" {
		t.Errorf("what was started there since: %+v", d.Observation)
	}
}

func TestAcceptance_F09_AnotherStoreUnderTheSameKeyTakesNothingOver(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("pinned")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	p.linked(t)
	p.Worker.Kill()
	names, err := filepath.Glob(p.Worker.Data("*.db*"))
	must(t, err)
	if len(names) == 0 {
		t.Fatal("the worker hub has no database")
	}
	for _, name := range names {
		must(t, os.Rename(name, filepath.Join(t.TempDir(), filepath.Base(name))))
	}
	p.Worker.Start()
	p.repaired(t, p.Worker)
	run.pinned(t, w.DispatchId, "peer_store_changed")
}

func TestAcceptance_F13_OnNamesAPeerOfThisHub(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("where")
	task := run.Task("true")
	repo := NewRepo(t, map[string]string{"a.txt": "one\n"})
	get[api.RepoResult](t, p.Home.Caller(), "repo", "add", repo, "--name", "ours")
	tree := get[api.WorktreeReceipt](t, run.Caller, "worktree", "create", "--repo", "ours", "--name", "tree").Worktree
	start := func(args ...string) []string {
		return append([]string{"worker", "start", "--task", task, "--agent", "sh"}, args...)
	}
	for _, x := range []struct {
		code string
		args []string
	}{
		{"peer_not_found", start("--on", "current", "--worktree", "path:"+p.Root)},
		{"peer_not_found", start("--on", id.New("peer_"), "--worktree", "path:"+p.Root)},
		{"worktree_not_found_on_server", start("--on", "worker", "--worktree", "id:"+tree.WorktreeId)},
		{"repo_not_found", start("--on", "worker", "--worktree", "new-top-level", "--repo", "ours", "--name", "x")},
		{"invalid_argument", []string{"peer", "rename", "worker", "current"}},
		{"name_taken", []string{"peer", "add", "worker", p.Worker.Endpoint().URL, "--code-file", codeFile(t)}},
	} {
		refused(t, run.Caller, x.code, x.args...)
	}
	if d := get[api.DispatchPage](t, run.Caller, "worker", "list"); len(d.Dispatches) != 0 || run.State(task) != "ready" || len(p.Worker.spawns()) != 0 {
		t.Errorf("a refusal had an effect: %+v", d)
	}
}

// codeFile holds a code that is well-formed.
func codeFile(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "code")
	must(t, os.WriteFile(name, []byte(wellFormed()), 0o600))
	return name
}

func TestPeer_GrantsTakeEffectAtOnce(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("granted")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	grant := func(args ...string) api.Grants {
		t.Helper()
		return get[api.PeerResult](t, p.Worker.Caller(), append([]string{"peer", "grant", "home"}, args...)...).Peer.Grants
	}
	start := func(dir string) []string {
		return []string{"worker", "start", "--task", run.Task("true"), "--on", "worker", "--worktree", "path:" + dir, "--agent", "sh"}
	}
	if g := grant("--max-workers", "1"); g.MaxWorkers != 1 || len(g.Verbs) != 3 || len(g.Repos) != 1 {
		t.Errorf("max_workers alone: %+v", g)
	}
	refused(t, run.Caller, "worker_limit", start(p.Root)...)
	grant("--max-workers", "0", "--verb", "start")
	if p := refused(t, run.Caller, "out_of_scope", "worker", "read", w.DispatchId); !strings.Contains(p.Hint, "peer grant") {
		t.Errorf("it does not say who can change that: %+v", p)
	}
	repo := NewRepo(t, map[string]string{"a.txt": "one\n"})
	if g := grant("--verb", "read", "--verb", "start", "--verb", "read", "--allow-repo", repo); len(g.Verbs) != 2 || g.Repos[0] != repo {
		t.Errorf("verbs and roots: %+v", g)
	}
	get[api.OutputPage](t, run.Caller, "worker", "read", w.DispatchId)
	refused(t, run.Caller, "repo_not_granted", start(p.Root)...)
	if repos := get[api.RepoPage](t, p.Worker.Caller(), "repo", "list").Repos; len(repos) != 1 || repos[0].Path != repo {
		t.Errorf("a granted repository is registered: %+v", repos)
	}
	get[api.StartReceipt](t, run.Caller, start(repo)...)
	grant("--no-verbs")
	refused(t, run.Caller, "out_of_scope", start(repo)...)
	if g := grant("--verb", "start", "--no-repos"); len(g.Repos) != 0 {
		t.Errorf("no roots: %+v", g)
	}
	refused(t, run.Caller, "repo_not_granted", start(repo)...)
	if d := run.Show(w.DispatchId); d.Observation.Process != "live" {
		t.Errorf("a worker that ran before: %+v", d.Observation)
	}
	refused(t, p.Home.Caller(), "invalid_argument", "peer", "grant", "worker", "--verb", "start")
	refused(t, p.Worker.Caller(), "invalid_argument", "peer", "grant", "home", "--verb", "write")
}

// TestPeer_RefusedRootsAreNotRegistered: a request that is refused as it stands leaves
// nothing, not even the repositories that it would have granted.
func TestPeer_RefusedRootsAreNotRegistered(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	repo, home, worker := NewRepo(t, map[string]string{"a.txt": "one\n"}), p.Home.Caller(), p.Worker.Caller()
	refused(t, home, "invalid_argument", "peer", "invite", "--as", "home", "--allow-repo", repo)
	refused(t, home, "invalid_argument", "peer", "add", "other", p.Worker.Endpoint().URL, "--code-file", codeFile(t), "--allow-repo", repo)
	refused(t, home, "invalid_argument", "peer", "grant", "worker", "--allow-repo", repo)
	refused(t, worker, "peer_not_found", "peer", "grant", "nobody", "--allow-repo", repo)
	for _, c := range []Caller{home, worker} {
		if repos := get[api.RepoPage](t, c, "repo", "list").Repos; len(repos) != 0 {
			t.Errorf("registered: %+v", repos)
		}
	}
	invite := get[api.InviteResult](t, worker, "peer", "invite", "--allow-repo", repo)
	again := get[api.InviteResult](t, worker, "peer", "invite", "--allow-repo", repo, "--retry-request", invite.Mutation.RequestId)
	if repos := get[api.RepoPage](t, worker, "repo", "list").Repos; len(repos) != 1 || !again.Mutation.Replayed {
		t.Errorf("a good invite registers its root once: %+v, %+v", repos, again.Mutation)
	}
}

func TestPeer_RenamedAndMoved(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("moved")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	if r := get[api.PeerResult](t, p.Home.Caller(), "peer", "rename", "worker", "desk"); r.Peer.Name != "desk" {
		t.Errorf("renamed: %+v", r)
	}
	refused(t, p.Home.Caller(), "peer_not_found", "peer", "show", "worker")
	proxy := newProxy(t, p.Worker)
	moved := get[api.PeerResult](t, p.Home.Caller(), "peer", "set", "desk", "--address", "https://127.0.0.1:1", "--address", "https://"+proxy.Addr())
	if len(moved.Peer.Addresses) != 2 {
		t.Errorf("moved: %+v", moved)
	}
	p.Worker.Restart() // so that the link is made anew
	eventually(t, "the second address is used", 20*time.Second, func() bool { return p.Home.shown(t, "desk").Link.State == "up" })
	if r := w.Caller().CLI("done", "all of it"); r.Code != 0 {
		t.Fatalf("the report: %+v", r)
	}
	run.Done(w.DispatchId)
	refused(t, p.Home.Caller(), "invalid_argument", "peer", "set", "desk", "--address", "http://127.0.0.1:1")
}

func TestPeer_Invites(t *testing.T) {
	t.Parallel()
	h, other := StartHub(t, "mac"), StartHub(t, "other")
	invite := get[api.InviteResult](t, h.Caller(), "peer", "invite", "--max-workers", "2").Invite
	r := h.CLI("peer", "invite", "list", "--json")
	if r.Code != 0 || strings.Contains(r.Stdout, *invite.Code) || strings.Contains(r.Stdout, (*invite.Code)[5:]) {
		t.Errorf("the list: %+v", r)
	}
	page := decode[api.InvitePage](t, r.Stdout)
	if len(page.Invites) != 1 || page.Invites[0].State != "open" || page.Invites[0].Slot != (*invite.Code)[:3] || page.Invites[0].Grants.MaxWorkers != 2 {
		t.Errorf("the list: %+v", page)
	}
	for range 2 {
		if out := get[api.InviteRevoked](t, h.Caller(), "peer", "invite", "revoke", invite.InviteId); out.Invite.State != "revoked" {
			t.Errorf("taken back: %+v", out)
		}
	}
	c := other.Caller()
	c.stdin = *invite.Code
	refused(t, c, "invite_expired", "peer", "add", "mac", h.Endpoint().URL, "--code-file", "-")
	refused(t, h.Caller(), "invite_not_found", "peer", "invite", "revoke", id.New("invite_"))
	if r := h.CLI("peer", "invite", "list"); !strings.Contains(r.Stdout, "revoked") {
		t.Errorf("for people: %+v", r)
	}
}
