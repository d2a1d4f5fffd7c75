//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// TestShortForms: the commonest sentences of a worker and of its coordinator.
func TestShortForms(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("short forms")
	g := newGate(t)
	long := strings.Repeat("é", 60)
	d := run.Work(`"$WAVEHUB_BIN" progress "
Half of it
and more"
printf '` + long + `' | "$WAVEHUB_BIN" progress --body-file - --json > sent
"$WAVEHUB_BIN" ask --question "Go on?" --option yes --timeout 60s > answer
` + g.wait() + `echo '{"n":1}' > result; "$WAVEHUB_BIN" done --body-file answer --failed --result-file result --json > done.json`)
	asked := run.Check("--types", "question")
	if len(asked.Messages) != 3 || asked.Messages[0].Subject != "Half of it" || asked.Messages[0].Body != "\nHalf of it\nand more" || asked.Messages[0].Type != "status" {
		t.Fatalf("the mail is %+v", asked.Messages)
	}
	if got := asked.Messages[1]; got.Subject != strings.Repeat("é", 36)+"…" || got.Body != long {
		t.Errorf("a long line is %+v", got)
	}
	question := asked.Messages[2].MessageId
	if list := get[api.QuestionPage](t, run.Caller, "question", "list", "--state", "pending"); len(list.Questions) != 1 || list.Questions[0].MessageId != question || list.Questions[0].Question != "Go on?" {
		t.Errorf("the questions are %+v", list)
	}
	if shown := get[api.MessageOnly](t, run.Caller, "message", "show", question); shown.Message.Body != "Go on?" || shown.Delivery != "delivered" {
		t.Errorf("the message is %+v", shown)
	}
	if r := run.CLI("message", "show", question); r.Code != 0 || !strings.Contains(r.Stdout, "Go on?") || !strings.Contains(r.Stdout, `"options":["yes"]`) {
		t.Errorf("for people: %+v", r)
	}
	get[api.SendResult](t, run.Caller, "reply", "--id", question, "--body", "yes")
	get[api.CheckResult](t, run.Caller, "check", "--ack", *asked.DeliveryId)
	if list := get[api.QuestionPage](t, run.Caller, "question", "list", "--run", run.Run, "--state", "answered", "--limit", "1"); len(list.Questions) != 1 || *list.Questions[0].Answer != "yes" {
		t.Errorf("the answered questions are %+v", list)
	}
	g.open(t, 1)
	if m := run.Done(d.DispatchId); m.Subject != "failed" || m.Body != "yes\n" || reportOf(m).Outcome != "failed" || !strings.Contains(string(m.Payload), `{"n":1}`) {
		t.Errorf("the report is %+v", m)
	}
	task := run.Task("never mind")
	if out := get[api.TaskResult](t, run.Caller, "task", "cancel", task); out.Task.State != "cancelled" {
		t.Errorf("cancelled: %+v", out)
	}
	refused(t, run.Caller, "task_state_invalid", "task", "cancel", run.heldWorker(t, h).TaskId)
}

func TestRunUseLatest(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	h.NewRun("older")
	newest := h.NewRun("newest")
	file := filepath.Join(t.TempDir(), "consumer")
	use := get[api.RunBound](t, h.Caller(), "run", "use", "--latest", "--consumer-file", file)
	if use.Run.RunId != newest.Run || use.Binding.Generation != 2 {
		t.Errorf("the binding is %+v", use)
	}
	if now := get[api.RunDetail](t, h.Caller("WAVEHUB_CONSUMER_FILE="+file), "run", "current"); now.Run.RunId != newest.Run {
		t.Errorf("current is %+v", now)
	}
	refused(t, h.Caller(), "invalid_argument", "run", "use", newest.Run, "--latest")
}

// TestConfigSet: what is set is what the next start takes.
func TestConfigSet(t *testing.T) {
	t.Parallel()
	h := NewHub(t, "mac")
	if r := h.CLI("config", "set", "limits.workers", "1", "--json"); r.Code != 0 || !strings.Contains(r.Stdout, `"key":"limits.workers"`) {
		t.Fatalf("%+v", r)
	}
	h.Start()
	run := h.NewRun("limited")
	run.heldWorker(t, h)
	refused(t, run.Caller, "worker_limit", "worker", "start", "--spec", "true", "--worktree", "path:"+t.TempDir(), "--agent", "sh")
	path := strings.TrimSpace(h.CLI("config", "path", "config").Stdout)
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v", info.Mode())
	}
	if r := h.CLI("config", "show", "--origin"); !strings.Contains(r.Stdout, "file "+path) {
		t.Errorf("%+v", r)
	}
}
