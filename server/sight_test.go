package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// estate is a hub with places in and out of a peer's grant, which is /x.
type estate struct {
	*world
	peer            hub.Peer
	inside, outside hub.Repo
	near, far       hub.Worktree // of these repositories
	theirs, foreign hub.Terminal // of this hub: in a granted folder, and in none
}

func newEstate(t *testing.T) estate {
	w := newWorld(t)
	e := estate{world: w, peer: w.paired(hub.PeerActive)}
	e.inside = hub.Repo{ID: hub.NewRepoID(), Name: "in", Path: "/x/in", Kind: hub.RepoGit}
	e.outside = hub.Repo{ID: hub.NewRepoID(), Name: "out", Path: "/xy", Kind: hub.RepoGit}
	tree := func(r hub.Repo) hub.Worktree {
		id := hub.NewWorktreeID()
		return hub.Worktree{ID: id, Repo: r.ID, Name: "tree", Path: "/data/" + string(id), State: hub.WorktreeReady, Setup: hub.WorktreeSetup{Report: hub.SetupReport{Effective: "none", State: hub.SetupNotApplicable}}}
	}
	e.near, e.far = tree(e.inside), tree(e.outside)
	child := tree(e.outside)
	child.Name, child.Parent = "child", e.near.ID
	process := func(id hub.TerminalID) *hub.Incarnation { return &hub.Incarnation{Terminal: id, Nonce: "n", PID: 1} }
	terminal := func(dir string, in hub.WorktreeID) hub.Terminal {
		id := hub.NewTerminalID()
		return hub.Terminal{ID: id, Role: hub.TerminalShell, Dir: dir, Worktree: in, Size: hub.TerminalSize{Rows: 5, Cols: 20}, Process: process(id), CreatedBy: "operator"}
	}
	e.theirs, e.foreign = terminal("/x/sub", ""), terminal("/secret", "")
	e.theirs.Dispatch = hub.NewDispatchID()
	w.update(func(tx store.Tx) (err error) {
		for _, r := range []hub.Repo{e.inside, e.outside} {
			err = errors.Join(err, tx.PutRepo(r))
		}
		for _, x := range []hub.Worktree{e.near, e.far, child} {
			err = errors.Join(err, tx.PutWorktree(x))
		}
		for _, x := range []hub.Terminal{e.theirs, e.foreign, terminal("/data/near", e.near.ID), terminal("/data/far", e.far.ID)} {
			err = errors.Join(err, tx.PutTerminal(x))
		}
		return err
	})
	return e
}

func (e estate) see(status int, path string) response {
	e.t.Helper()
	got := e.proxied(request{method: "GET", path: path})
	if got.status != status {
		e.t.Errorf("%s: status %d, want %d: %s", path, got.status, status, got.raw)
	}
	return got
}

// paths collects every text of an answer that is an absolute path.
func paths(v any) (out []string) {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "/") {
			out = append(out, v)
		}
	case []any:
		for _, x := range v {
			out = append(out, paths(x)...)
		}
	case map[string]any:
		for _, x := range v {
			out = append(out, paths(x)...)
		}
	}
	return out
}

