//go:build unix

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

func TestAcceptance_R01_CreateBindsTheTerminal(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	term := NewTerminal(t, h)
	first := inTerminal[api.RunBound](t, term, "run", "create", "--objective", "first")
	if first.Binding == nil || first.Binding.Generation != 1 || first.Run.Generation != 1 {
		t.Fatalf("the binding is %+v", first.Binding)
	}
	term.Run("run", "create", "--objective", "second", "--json").problem(t, "already_bound")
	if runs := get[api.RunPage](t, h.Caller(), "run", "list"); len(runs.Runs) != 1 {
		t.Errorf("%d Runs exist, want 1", len(runs.Runs))
	}
	if now := inTerminal[api.RunDetail](t, term, "run", "current"); now.Run.RunId != first.Run.RunId || now.BindingState != "live" {
		t.Errorf("current is %+v", now)
	}
	other := NewTerminal(t, h)
	if second := inTerminal[api.RunBound](t, other, "run", "create", "--objective", "second"); second.Binding.Generation != 1 {
		t.Errorf("another terminal is another context: %+v", second.Binding)
	}
}

func TestAcceptance_R02_RunRequiredPrintsCommandsThatWork(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("exists")
	term := NewTerminal(t, h)
	p := term.Run("task", "create", "--spec", "x", "--json").problem(t, "run_required")
	if len(p.NextCommands) != 2 {
		t.Fatalf("next commands are %q", p.NextCommands)
	}
	for _, argv := range p.NextCommands {
		fresh := NewTerminal(t, h)
		if r := fresh.Run(argv[1:]...); argv[0] != "wavehub" || r.Code != 0 {
			t.Errorf("%q: exit %d %s", argv, r.Code, r.Stderr)
		}
		if r := fresh.Run("task", "create", "--spec", "x"); r.Code != 0 {
			t.Errorf("after %q: exit %d %s", argv, r.Code, r.Stderr)
		}
	}
	if tasks := get[api.TaskPage](t, run.Caller, "task", "list"); len(tasks.Tasks) != 1 {
		t.Errorf("run use led to %d tasks in the Run, want 1", len(tasks.Tasks))
	}
}

func TestAcceptance_R03_R04_R05_TakingOverFences(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	old := h.NewRun("taken over")
	send(t, old, "status", "one")
	held := old.Check()
	waiter := beginCheck(t, old, client.CheckOptions{Ack: *held.DeliveryId, Wait: time.Minute})
	send(t, old, "guidance", "two")
	got := waiter.get(t, 20*time.Second)
	if got.err != nil || got.value.Count != 1 {
		t.Fatalf("the waiter got %+v %v", got.value, got.err)
	}
	term := NewTerminal(t, h)
	taken := inTerminal[api.RunBound](t, term, "run", "use", old.Run)
	if taken.Binding.Generation != 2 {
		t.Errorf("the generation is %d", taken.Binding.Generation)
	}
	refused(t, old.Caller, "consumer_fenced", "check")
	refused(t, old.Caller, "consumer_fenced", "check", "--ack", *got.value.DeliveryId)
	refused(t, old.Caller, "consumer_fenced", "reply", "--id", got.value.Messages[0].MessageId, "--body", "x")
	old.Task("still allowed", "--run", old.Run)
	again := inTerminal[api.CheckResult](t, term, "check")
	if again.Count != 1 || *again.DeliveryId == *got.value.DeliveryId || again.Messages[0].Body != "two" || again.Replayed {
		t.Errorf("the new consumer's first batch is %+v", again)
	}
}

func TestAcceptance_R03_TheOldWaiterWakesFenced(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	old := h.NewRun("waited on")
	waiter := beginCheck(t, old, client.CheckOptions{Wait: time.Minute})
	next := get[api.RunBound](t, h.Caller(), "run", "use", old.Run)
	got := waiter.get(t, 20*time.Second)
	if !isCode(got.err, client.CodeConsumerFenced) {
		t.Errorf("the old waiter got %+v %v", got.value, got.err)
	}
	detail := get[api.RunDetail](t, h.Caller(), "run", "show", old.Run)
	if detail.Run.Generation != next.Binding.Generation || len(detail.Audit) < 3 {
		t.Errorf("R7: the history is %+v", detail.Audit)
	}
}

