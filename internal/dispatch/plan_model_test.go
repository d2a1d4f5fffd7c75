package dispatch_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// planModel is Tasks of one Run that depend on each other: page "contract", 3.4
// and 3.5. It uses none of the functions that it judges.
type planModel struct {
	w     *world
	run   hub.RunID
	tasks []*planned // in the order of creation
	tries []*try
}

// planned is one Task.
type planned struct {
	id     hub.TaskID
	state  hub.TaskState
	deps   []*planned
	latest *try // nil before the first start
}

// try is one Dispatch, from the proof of its start on.
type try struct {
	id    hub.DispatchID
	of    *planned
	state hub.DispatchState
}

// afterStart is what an event makes of a Dispatch; what is missing makes nothing.
var afterStart = map[hub.DispatchState]map[string]hub.DispatchState{
	hub.Ready: {
		"succeeded": hub.Succeeded, "failed": hub.Failed, "cancelled": hub.Stopped, "exit": hub.Failed,
		"stop": hub.Stopping, "abandon": hub.Abandoned,
	},
	hub.Stopping: {
		"cancelled": hub.Stopped, "exit": hub.Stopped, "stop proved": hub.Stopped, "stop lost": hub.StopUnknown, "abandon": hub.Abandoned,
	},
	hub.StopUnknown: {"cancelled": hub.Stopped, "exit": hub.Stopped, "stop proved": hub.Stopped, "abandon": hub.Abandoned},
}

// taskWhile is the state of a Task while its latest Dispatch is in a state.
var taskWhile = map[hub.DispatchState]hub.TaskState{
	hub.Ready: hub.TaskDispatched, hub.Succeeded: hub.TaskCompleted, hub.Failed: hub.TaskFailed, hub.Stopping: hub.TaskBlocked,
	hub.StopUnknown: hub.TaskBlocked, hub.Stopped: hub.TaskBlocked, hub.Abandoned: hub.TaskBlocked,
}

func (d *try) live() bool { return d != nil && afterStart[d.state] != nil }

// readiness is that of a Task which no attempt and no word of a person decides.
func (p *planned) readiness() hub.TaskState {
	if slices.ContainsFunc(p.deps, func(d *planned) bool { return d.state != hub.TaskCompleted }) {
		return hub.TaskPending
	}
	return hub.TaskReady
}

// move gives a Task its state and unlocks what waited for it.
func (m *planModel) move(p *planned, to hub.TaskState) {
	p.state = to
	for _, other := range m.tasks {
		if to == hub.TaskCompleted && other.state == hub.TaskPending {
			other.state = other.readiness()
		}
	}
}

func (m *planModel) draw(t *rapid.T) *planned {
	if len(m.tasks) == 0 {
		t.Skip("there is no Task")
	}
	return rapid.SampledFrom(m.tasks).Draw(t, "task")
}

// maxPlanned keeps the Tasks few, so that much happens to each.
const maxPlanned = 4

