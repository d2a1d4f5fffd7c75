//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// coordinating is a worker's script: it makes a child Run, has two parts done,
// answers one of them, and reports what they said.
const coordinating = `set -e
wh() { "$WAVEHUB_BIN" "$@"; }
field() { sed -n 's/.*"'"$1"'":"\([a-z0-9_]*\)".*/\1/p'; }
refused() { if wh "$@" --json > /dev/null 2> err; then echo "$* was allowed" >> refusals; else field code < err >> refusals; fi; }

refused task list
wh run create --objective "The parts" --json > run.json
refused run create --objective "Another"
refused check
refused run list
refused task list --run "$PARENT"
refused worker start --spec x --worktree path:/ --agent sh
refused worker start --spec x --worktree path:/ --agent sh --on nowhere

task=$(wh task create --spec '"$WAVEHUB_BIN" done "$(wavehub ask --question "Which?" --option left --option right --timeout 60s)"' --title one --json | field task_id)
one=$(wh worker start --task "$task" --worktree current --agent sh --json | field dispatch_id)
wh check --mailbox run --wait --timeout 60s --types question --json > batch.json
wh reply --id "$(field message_id < batch.json)" --body left > /dev/null
wh check --mailbox run --ack "$(field delivery_id < batch.json)" > /dev/null
two=$(wh worker start --spec '"$WAVEHUB_BIN" done two' --worktree current --agent sh --json | field dispatch_id)
wh worker wait "$one" "$two" --exit-status --timeout 60s > waited
wh check --peek --mailbox run > mail
[ "$(wh worker list | wc -l)" = 2 ] && [ "$(wh task list | wc -l)" = 2 ] && wh run current > current
wh progress "The parts are done"
wh done "$(grep -cx 'left\|two' mail) parts"
`

// TestAWorkerCoordinatesAChildRun on its own hub, here and on a peer, with the
// program's own command line.
func TestAWorkerCoordinatesAChildRun(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("parent")
	for owner, place := range map[*Hub][]string{p.Home: {"--worktree", "path:" + t.TempDir(), "--agent", "sh"}, p.Worker: p.Place()} {
		dir := strings.TrimPrefix(place[len(place)-3], "path:")
		start := run.Work("PARENT="+run.Run+"\n"+coordinating, append(place, "--may-coordinate")...)
		m := run.Done(start.DispatchId)
		if m.Body != "2 parts" || reportOf(m).Outcome != "succeeded" {
			text := get[api.OutputPage](t, run.Caller, "worker", "read", start.DispatchId).Terminal.Text
			t.Errorf("on %s the report is %+v\n%s", owner.Name, m, text)
		}
		want := "run_required\nalready_bound\nmailbox_ambiguous\nout_of_scope\nout_of_scope\nrepo_not_granted\nserver_required\n"
		if got, err := os.ReadFile(filepath.Join(dir, "refusals")); err != nil || string(got) != want {
			t.Errorf("on %s it was refused %q %v", owner.Name, got, err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "run.json"))
		must(t, err)
		child := decode[api.RunBound](t, string(raw))
		if *child.Run.ParentRunId != run.Run || child.Binding.ConsumerToken != nil {
			t.Errorf("on %s the child Run is %+v", owner.Name, child)
		}
		if shown := get[api.RunDetail](t, owner.Caller(), "run", "show", child.Run.RunId); shown.Run.Objective != "The parts" || shown.Mailbox.Messages != 3 {
			t.Errorf("on %s it is shown as %+v", owner.Name, shown)
		}
		mine := owner.Caller("WAVEHUB_CONSUMER_FILE=" + filepath.Join(t.TempDir(), "consumer"))
		get[api.RunBound](t, mine, "run", "use", child.Run.RunId)
		if got := get[api.CheckResult](t, mine, "check"); got.Count != 2 {
			t.Errorf("on %s the operator goes on with %+v", owner.Name, got)
		}
	}
	if runs := get[api.RunPage](t, p.Home.Caller(), "run", "list"); len(runs.Runs) != 2 {
		t.Errorf("the home has the Runs %+v", runs.Runs)
	}
}

// TestAChildRunOutlivesAKilledHub: the worker goes on as its coordinator.
func TestAChildRunOutlivesAKilledHub(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("parent")
	w, dir := run.chief(t, h)
	child := get[api.RunBound](t, w.Caller(), "run", "create", "--objective", "parts").Run.RunId
	before := w.cap(t)
	h.Restart()
	if now := get[api.RunDetail](t, w.Caller(), "run", "current"); now.Run.RunId != child || now.BindingState != "live" {
		t.Errorf("after the restart: %+v", now)
	}
	if w.cap(t) != before {
		t.Error("the capability is written anew, and differs")
	}
	part := get[api.StartReceipt](t, w.Caller(), "worker", "start", "--spec", done+"ok", "--worktree", "path:"+dir, "--agent", "sh")
	if got := get[api.CheckResult](t, w.Caller(), "check", "--mailbox", "run", "--wait", "--timeout", "30s", "--types", "worker_done"); got.Count != 1 || got.Messages[0].From != "dispatch:"+part.DispatchId {
		t.Errorf("the batch is %+v", got)
	}
	waits := begin(t, func() (Result, error) {
		return w.Caller().json("check", "--mailbox", "dispatch", "--wait", "--timeout", "60s"), nil
	})
	get[api.StopResult](t, run.Caller, "worker", "stop", w.DispatchId)
	if r := waits.get(t, 30*time.Second).value; r.Code != exitOf(t, "dispatch_inactive") {
		t.Errorf("a wait of the stopped worker: %+v", r)
	}
	refused(t, w.Caller(), "dispatch_inactive", "task", "create", "--spec", "x", "--run", child)
	if n := len(get[api.DispatchPage](t, h.Caller(), "worker", "list", "--run", child).Dispatches); n != 1 {
		t.Errorf("the operator sees %d Dispatches", n)
	}
}

// chief starts a worker that may coordinate, and waits, in a folder of its own.
func (c Coordinator) chief(t testing.TB, owner *Hub) (w Worker, dir string) {
	t.Helper()
	dir = t.TempDir()
	return c.heldWorker(t, owner, "--worktree", "path:"+dir, "--agent", "sh", "--may-coordinate"), dir
}

// cap is the content of its capability file now.
func (w Worker) cap(t testing.TB) string {
	t.Helper()
	raw, err := os.ReadFile(w.File)
	must(t, err)
	return string(raw)
}