// TestPeersSeeWhatTheyAreGranted: lists leave out what is not below a granted
// root, and what is not there and what is not seen are told alike.
func TestPeersSeeWhatTheyAreGranted(t *testing.T) {
	e := newEstate(t)
	for path, want := range map[string]int{
		"/v1/repos": 1, "/v1/worktrees": 1, "/v1/worktrees?repo=in": 1, "/v1/terminals": 2, "/v1/terminals?live=true": 2,
		"/v1/terminals?worktree=" + string(e.near.ID): 1, "/v1/terminals?worktree=tree": 1,
	} {
		got := e.see(200, path)
		for _, list := range []string{"repos", "worktrees", "terminals"} {
			if all, ok := got.at(list).([]any); ok && len(all) != want {
				t.Errorf("%s: %d of %s, want %d: %s", path, len(all), list, want, got.raw)
			}
		}
		for _, p := range paths(got.body) {
			if !strings.HasPrefix(p, "/x/") && p != e.near.Path && p != "/data/near" {
				t.Errorf("%s shows %s", path, p)
			}
		}
	}
	for _, pair := range [][2]string{
		{"/v1/worktrees?repo=out", "/v1/worktrees?repo=none"},
		{"/v1/worktrees/" + string(e.far.ID), "/v1/worktrees/" + string(hub.NewWorktreeID())},
		{"/v1/worktrees/child", "/v1/worktrees/none"},
		{"/v1/worktrees?path=" + e.far.Path, "/v1/worktrees?path=/none"},
		{"/v1/terminals/" + string(e.foreign.ID), "/v1/terminals/" + string(hub.NewTerminalID())},
		{"/v1/terminals/" + string(e.foreign.ID) + "/screen", "/v1/terminals/" + string(hub.NewTerminalID()) + "/screen"},
		{"/v1/terminals?worktree=" + string(e.far.ID), "/v1/terminals?worktree=" + string(hub.NewWorktreeID())},
	} {
		hidden, none := e.see(404, pair[0]), e.see(404, pair[1])
		if alike(hidden) != alike(none) {
			t.Errorf("%s\n%s\n%s", pair[0], hidden.raw, none.raw)
		}
	}
	detail := e.see(200, "/v1/worktrees/tree") // the one that is seen
	if detail.text("worktree", "worktree_id") != string(e.near.ID) || len(detail.at("children").([]any)) != 0 {
		t.Errorf("%s", detail.raw)
	}
	if e.see(200, "/v1/worktrees?path="+e.near.Path); len(paths(e.see(200, "/v1/agents").body)) != 0 {
		t.Error("agents are shown with their paths")
	}
	e.regrant(e.peer, func(p *hub.Peer) { p.Grants.Repos = nil })
	for _, list := range []string{"repos", "worktrees", "terminals"} {
		if got := e.see(200, "/v1/"+list); len(got.at(list).([]any)) != 0 {
			t.Errorf("without a root: %s", got.raw)
		}
	}
	e.see(404, "/v1/worktrees/"+string(e.near.ID))
}

// alike is an answer without the name that was asked for.
func alike(r response) string {
	words := strings.Fields(r.text("detail"))
	words = slices.DeleteFunc(words, func(s string) bool { return strings.ContainsAny(s, `_"`) })
	return fmt.Sprint(r.status, r.code(), words, r.at("next_commands"), r.at("hint"))
}

// TestPagesOfPeersAreFull: what is left out does not make pages short, and no
// row is lost between two pages.
func TestPagesOfPeersAreFull(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	w.update(func(tx store.Tx) (err error) {
		for i := range 60 {
			path := fmt.Sprintf("/y/%d", i)
			if i%3 == 0 {
				path = fmt.Sprintf("/x/%d", i)
			}
			err = errors.Join(err, tx.PutRepo(hub.Repo{ID: hub.NewRepoID(), Name: fmt.Sprintf("r%d", i), Path: path, Kind: hub.RepoFolder}))
		}
		return err
	})
	seen, cursor := map[string]bool{}, ""
	for page := range 3 {
		got := w.proxied(request{method: "GET", path: "/v1/repos?limit=7" + cursor})
		repos := got.at("repos").([]any)
		if want := min(7, 20-7*page); len(repos) != want {
			t.Errorf("page %d has %d, want %d", page, len(repos), want)
		}
		for _, r := range repos {
			seen[r.(map[string]any)["path"].(string)] = true
		}
		if next := got.text("next_cursor"); next != "" {
			cursor = "&cursor=" + next
		} else if page != 2 {
			t.Errorf("the list ends with page %d", page)
		}
	}
	if len(seen) != 20 {
		t.Errorf("%d repositories were seen", len(seen))
	}
}

func (e estate) create(status int, path, body string) response {
	e.t.Helper()
	got := e.proxied(request{method: "POST", path: path, body: body, key: string(hub.NewRequestID())})
	if got.status != status {
		e.t.Errorf("%s %s: status %d, want %d: %s", path, body, got.status, status, got.raw)
	}
	return got
}

