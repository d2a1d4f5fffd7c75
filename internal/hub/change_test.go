package hub

import "testing"

func TestAcceptance_L14_ChangesOfATask(t *testing.T) {
	live, ended := &Dispatch{ID: "dispatch_1", State: Ready}, &Dispatch{ID: "dispatch_1", State: Failed}
	open := []TaskState{TaskCompleted, TaskReady}
	for _, c := range []struct {
		name   string
		from   TaskState
		latest *Dispatch
		deps   []TaskState
		change TaskChange
		to     TaskState
		code   Code
	}{
		{"text of a running Task", TaskDispatched, live, nil, TaskChange{Title: "t", Spec: "s"}, TaskDispatched, ""},
		{"final state of a running Task", TaskDispatched, live, nil, TaskChange{State: TaskCompleted}, TaskDispatched, CodeTaskStateInvalid},
		{"reopening a running Task", TaskDispatched, live, nil, TaskChange{State: TaskReady}, TaskDispatched, CodeTaskStateInvalid},
		{"completed by hand", TaskFailed, ended, nil, TaskChange{State: TaskCompleted}, TaskCompleted, ""},
		{"cancelled", TaskPending, nil, open, TaskChange{State: TaskCancelled}, TaskCancelled, ""},
		{"reopened with open dependencies", TaskCancelled, nil, open, TaskChange{State: TaskReady}, TaskPending, ""},
		{"reopened", TaskFailed, ended, nil, TaskChange{State: TaskReady}, TaskReady, ""},
		{"completed is never left", TaskCompleted, ended, nil, TaskChange{State: TaskReady}, TaskCompleted, CodeTaskStateInvalid},
		{"completed again", TaskCompleted, ended, nil, TaskChange{State: TaskCompleted}, TaskCompleted, ""},
		{"a state that comes by itself", TaskReady, nil, nil, TaskChange{State: TaskBlocked}, TaskReady, CodeInvalidArgument},
	} {
		got, err := Change(Task{State: c.from}, c.latest, c.deps, c.change)
		if (err == nil) != (c.code == "") || err != nil && err.Code != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && (got.State != c.to || got.Title != c.change.Title) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
