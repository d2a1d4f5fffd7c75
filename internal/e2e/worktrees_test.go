//go:build unix

package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// withDemo starts a hub that knows a repository as demo.
func withDemo(t *testing.T) (h *Hub, repo string) {
	t.Helper()
	h, repo = StartHub(t, "mac"), NewRepo(t, map[string]string{"a.txt": "one\n", ".gitignore": "out/\n"})
	get[api.RepoResult](t, h.Caller(), "repo", "add", repo, "--name", "demo")
	return h, repo
}

func (h *Hub) newWorktree(name string, more ...string) api.Worktree {
	h.t.Helper()
	return get[api.WorktreeReceipt](h.t, h.Caller(), append([]string{"worktree", "create", "--repo", "demo", "--name", name}, more...)...).Worktree
}

func TestWorktrees_AreResources(t *testing.T) {
	t.Parallel()
	h, repo := withDemo(t)
	first := strings.TrimSpace(git(t, repo, "rev-parse", "HEAD"))
	git(t, repo, "commit", "-q", "--allow-empty", "-m", "second")
	top := h.newWorktree("top", "--base", first[:12], "--display-name", "The Top", "--comment", "why not")
	if top.State != "ready" || top.BaseCommit != first || top.DisplayName != "The Top" || top.Comment != "why not" || top.ParentWorktreeId != nil || top.Setup.State != "not_configured" {
		t.Errorf("created %+v", top)
	}
	inside := h.Caller()
	inside.dir = filepath.Join(top.Path, "deep")
	must(t, os.Mkdir(inside.dir, 0o700))
	child := get[api.WorktreeReceipt](t, inside, "worktree", "create", "--repo", "demo", "--name", "child", "--parent", "current").Worktree
	if child.ParentWorktreeId == nil || *child.ParentWorktreeId != top.WorktreeId {
		t.Errorf("the child is %+v", child)
	}
	must(t, os.WriteFile(filepath.Join(top.Path, "new"), nil, 0o600))
	for _, by := range [][]string{{"current"}, {"id:" + top.WorktreeId}, {"id:" + top.WorktreeId[len(top.WorktreeId)-12:]}, {"path:" + top.Path}, {"path:."}, {"top"}} {
		if strings.HasPrefix(by[0], "id:") && len(by[0]) < 20 {
			continue // only whole ids and beginnings abbreviate worktrees
		}
		shown := get[api.WorktreeDetail](t, inside, "worktree", "show", by[0])
		if shown.Worktree.WorktreeId != top.WorktreeId || *shown.Branch != "wavehub/top" || *shown.Head != first || !shown.Present || len(shown.Children) != 1 ||
			len(shown.Losses) != 1 || shown.Losses[0].Name != "new" || shown.Losses[0].Kind != "untracked" {
			t.Errorf("%q shows %+v", by, shown)
		}
	}
	refused(t, h.Caller(), "worktree_not_found_on_server", "worktree", "show", "nowhere")
	refused(t, h.Caller(), "worktree_not_found_on_server", "worktree", "show", "path:"+repo)
	refused(t, h.Caller(), "name_taken", "worktree", "create", "--repo", "demo", "--name", "top")
	refused(t, h.Caller(), "invalid_argument", "worktree", "create", "--repo", "demo", "--name", "x", "--base", "--upload-pack=y")
	run := h.NewRun("children")
	start := run.Work(done+"\"$(pwd)\"", "--repo", "demo", "--worktree", "new-child", "--parent", "child", "--name", "grandchild", "--agent", "sh")
	run.Done(start.DispatchId)
	if shown := get[api.WorktreeDetail](t, h.Caller(), "worktree", "show", "child"); len(shown.Children) != 1 || shown.Children[0].Name != "grandchild" {
		t.Errorf("the child's children: %+v", shown.Children)
	}
}