// TestPeersCreateWithinTheirGrant: places outside are refused before anything is
// looked at or begun.
func TestPeersCreateWithinTheirGrant(t *testing.T) {
	e := newEstate(t)
	for body, code := range map[string]string{
		`{"dir":"/secret","agent":"fake"}`:                                 "repo_not_granted",
		`{"dir":"/x/../secret","agent":"fake"}`:                            "repo_not_granted",
		`{"dir":"/xy","agent":"fake"}`:                                     "repo_not_granted",
		`{"worktree":"path:/secret/missing","agent":"fake"}`:               "repo_not_granted",
		`{"worktree":"id:` + string(e.far.ID) + `","agent":"fake"}`:        "repo_not_granted",
		`{"worktree":"child","agent":"fake"}`:                              "repo_not_granted",
		`{"worktree":"current","current_dir":"/x/in","agent":"fake"}`:      "invalid_argument",
		`{"current_dir":"/x/in","agent":"fake"}`:                           "invalid_argument",
		`{"dir":"x","agent":"fake"}`:                                       "invalid_argument",
		`{"dir":"/x/in","agent":"nobody"}`:                                 "agent_unconfigured",
		`{"dir":"/x/in","worktree":"path:/x/in","agent":"fake"}`:           "invalid_argument",
		`{"worktree":"id:` + string(hub.NewWorktreeID()) + `","name":"n"}`: "worktree_not_found_on_server",
	} {
		if got := e.proxied(request{method: "POST", path: "/v1/terminals", body: body}); got.code() != code {
			t.Errorf("terminal %s: want %s, got %d %s", body, code, got.status, got.raw)
		}
	}
	for body, code := range map[string]string{
		`{"repo":"out","name":"n"}`:                                       "repo_not_granted",
		`{"repo":"/xy","name":"n"}`:                                       "repo_not_granted",
		`{"repo":"/none","name":"n"}`:                                     "repo_not_granted",
		`{"repo":"` + string(e.outside.ID) + `","name":"n"}`:              "repo_not_granted",
		`{"repo":"in","name":"n","parent":"path:/secret"}`:                "repo_not_granted",
		`{"repo":"in","name":"n","parent":"id:` + string(e.far.ID) + `"}`: "repo_not_granted",
		`{"repo":"in","name":"n","parent":"current"}`:                     "invalid_argument",
		`{"name":"n","current_dir":"/x/in"}`:                              "invalid_argument",
		`{"name":"n"}`:                                                    "invalid_argument",
		`{"repo":"none","name":"n"}`:                                      "repo_not_found",
	} {
		if got := e.proxied(request{method: "POST", path: "/v1/worktrees", body: body}); got.code() != code {
			t.Errorf("worktree %s: want %s, got %d %s", body, code, got.status, got.raw)
		}
	}
	if len(e.terminal.entered) != 0 {
		t.Error("something was started")
	}
	e.create(201, "/v1/terminals", `{"worktree":"id:`+string(e.near.ID)+`","agent":"fake"}`)
	e.create(201, "/v1/terminals", `{"worktree":"path:/x/in","command":"true"}`)
}

// TestPeersUseTheTerminalsThatTheyMade and no others: not this hub's own, not
// another peer's, and not one that was given away.
func TestPeersUseTheTerminalsThatTheyMade(t *testing.T) {
	e := newEstate(t)
	body := `{"dir":"/x/in","agent":"fake"}`
	key := string(hub.NewRequestID())
	q := request{method: "POST", path: "/v1/terminals", body: body, key: key}
	made := e.proxied(q)
	id := made.text("terminal", "terminal_id")
	if made.status != http.StatusCreated || e.proxied(q).at("mutation", "replayed") != true || len(e.terminal.entered) != 1 {
		t.Fatalf("%d %s, %d launches", made.status, made.raw, len(e.terminal.entered))
	}
	own := "/v1/terminals/" + id
	for _, suffix := range []string{"", "/screen", "/output", "/wait?for=idle"} {
		e.see(200, own+suffix)
	}
	send := func(path string) response {
		t.Helper()
		return e.proxied(request{method: "POST", path: path + "/input", body: `{"text":"ls","enter":true}`})
	}
	if got := send(own); got.text("state") != "sent" {
		t.Errorf("%s", got.raw)
	}
	refused := func(what, code string) {
		t.Helper()
		for _, suffix := range []string{"/screen", "/output", "/wait?for=idle"} {
			if got := e.proxied(request{method: "GET", path: own + suffix}); got.code() != code {
				t.Errorf("%s: %s: %d %s", what, suffix, got.status, got.raw)
			}
		}
		if got := send(own); got.code() != code {
			t.Errorf("%s: %d %s", what, got.status, got.raw)
		}
	}
	change := func(f func(*hub.Terminal)) {
		e.update(func(tx store.Tx) error {
			x, err := tx.Terminal(hub.TerminalID(id))
			f(&x)
			return errors.Join(err, tx.SaveTerminal(x))
		})
	}
	change(func(x *hub.Terminal) { x.Dispatch, x.Home = hub.NewDispatchID(), e.peer.ID })
	e.see(200, own+"/screen") // it works for the peer itself
	change(func(x *hub.Terminal) { x.Home = "" })
	refused("given to a Dispatch of this hub", "out_of_scope")
	change(func(x *hub.Terminal) { x.Dispatch, x.CreatedBy = "", "peer:hub_other" })
	refused("another peer's", "out_of_scope")
	change(func(x *hub.Terminal) { x.CreatedBy = "peer:hub_home" })
	e.regrant(e.peer, func(p *hub.Peer) { p.Grants.Repos = []string{"/z"} })
	refused("its root is taken away", "terminal_not_found")
	if n := len(e.terminal.typed); n != 1 {
		t.Errorf("%d inputs were written", n)
	}
	e.regrant(e.peer, func(*hub.Peer) {})
	own = "/v1/terminals/" + string(e.theirs.ID)
	refused("this hub's own", "out_of_scope")
	shown := e.see(200, own)
	if shown.at("terminal", "dispatch_id") != nil || shown.at("observation", "title") != nil || shown.text("terminal", "process") != "live" {
		t.Errorf("another's terminal is shown as %s", shown.raw)
	}
}