func TestAcceptance_R08_AScriptNeedsNoTerminal(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("script")
	g := newGate(t)
	d := run.Work(`"$WAVEHUB_BIN" ask --question "Go on?" --timeout 60s > answer; ` + g.wait() + done + `"$(cat answer)"`)
	asked := run.Check("--types", "question")
	if asked.Count != 1 || asked.Messages[0].Body != "Go on?" {
		t.Fatalf("the batch is %+v", asked)
	}
	get[api.SendResult](t, run.Caller, "reply", "--id", asked.Messages[0].MessageId, "--body", "Yes")
	get[api.CheckResult](t, run.Caller, "check", "--ack", *asked.DeliveryId)
	g.open(t, 1)
	if m := run.Done(d.DispatchId); m.Body != "Yes" {
		t.Errorf("the worker reports %q", m.Body)
	}
}

func TestAcceptance_R06_MailOfTwoRunsNeverMixes(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	term := NewTerminal(t, h)
	a := inTerminal[api.RunBound](t, term, "run", "create", "--objective", "a").Run.RunId
	b := inTerminal[api.RunBound](t, term, "run", "create", "--objective", "b", "--bind").Run.RunId
	for _, run := range []string{a, b} {
		get[api.SendResult](t, h.Caller(), "send", "--to", "run:"+run, "--type", "status", "--subject", "s", "--body", run)
	}
	for _, run := range []string{b, a} {
		inTerminal[api.RunBound](t, term, "run", "use", run)
		got := inTerminal[api.CheckResult](t, term, "check")
		if got.Count != 1 || got.Messages[0].Body != run {
			t.Errorf("%s got %+v", run, got.Messages)
		}
	}
}

// TestAbbreviatedIDs: twelve characters from the beginning of an id, or its last
// six, are enough; names and what stands for several ids are left alone.
func TestAbbreviatedIDs(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("abbreviate")
	one := get[api.TaskResult](t, h.Caller(), "task", "create", "--run", run.Run, "--spec", "true").Task.TaskId
	for _, text := range []string{one[:len(one)-1], one[len(one)-6:]} {
		if got := get[api.TaskOnly](t, h.Caller(), "task", "show", text); got.Task.TaskId != one {
			t.Errorf("%s stands for %s", text, got.Task.TaskId)
		}
	}
	two := get[api.TaskResult](t, h.Caller(), "task", "create", "--run", run.Run, "--spec", "true").Task.TaskId
	shared := 0
	for one[shared] == two[shared] {
		shared++
	}
	if r := h.CLI("task", "show", one[:max(12, shared)]); shared >= 12 && (r.Code != 2 || !strings.Contains(r.Stderr, "several")) {
		t.Errorf("an ambiguous id: exit %d %s", r.Code, r.Stderr)
	}
	if got := get[api.TaskPage](t, h.Caller(), "task", "list", "--run", run.Run[len(run.Run)-6:]); len(got.Tasks) != 2 {
		t.Errorf("%d tasks of the abbreviated Run", len(got.Tasks))
	}
	if r := h.CLI("task", "show", "task_zzzzzzzzz"); r.Code != 3 {
		t.Errorf("an abbreviation of nothing: exit %d", r.Code)
	}
}

func TestAcceptance_R10_ChildRunsNestThreeDeep(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("parent").Run
	for range 3 {
		run = get[api.RunBound](t, h.Caller(), "run", "create", "--objective", "child", "--no-bind", "--parent", run).Run.RunId
	}
	if p := refused(t, h.Caller(), "invalid_argument", "run", "create", "--objective", "child", "--no-bind", "--parent", run); p.Field != "parent_run_id" {
		t.Errorf("the fourth child: %+v", p)
	}
	if runs := get[api.RunPage](t, h.Caller(), "run", "list"); len(runs.Runs) != 4 {
		t.Errorf("%d Runs exist, want 4", len(runs.Runs))
	}
}