// A repository inside has commits that no ref of the outer one can keep: it is
// not deleted, even by force.
func TestWorktrees_ARepositoryInsideIsNotDeleted(t *testing.T) {
	t.Parallel()
	h, _ := withDemo(t)
	outer := h.newWorktree("outer")
	inner := filepath.Join(outer.Path, "inner")
	must(t, os.Mkdir(inner, 0o700))
	git(t, inner, "init", "-q")
	must(t, os.WriteFile(filepath.Join(inner, "a"), []byte("a"), 0o600))
	git(t, inner, "add", "a")
	git(t, inner, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "only here")
	for _, more := range [][]string{{}, {"--force"}} {
		p := refused(t, h.Caller(), "worktree_not_empty", append([]string{"worktree", "remove", "outer"}, more...)...)
		if !strings.Contains(p.Detail, "repository inner") || !exists(filepath.Join(inner, ".git")) {
			t.Errorf("%q: %+v", more, p)
		}
	}
	must(t, os.RemoveAll(inner))
	get[api.WorktreeRemoval](t, h.Caller(), "worktree", "remove", "outer", "--force")
	if exists(outer.Path) {
		t.Error("the worktree stays")
	}
}

func TestWorktrees_RemovalLosesNothing(t *testing.T) {
	t.Parallel()
	h, repo := withDemo(t)
	clean := h.newWorktree("clean")
	must(t, os.MkdirAll(filepath.Join(clean.Path, "out"), 0o700))
	must(t, os.WriteFile(filepath.Join(clean.Path, "out", "ignored"), nil, 0o600))
	gone := get[api.WorktreeRemoval](t, h.Caller(), "worktree", "remove", "clean")
	if gone.WorktreeId != clean.WorktreeId || gone.BranchKept || len(gone.Saved) != 0 || exists(clean.Path) {
		t.Errorf("removed %+v", gone)
	}
	refused(t, h.Caller(), "worktree_not_found_on_server", "worktree", "remove", "id:"+clean.WorktreeId)
	full := h.newWorktree("clean") // the name is free again
	must(t, os.WriteFile(filepath.Join(full.Path, "a.txt"), []byte("two\n"), 0o600))
	git(t, full.Path, "commit", "-q", "-a", "-m", "second")
	commit := strings.TrimSpace(git(t, full.Path, "rev-parse", "HEAD"))
	must(t, os.WriteFile(filepath.Join(full.Path, "a.txt"), []byte("three\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(full.Path, "new"), []byte("new\n"), 0o600))
	key := id.New("req_")
	p := refused(t, h.Caller(), "worktree_not_empty", "worktree", "remove", "clean", "--retry-request", key)
	for _, want := range []string{"commit " + commit, "modified a.txt", "untracked new"} {
		if !strings.Contains(p.Detail, want) {
			t.Errorf("the refusal does not list %q: %s", want, p.Detail)
		}
	}
	if shown := get[api.WorktreeDetail](t, h.Caller(), "worktree", "show", "clean"); shown.Worktree.State != "ready" || shown.LossCount != 3 {
		t.Errorf("after the refusal: %+v", shown)
	}
	forced := get[api.WorktreeRemoval](t, h.Caller(), "worktree", "remove", "clean", "--force")
	if len(forced.Saved) != 2 || forced.Saved[0].Commit != commit || len(forced.NotSaved) != 0 || exists(full.Path) {
		t.Errorf("forced: %+v", forced)
	}
	if text := git(t, repo, "show", forced.Saved[1].Ref+":a.txt") + git(t, repo, "show", forced.Saved[1].Ref+":new"); text != "three\nnew\n" {
		t.Errorf("saved %q", text)
	}
	if left := git(t, repo, "worktree", "list", "--porcelain") + git(t, repo, "branch", "--list", "wavehub/*"); strings.Contains(left, "clean") {
		t.Errorf("left behind: %s", left)
	}
	again := get[api.WorktreeRemoval](t, h.Caller(), "worktree", "remove", "clean", "--force", "--retry-request", forced.Mutation.RequestId)
	if !again.Mutation.Replayed || len(again.Saved) != 2 {
		t.Errorf("replayed: %+v", again)
	}
}

func TestWorktrees_InUseAreNotRemoved(t *testing.T) {
	t.Parallel()
	h, _ := withDemo(t)
	run := h.NewRun("in use")
	w, g := h.newWorktree("used"), newGate(t)
	start := run.Work(g.wait()+done+"x", "--worktree", "used", "--agent", "sh")
	if p := refused(t, h.Caller(), "terminal_busy", "worktree", "remove", "used", "--force"); !strings.Contains(p.Detail, start.DispatchId) {
		t.Errorf("the refusal says %s", p.Detail)
	}
	if shown := get[api.WorktreeDetail](t, h.Caller(), "worktree", "show", "used"); len(shown.Dispatches) != 1 || shown.Dispatches[0] != start.DispatchId || shown.Worktree.State != "ready" {
		t.Errorf("shown: %+v", shown)
	}
	g.open(t, 1)
	run.Done(start.DispatchId)
	eventually(t, "the worktree is free", 20*time.Second, func() bool {
		return len(get[api.WorktreeDetail](t, h.Caller(), "worktree", "show", "used").Dispatches) == 0
	})
	get[api.WorktreeRemoval](t, h.Caller(), "worktree", "remove", "used")
	if exists(w.Path) {
		t.Error("it is still there")
	}
}

func TestWorktrees_TwentyAtOnce(t *testing.T) {
	t.Parallel()
	const n = 20
	h, repo := withDemo(t)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if r := h.CLI("worktree", "create", "--repo", "demo", "--name", "w"+itoa(i), "--json"); r.Code != 0 {
				t.Errorf("w%d: exit %d\n%s", i, r.Code, r.Stderr)
			}
		})
	}
	all.Wait()
	if got := len(get[api.WorktreePage](t, h.Caller(), "worktree", "list", "--limit", "100").Worktrees); got != n {
		t.Errorf("%d worktrees", got)
	}
	if got := len(strings.Fields(git(t, repo, "for-each-ref", "--format=%(refname)", "refs/heads/wavehub/"))); got != n {
		t.Errorf("%d branches", got)
	}
}