// create adds a Task behind up to three others, at times also behind one that is
// missing, which is refused.
func (m *planModel) create(t *rapid.T) {
	if len(m.tasks) == maxPlanned {
		t.Skip("there are enough Tasks")
	}
	if rapid.IntRange(0, 5).Draw(t, "circle") == 0 {
		m.circle(t)
	}
	p, ids := &planned{}, []hub.TaskID{}
	for range rapid.IntRange(0, min(3, len(m.tasks))).Draw(t, "dependencies") {
		d := m.draw(t)
		p.deps, ids = append(p.deps, d), append(ids, d.id)
	}
	missing := rapid.IntRange(0, 5).Draw(t, "missing") == 0
	if missing {
		ids = append(ids, hub.NewTaskID())
	}
	c, err := m.w.runs.CreateTask(t.Context(), m.w.request(operator(), "task.create", hub.NewRequestID()), m.run, hub.Task{Spec: "x", Dependencies: ids})
	if missing {
		if !hub.IsCode(err, hub.CodeTaskNotFound) {
			t.Fatalf("a missing dependency: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	p.id, p.state = c.Task.ID, p.readiness()
	m.tasks = append(m.tasks, p)
}

// circle tries to add two Tasks that wait for each other.
func (m *planModel) circle(t *rapid.T) {
	a, b := hub.NewTaskID(), hub.NewTaskID()
	err := m.w.store.Update(t.Context(), store.New, func(tx store.Tx) error {
		_, err := run.CreateTasks(tx, m.run, []hub.Task{{ID: a, Spec: "x", Dependencies: []hub.TaskID{b}}, {ID: b, Spec: "x", Dependencies: []hub.TaskID{a}}})
		return err
	})
	if !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Fatalf("a cycle: %v", err)
	}
}

// wished are the states that people ask for, the usual ones more often.
var wished = append([]hub.TaskState{"", hub.TaskReady, hub.TaskReady, hub.TaskCancelled, hub.TaskCompleted}, hub.TaskStates...)

// update asks for any state, or for none and another title.
func (m *planModel) update(t *rapid.T) {
	p := m.draw(t)
	in := run.UpdateInput{Task: p.id, Change: hub.TaskChange{Title: "new", State: rapid.SampledFrom(wished).Draw(t, "state")}}
	outdated := rapid.IntRange(0, 5).Draw(t, "outdated") == 0
	if outdated {
		in.IfMatch = `"v0"`
	}
	_, err := m.w.runs.UpdateTask(t.Context(), m.w.request(operator(), "task.update", hub.NewRequestID()), in)
	want := p.refusal(in.Change.State)
	if outdated {
		want = hub.CodePreconditionFailed
	}
	if want != "" && !hub.IsCode(err, want) || want == "" && err != nil {
		t.Fatalf("%s to %q: %v, want %q", p.state, in.Change.State, err, want)
	}
	switch to := in.Change.State; {
	case want != "" || to == "":
	case to == hub.TaskReady:
		m.move(p, p.readiness()) // reopened
	default:
		m.move(p, to)
	}
}

// refusal is why a person may not set the state, "" if they may.
func (p *planned) refusal(to hub.TaskState) hub.Code {
	switch {
	case to == "", to == hub.TaskCompleted && p.state == hub.TaskCompleted:
		return ""
	case p.latest.live(), p.state == hub.TaskCompleted:
		return hub.CodeTaskStateInvalid
	case to == hub.TaskPending, to == hub.TaskDispatched, to == hub.TaskBlocked:
		return hub.CodeInvalidArgument
	}
	return ""
}

// start is a first start, or a retry of some Dispatch.
func (m *planModel) start(t *rapid.T) {
	p, of := m.draw(t), hub.DispatchID("")
	if len(m.tries) > 0 && rapid.Bool().Draw(t, "retry") {
		of = rapid.SampledFrom(m.tries).Draw(t, "of").id
	}
	if p.latest != nil && rapid.Bool().Draw(t, "of the latest") {
		of = p.latest.id
	}
	id, err := m.w.attempt(p.id, of)
	if !p.startable(of) {
		if !hub.IsCode(err, hub.CodeTaskNotStartable) {
			t.Fatalf("a start of %s as a retry of %q: %v", p.state, of, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	p.latest = &try{id: id, of: p, state: hub.Ready}
	m.tries = append(m.tries, p.latest)
	m.move(p, hub.TaskDispatched)
}

func (p *planned) startable(retryOf hub.DispatchID) bool {
	if p.latest == nil {
		return retryOf == "" && p.state == hub.TaskReady
	}
	again := p.latest.state == hub.Failed || p.latest.state == hub.Stopped || p.latest.state == hub.Abandoned
	return retryOf == p.latest.id && again && p.state != hub.TaskCompleted && p.state != hub.TaskPending
}

// happen lets something happen to a Dispatch, which may have been replaced.
func (m *planModel) happen(t *rapid.T) {
	if len(m.tries) == 0 {
		t.Skip("nothing was started")
	}
	d := rapid.SampledFrom(m.tries).Draw(t, "dispatch")
	if last := m.tries[len(m.tries)-1]; rapid.Bool().Draw(t, "the last") {
		d = last
	}
	what := rapid.SampledFrom([]string{"succeeded", "failed", "cancelled", "exit", "stop", "stop proved", "stop lost", "abandon"}).Draw(t, "event")
	switch err := m.w.happen(d.of.id, d.id, what); {
	case hub.IsCode(err, hub.CodeRelayQuotaExceeded):
		return
	case err != nil:
		t.Fatal(err)
	}
	to, ok := afterStart[d.state][what]
	if !ok {
		return
	}
	if d.state = to; d.of.latest == d {
		m.move(d.of, taskWhile[to])
	}
}

// happen applies an event by the use-case that stands for it.
func (w *world) happen(task hub.TaskID, id hub.DispatchID, what string) error {
	if o := hub.Outcome(what); o.Valid() {
		_, err := w.send(worker(id), report(task, id, o, "b"))
		return err
	}
	return w.store.Update(w.t.Context(), store.Settle, func(tx store.Tx) (err error) {
		switch what {
		case "exit":
			err = dispatch.Exit(tx, "", id, hub.ExitItem{}, "")
		case "stop":
			_, _, err = dispatch.Fence(tx, id, hub.FenceItem{})
		case "abandon":
			_, _, err = dispatch.Abandon(tx, id)
		default:
			_, err = dispatch.EndStop(tx, id, hub.StopEvidence{Proved: what == "stop proved"})
		}
		return err
	})
}

// invariants hold after every step; a refusal has changed nothing.
func (m *planModel) invariants(t *rapid.T) {
	var stored []hub.Task
	err := m.w.store.View(t.Context(), func(rx store.Rx) (err error) {
		stored, _, err = rx.TaskList(m.run, "", store.Page{Limit: 1000})
		return err
	})
	if err != nil || len(stored) != len(m.tasks) {
		t.Fatalf("%d Tasks, want %d (%v)", len(stored), len(m.tasks), err)
	}
	for i, p := range m.tasks {
		latest := hub.DispatchID("")
		if p.latest != nil {
			latest = p.latest.id
		}
		if got := stored[i]; got.ID != p.id || got.State != p.state || got.Latest != latest {
			t.Fatalf("Task %d is %s (latest %q), want %s (%q)", i, got.State, got.Latest, p.state, latest)
		}
	}
}

// TestModel_Plan: in every order of creations, updates, attempts and their ends
// each Task has the state that its dependencies, its latest attempt and people
// gave it; completed is never left and unlocks what waited for nothing else.
func TestModel_Plan(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &planModel{w: w}
		m.run, _ = w.newRun()
		actions := map[string]func(*rapid.T){"create": m.create, "update": m.update, "start": m.start, "happen": m.happen, "": m.invariants}
		for range 2 { // long lives of few Tasks
			t.Repeat(actions)
		}
	})
}
