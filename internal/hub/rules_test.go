package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestStartable(t *testing.T) {
	at := func(s DispatchState) *Dispatch { return &Dispatch{ID: "dispatch_1", State: s} }
	for _, c := range []struct {
		name    string
		task    TaskState
		latest  *Dispatch
		retryOf DispatchID
		ok      bool
	}{
		{"ready and fresh", TaskReady, nil, "", true},
		{"pending", TaskPending, nil, "", false},
		{"running", TaskDispatched, at(Ready), "", false},
		{"failed without naming", TaskFailed, at(Failed), "", false},
		{"retry of failed", TaskFailed, at(Failed), "dispatch_1", true},
		{"retry of stopped", TaskBlocked, at(Stopped), "dispatch_1", true},
		{"retry of abandoned", TaskBlocked, at(Abandoned), "dispatch_1", true},
		{"retry of unknown", TaskBlocked, at(StartUnknown), "dispatch_1", false},
		{"retry of another", TaskFailed, at(Failed), "dispatch_0", false},
		{"retry of none", TaskReady, nil, "dispatch_1", false},
		{"retry of success", TaskCompleted, at(Succeeded), "dispatch_1", false},
		{"retry of a cancelled Task", TaskCancelled, at(Failed), "dispatch_1", true},
		{"retry of a reopened Task", TaskReady, at(Stopped), "dispatch_1", true},
		{"retry of a reopened Task that waits", TaskPending, at(Stopped), "dispatch_1", false},
		{"retry of what was completed by hand", TaskCompleted, at(Failed), "dispatch_1", false},
		{"reopened without naming", TaskReady, at(Stopped), "", false},
	} {
		if err := Startable(Task{ID: "task_1", State: c.task}, c.latest, c.retryOf); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestStartSpecRefusals(t *testing.T) {
	ok := StartSpec{Worktree: "current", Agent: "sh"}
	if err := ok.Check(false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec   StartSpec
		remote bool
		names  []string
	}{
		{StartSpec{Worktree: "current"}, false, []string{"--agent", "--terminal"}},
		{StartSpec{Worktree: "current", Agent: "sh", Terminal: "term_1"}, false, []string{"--terminal", "--agent"}},
		{StartSpec{Worktree: "current", Terminal: "term_1", Setup: "run"}, false, []string{"--terminal", "--setup"}},
		{StartSpec{Worktree: "new-child", Terminal: "term_1"}, false, []string{"--terminal", "new-child"}},
		{StartSpec{Worktree: "current", Agent: "sh"}, true, []string{"current", "--on"}},
		{StartSpec{Worktree: "new-child", Name: "x", Agent: "sh"}, true, []string{"--on", "--parent"}},
		{StartSpec{Worktree: "new-top-level", Agent: "sh"}, false, []string{"--name"}},
		{StartSpec{Worktree: "id:wt", Agent: "sh", Setup: "skip"}, false, []string{"--setup"}},
		{StartSpec{Worktree: "path:/x", Agent: "sh", Base: "main"}, false, []string{"--base"}},
		{StartSpec{Agent: "sh"}, false, []string{"worktree"}},
	} {
		err := c.spec.Check(c.remote)
		if !IsCode(err, CodeInvalidArgument) {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		for _, n := range c.names {
			if !strings.Contains(err.Error(), n) {
				t.Errorf("%+v: %q does not name %s", c.spec, err, n)
			}
		}
	}
}

func TestReportNamesItsField(t *testing.T) {
	good := Report{Task: "task_1", Dispatch: "dispatch_1", Outcome: OutcomeSucceeded}
	for field, r := range map[string]Report{
		"task_id":     {Dispatch: "dispatch_1", Outcome: OutcomeSucceeded},
		"dispatch_id": {Task: "task_1", Outcome: OutcomeSucceeded},
		"outcome":     {Task: "task_1", Dispatch: "dispatch_1", Outcome: "fine"},
	} {
		e, ok := errors.AsType[*Error](r.Check("task_1", "dispatch_1"))
		if !ok || e.Code != CodeLifecycleInvalid || e.Field != field {
			t.Errorf("%s: %v", field, e)
		}
	}
	if err := good.Check("task_2", "dispatch_1"); !IsCode(err, CodeLifecycleInvalid) {
		t.Errorf("a foreign pair: %v", err)
	}
	if err := good.Check("task_1", "dispatch_1"); err != nil {
		t.Error(err)
	}
}

func TestReportSumCoversWhatItSays(t *testing.T) {
	r := Report{Outcome: OutcomeSucceeded, Result: json.RawMessage(`1`), Files: []string{"a"}, Claim: "passed"}
	seen := map[string]string{r.Sum("body"): "itself"}
	for name, x := range map[string]Report{
		"outcome": {Outcome: OutcomeFailed, Result: r.Result, Files: r.Files, Claim: r.Claim},
		"result":  {Outcome: r.Outcome, Result: json.RawMessage(`2`), Files: r.Files, Claim: r.Claim},
		"files":   {Outcome: r.Outcome, Result: r.Result, Files: []string{"b"}, Claim: r.Claim},
		"verify":  {Outcome: r.Outcome, Result: r.Result, Files: r.Files, Claim: "failed"},
	} {
		if was, ok := seen[x.Sum("body")]; ok {
			t.Errorf("%s has the sum of %s", name, was)
		}
		seen[x.Sum("body")] = name
	}
	if _, ok := seen[r.Sum("other")]; ok {
		t.Error("the body is not covered")
	}
}

func TestErrorsCarryTheirCode(t *testing.T) {
	err := fmt.Errorf("doing: %w", Errorf(CodeTaskNotFound, "task_%d", 1))
	if CodeOf(err) != CodeTaskNotFound || !errors.Is(err, &Error{Code: CodeTaskNotFound}) {
		t.Errorf("%v lost its code", err)
	}
	if CodeOf(errors.New("x")) != CodeInternal || CodeOf(nil) != "" {
		t.Error("foreign errors are internal, nil has no code")
	}
	for code, info := range catalogue {
		if info.Title == "" || info.Retry == "" || info.Exit < 1 || info.Exit > 10 {
			t.Errorf("%s is incomplete: %+v", code, info)
		}
	}
}

func TestMicrosJSON(t *testing.T) {
	at := MicrosOf(time.Date(2026, 1, 2, 3, 4, 5, 600_000, time.UTC))
	raw, err := json.Marshal(at)
	if err != nil || string(raw) != `"2026-01-02T03:04:05.000600Z"` {
		t.Fatalf("%s %v", raw, err)
	}
	var back Micros
	if err := json.Unmarshal(raw, &back); err != nil || back != at {
		t.Fatalf("%v %v", back, err)
	}
	if raw, _ := json.Marshal(Micros(0)); string(raw) != "null" {
		t.Fatalf("none is %s", raw)
	}
}

func TestCheckText(t *testing.T) {
	if err := CheckText("body", strings.Repeat("x", MaxBodyBytes), MaxBodyBytes); err != nil {
		t.Error(err)
	}
	for code, s := range map[Code]string{
		CodeTooLarge:        strings.Repeat("x", MaxBodyBytes+1),
		CodeInvalidArgument: "a\x00b",
	} {
		if err := CheckText("body", s, MaxBodyBytes); !IsCode(err, code) {
			t.Errorf("want %s, got %v", code, err)
		}
	}
	if err := CheckText("body", "\xff", MaxBodyBytes); !IsCode(err, CodeInvalidArgument) {
		t.Error("invalid UTF-8 is taken")
	}
}

func TestBoxes(t *testing.T) {
	r, d := NewRunID(), NewDispatchID()
	if got, ok := r.Box().Run(); !ok || got != r {
		t.Errorf("%s", r.Box())
	}
	if got, ok := d.Box().Dispatch(); !ok || got != d {
		t.Errorf("%s", d.Box())
	}
	for _, bad := range []Box{"", "run:", "run:x", "dispatch:run_1", Box("run:" + string(d))} {
		if _, ok := bad.Run(); ok {
			t.Errorf("%q is taken for a Run's mailbox", bad)
		}
	}
}
