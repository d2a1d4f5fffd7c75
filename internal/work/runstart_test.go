package work_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

func (m *machine) newRun() hub.RunID {
	m.t.Helper()
	task, _ := m.task(m.newTask())
	return task.Run
}

func (m *machine) tasks(id hub.RunID) (ts []hub.Task) {
	m.t.Helper()
	err := m.store.View(m.t.Context(), func(rx store.Rx) (err error) {
		ts, _, err = rx.TaskList(id, "", store.Page{Limit: 100})
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return ts
}

// specInput places a new worktree without a name.
func specInput() work.StartInput {
	in := startInput("")
	in.Spec.Name = ""
	return in
}

func newRequest(t *testing.T) receipt.Request {
	t.Helper()
	r, err := receipt.New(operator, "", "startRunWorker", "spec")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAStartCreatesItsTask(t *testing.T) {
	m := newMachine(t)
	s, run := m.hubOf(m.store), m.newRun()
	r := newRequest(t)
	start := func() hub.Receipt {
		t.Helper()
		out, err := s.StartNew(t.Context(), r, run, hub.Task{Spec: "\n go vet ./... \nand more", WriteScope: []string{"a"}}, specInput())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := start()
	task, d := m.task(first.Task)
	if first.State != hub.StartReady || d.ID != first.Dispatch || task.Run != run || task.Title != "go vet ./..." || task.WriteScope[0] != "a" {
		t.Errorf("%+v of %+v", first, task)
	}
	if first.Defaults[0] != (hub.Default{Field: "name", Value: "go-vet", Source: "spec"}) {
		t.Errorf("the defaults are %+v", first.Defaults)
	}
	again := start()
	if !again.Mutation.Replayed || again.Task != first.Task || again.Dispatch != first.Dispatch || len(m.tasks(run)) != 2 || m.terms.launches != 1 {
		t.Errorf("repeated: %+v, %d Tasks, %d launches", again, len(m.tasks(run)), m.terms.launches)
	}
}

// TestARefusedStartLeavesNoTask, whoever refuses it and when.
func TestARefusedStartLeavesNoTask(t *testing.T) {
	m := newMachine(t)
	s, run := m.hubOf(m.store), m.newRun()
	full := m.hubOf(m.store)
	full.Workers = 1
	if _, err := s.StartNew(t.Context(), newRequest(t), run, hub.Task{Spec: "fills the hub"}, specInput()); err != nil {
		t.Fatal(err)
	}
	before, launches := m.tasks(run), m.terms.launches
	for name, c := range map[string]struct {
		by     *work.Service
		code   hub.Code
		change func(*hub.RunID, *hub.Task, *work.StartInput)
	}{
		"no text":           {s, hub.CodeInvalidArgument, func(_ *hub.RunID, t *hub.Task, _ *work.StartInput) { t.Spec = " " }},
		"no Run":            {s, hub.CodeRunNotFound, func(id *hub.RunID, _ *hub.Task, _ *work.StartInput) { *id = hub.NewRunID() }},
		"a retry":           {s, hub.CodeInvalidArgument, func(_ *hub.RunID, _ *hub.Task, in *work.StartInput) { in.RetryOf = hub.NewDispatchID() }},
		"no agent":          {s, hub.CodeAgentUnconfigured, func(_ *hub.RunID, _ *hub.Task, in *work.StartInput) { in.Spec.Agent = "nobody" }},
		"a contradiction":   {s, hub.CodeInvalidArgument, func(_ *hub.RunID, _ *hub.Task, in *work.StartInput) { in.Spec.Parent = "id:x" }},
		"an open Task":      {s, hub.CodeTaskNotStartable, func(_ *hub.RunID, t *hub.Task, _ *work.StartInput) { t.Dependencies = []hub.TaskID{before[0].ID} }},
		"an unknown Task":   {s, hub.CodeTaskNotFound, func(_ *hub.RunID, t *hub.Task, _ *work.StartInput) { t.Dependencies = []hub.TaskID{hub.NewTaskID()} }},
		"a peer that is no": {s, hub.CodePeerNotFound, func(_ *hub.RunID, _ *hub.Task, in *work.StartInput) { in.On, in.Spec.Repo = "nobody", "demo" }},
		"no room":           {full, hub.CodeWorkerLimit, func(*hub.RunID, *hub.Task, *work.StartInput) {}},
	} {
		id, task, in := run, hub.Task{Spec: "refused"}, specInput()
		c.change(&id, &task, &in)
		if _, err := c.by.StartNew(t.Context(), newRequest(t), id, task, in); !hub.IsCode(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if got := m.tasks(run); len(got) != len(before) || m.terms.launches != launches {
		t.Errorf("%d Tasks, want %d", len(got), len(before))
	}
}

// TestACrashLeavesTaskAndDispatchTogether: a hub that dies at its first commit
// leaves both or neither.
func TestACrashLeavesTaskAndDispatchTogether(t *testing.T) {
	for _, after := range []bool{false, true} {
		m := newMachine(t)
		run := m.newRun()
		f := &frozen{Store: m.store, left: 1, after: after, died: make(chan struct{}), never: make(chan struct{})}
		t.Cleanup(func() { close(f.never) })
		s := m.hubOf(f)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = s.StartNew(ctx, newRequest(t), run, hub.Task{Spec: "x"}, specInput()) }() // it never returns an answer
		<-f.died
		got := m.tasks(run)
		if after != (len(got) == 2) {
			t.Fatalf("dead after the commit: %v, %d Tasks", after, len(got))
		}
		if after && got[1].Latest == "" {
			t.Error("the Task has no Dispatch")
		}
	}
}

func TestNamesAreMadeOfTitles(t *testing.T) {
	m := newMachine(t)
	s, run := m.hubOf(m.store), m.newRun()
	for title, want := range map[string]string{
		"Vet the module":                       "vet-the-module",
		"  Änder das: /etc & more…  ":          "nder-das-etc-more",
		"日本語":                                  "task",
		strings.Repeat("long ", 20):            "long-long-long-long-long-long-long-long",
		strings.Repeat("x", 100):               strings.Repeat("x", 40),
		"--delete ../../etc":                   "delete-etc",
		"one two three four five six seven 89": "one-two-three-four-five-six-seven-89",
	} {
		out, err := s.StartNew(t.Context(), newRequest(t), run, hub.Task{Spec: "x", Title: title}, specInput())
		if err != nil {
			t.Fatalf("%q: %v", title, err)
		}
		if got := out.Defaults[0]; got != (hub.Default{Field: "name", Value: want, Source: "title"}) || hub.CheckWorktreeName(got.Value) != nil {
			t.Errorf("%q: %+v, want %q", title, got, want)
		}
	}
}