// TestPeersSeeTheirOwnDispatches: those that they are the home of, in lists, alone,
// and beside workers and worktrees.
func TestPeersSeeTheirOwnDispatches(t *testing.T) {
	e := newEstate(t)
	e.started() // this hub's own
	id := hub.NewDispatchID()
	start := e.doPeer(request{method: "POST", path: "/peer/v1/dispatches", body: startBody(t, id, ""), key: string(hub.NewRequestID())})
	if start.status != http.StatusCreated {
		t.Fatal(start.raw)
	}
	worker := hub.Worker{}
	e.update(func(tx store.Tx) error {
		ws, _, err := tx.WorkerList(store.Page{Limit: 1})
		worker = ws[0]
		other := hub.Attachment{Home: "peer_other", Dispatch: hub.NewDispatchID(), Receipt: hub.Receipt{State: hub.StartReady}, Worker: worker.ID, Capability: hub.CapActive}
		mine := hub.Attachment{Home: e.peer.ID, Dispatch: hub.NewDispatchID(), Receipt: hub.Receipt{State: hub.StartReady}, Worker: worker.ID, Capability: hub.CapActive}
		tomb := hub.Attachment{Home: e.peer.ID, Dispatch: hub.NewDispatchID(), Tombstone: true}
		for _, a := range []hub.Attachment{other, mine, tomb} {
			err = errors.Join(err, tx.PutAttachment(a))
		}
		return err
	})
	list := e.see(200, "/v1/dispatches")
	ds := list.at("dispatches").([]any)
	if len(ds) != 2 || ds[1].(map[string]any)["dispatch_id"] != string(id) || ds[1].(map[string]any)["state"] != "ready" {
		t.Errorf("%s", list.raw)
	}
	task := ds[1].(map[string]any)["task_id"].(string)
	if got := e.see(200, "/v1/dispatches?live=true&task="+task); len(got.at("dispatches").([]any)) != 1 {
		t.Errorf("by task: %s", got.raw)
	}
	if got := e.see(200, "/v1/dispatches?run="+string(hub.NewRunID())); len(got.at("dispatches").([]any)) != 0 {
		t.Errorf("of another Run: %s", got.raw)
	}
	shown := e.see(200, "/v1/dispatches/"+string(id))
	if shown.text("dispatch", "dispatch_id") != string(id) || shown.text("observation", "process") != "live" || shown.text("receipt", "state") != "ready" {
		t.Errorf("%s", shown.raw)
	}
	e.see(400, "/v1/dispatches/"+string(id)+"?wait_ms=5")
	e.see(404, "/v1/dispatches/"+string(hub.NewDispatchID()))
	workers := e.see(200, "/v1/workers")
	raw, err := json.Marshal(workers.at("workers"))
	if err != nil || strings.Count(string(raw), "dispatch_id") != 1 || workers.raw == "" {
		t.Errorf("%s", workers.raw)
	}
}
