//go:build unix

package e2e

import (
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

func defaultOf(r api.StartReceipt, field string) api.Default {
	for _, d := range r.Defaults {
		if d.Field == field {
			return d
		}
	}
	return api.Default{}
}

// TestWorkerStartWithSpec: one command creates the Task and starts its worker,
// names the worktree after it and finds the repository of the folder.
func TestWorkerStartWithSpec(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("short")
	repo := NewRepo(t, map[string]string{"a.txt": "one\n"})
	get[api.RepoResult](t, h.Caller(), "repo", "add", repo, "--name", "demo")
	inRepo := run.Caller
	inRepo.dir = repo
	key := id.New("req_")
	start := []string{"worker", "start", "--spec", done + `"$(cat a.txt)"`, "--title", "Read the first file", "--write-scope", "b", "--worktree", "new-top-level", "--agent", "sh", "--retry-request", key}
	first := get[api.StartReceipt](t, inRepo, start...)
	if d := defaultOf(first, "name"); d.Value != "read-the-first-file" || d.Source != "title" {
		t.Errorf("the name is %+v", d)
	}
	if d := defaultOf(first, "repo"); d.Value != "demo" || d.Source != "current_directory" {
		t.Errorf("the repository is %+v", d)
	}
	if m := run.Done(first.DispatchId); m.Body != "one" {
		t.Errorf("the report is %+v", m)
	}
	task := get[api.TaskOnly](t, run.Caller, "task", "show", first.TaskId).Task
	if task.Title != "Read the first file" || task.WriteScope[0] != "b" || task.State != "completed" || *task.LatestDispatchId != first.DispatchId {
		t.Errorf("the Task is %+v", task)
	}
	h.Restart()
	again := get[api.StartReceipt](t, inRepo, start...)
	if !again.Mutation.Replayed || again.DispatchId != first.DispatchId || again.TaskId != first.TaskId {
		t.Errorf("Q1: repeated after a restart: %+v", again)
	}
	refused(t, inRepo, "request_mismatch", append(start, "--verify-cmd", "true")...)
	taken := []string{"worker", "start", "--spec", "x", "--title", "Read: the first file?", "--worktree", "new-top-level", "--agent", "sh"}
	refused(t, inRepo, "name_taken", taken...)
	device := get[api.StartReceipt](t, inRepo, "worker", "start", "--spec", "true", "--title", "Con", "--worktree", "new-top-level", "--agent", "sh")
	if d := defaultOf(device, "name"); d.Value != "task-con" {
		t.Errorf("the name is %+v", d)
	}
	run.Done(device.DispatchId)
	refused(t, run.Caller, "invalid_argument", "worker", "start", "--task", first.TaskId, "--title", "x", "--worktree", "current", "--agent", "sh")
	if tasks := get[api.TaskPage](t, run.Caller, "task", "list"); len(tasks.Tasks) != 2 {
		t.Errorf("refused starts left Tasks: %+v", tasks.Tasks)
	}
	detail := get[api.RequestDetail](t, run.Caller, "request", "show", key)
	if detail.Request.Operation != "startRunWorker" || !strings.Contains(string(detail.Response), first.TaskId) {
		t.Errorf("the request is %+v", detail)
	}
}

func TestWorkerStartWithSpecOnAPeer(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "mac"), Worker: StartHub(t, "windows"), Root: NewRepo(t, map[string]string{"a.txt": "there\n"})}
	Pair(t, p.Home, p.Worker, p.Root, "")
	get[api.RepoResult](t, p.Worker.Caller(), "repo", "add", p.Root, "--name", "demo")
	run := p.Home.NewRun("remote")
	place := []string{"--on", "windows", "--repo", "demo", "--worktree", "new-top-level", "--agent", "sh"}
	start := get[api.StartReceipt](t, run.Caller, append([]string{"worker", "start", "--spec", "cat a.txt; " + done + "ok", "--title", "Over there"}, place...)...)
	if start.State != "ready" || defaultOf(start, "name").Value != "over-there" || defaultOf(start, "setup").Value == "" {
		t.Errorf("the receipt is %+v", start)
	}
	run.Done(start.DispatchId)
	if shown := run.Show(start.DispatchId).Receipt; defaultOf(shown, "name").Value != "over-there" {
		t.Errorf("the receipt at home is %+v", shown)
	}
	p.Worker.Kill()
	refused(t, run.Caller, "remote_runtime_unavailable", append([]string{"worker", "start", "--spec", "true", "--title", "Nowhere"}, place...)...)
	if tasks := get[api.TaskPage](t, run.Caller, "task", "list"); len(tasks.Tasks) != 1 {
		t.Errorf("the refusal left a Task: %+v", tasks.Tasks)
	}
	p.Worker.Start()
}

// TestAcceptance_W16_ExitCodesOfAStartWithSpec: those of a start with a Task.
func TestAcceptance_W16_ExitCodesOfAStartWithSpec(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac", withBrokenAgent)
	run := h.NewRun("exit codes")
	place := []string{"worker", "start", "--spec", "true", "--worktree", "path:" + t.TempDir(), "--json"}
	for _, c := range []struct {
		code  int
		state string
		more  []string
	}{
		{0, "starting", []string{"--agent", "sh", "--no-wait"}}, {0, "ready", []string{"--agent", "sh"}}, {1, "failed", []string{"--agent", "broken"}},
	} {
		r := run.CLI(append(place, c.more...)...)
		if got := decode[api.StartReceipt](t, r.Stdout); r.Code != c.code || string(got.State) != c.state || got.TaskId == "" {
			t.Errorf("%q: exit %d, %+v", c.more, r.Code, got)
		}
	}
}