// A creation that a kill cut off leaves a worktree that is on record, or nothing;
// the request repeated says which. The same is true of a start's worktree.
func TestAcceptance_Q05_AWorktreeCutByAKillIsThereOrNot(t *testing.T) {
	t.Parallel()
	h, repo := withDemo(t)
	run := h.NewRun("cut")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed: %d", seed)
	rng, outcomes := rand.New(rand.NewPCG(seed, 7)), map[string]int{}
	for i := range scaled(t, 6, 24, 200) {
		name, after := "w"+itoa(i), time.Duration(rng.Int64N(int64(90*time.Millisecond)))
		args := []string{"worktree", "create", "--repo", "demo", "--name", name, "--retry-request", id.New("req_"), "--json"}
		if i%2 == 1 {
			args = append([]string{"worker", "start", "--task", run.Task("true"), "--retry-request", id.New("req_"), "--json"}, newTree(name)...)
		}
		call := begin(t, func() (Result, error) { return run.CLI(args...), nil })
		<-time.After(after)
		h.Restart()
		call.get(t, commandLimit)
		r := run.CLI(args...)
		state := decode[struct {
			State string `json:"state"`
		}](t, r.Stdout).State
		if r.Code != 0 && r.Code != 1 || state == "" {
			t.Fatalf("killed after %s: exit %d\n%s%s", after, r.Code, r.Stdout, r.Stderr)
		}
		outcomes[args[0]+" "+state]++
		h.agree(t, repo)
		if there := h.CLI("worktree", "show", name).Code == 0; args[0] == "worktree" && there != (state == "ready") {
			t.Errorf("killed after %s: %s, and it is there: %v", after, state, there)
		}
	}
	t.Logf("outcomes: %v", outcomes)
}

// agree holds the hub's worktrees against those of git, its branches and folders.
func (h *Hub) agree(t *testing.T, repo string) {
	t.Helper()
	list := get[api.WorktreePage](t, h.Caller(), "worktree", "list", "--limit", "200").Worktrees
	known := git(t, repo, "worktree", "list", "--porcelain")
	for _, w := range list {
		if w.State != "ready" || !strings.Contains(known, "locked "+w.WorktreeId) || !exists(filepath.Join(w.Path, "a.txt")) {
			t.Errorf("on record, and not whole: %+v\n%s", w, known)
		}
	}
	branches := strings.Fields(git(t, repo, "for-each-ref", "--format=%(refname)", "refs/heads/wavehub/"))
	folders, err := filepath.Glob(h.Data("worktrees", "repo_*", "*"))
	must(t, err)
	if n := strings.Count(known, "locked wt_"); n != len(list) || len(branches) != n || len(folders) != n {
		t.Errorf("%d on record, %d of git, branches %q, folders %q", len(list), n, branches, folders)
	}
}
