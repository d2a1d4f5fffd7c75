package hub

import (
	"encoding/json"
	"slices"
)

// TaskState is where a Task is; see TaskStateFor and Task.Derive.
type TaskState string

// The states of a Task.
const (
	TaskPending    TaskState = "pending"    // a dependency is open
	TaskReady      TaskState = "ready"      // may be started
	TaskDispatched TaskState = "dispatched" // its latest Dispatch runs
	TaskCompleted  TaskState = "completed"
	TaskFailed     TaskState = "failed"
	TaskBlocked    TaskState = "blocked" // its latest Dispatch is fenced or unknown
	TaskCancelled  TaskState = "cancelled"
)

// TaskStates lists all states, for filters and checks of input.
var TaskStates = []TaskState{TaskPending, TaskReady, TaskDispatched, TaskCompleted, TaskFailed, TaskBlocked, TaskCancelled}

// Valid reports whether s is a state of a Task.
func (s TaskState) Valid() bool { return slices.Contains(TaskStates, s) }

// Policies of a Task.
const (
	VerifyRecord   = "record"
	VerifyRequired = "required"
	ScopeAdvisory  = "advisory"
	ScopeEnforce   = "enforce"
)

// Task is what is to be done. Version is its ETag: it grows with every change.
type Task struct {
	ID           TaskID    `json:"task_id"`
	Run          RunID     `json:"run_id"`
	Title        string    `json:"title"`
	Spec         string    `json:"spec"`
	State        TaskState `json:"state"`
	Dependencies []TaskID  `json:"dependencies"`
	VerifyCmd    string    `json:"verify_cmd"`
	Verify       string    `json:"verify"`
	WriteScope   []string  `json:"write_scope"`
	Scope        string    `json:"scope"`
	TimeoutSecs  int64     `json:"timeout_secs"`
	// VerifyTimeoutSecs bounds verify_cmd; 0 takes the owner's default.
	VerifyTimeoutSecs int64      `json:"verify_timeout_secs"`
	HandoffPath       string     `json:"handoff_path"`
	Hat               string     `json:"hat"`
	Origin            string     `json:"origin"`
	Latest            DispatchID `json:"latest_dispatch_id"`
	Result            string     `json:"result"` // what the settling report said
	// ResultData is the report's result as JSON, nil for none.
	ResultData json.RawMessage `json:"result_data,omitempty"`
	Version    int64           `json:"version"`
	CreatedAt  Micros          `json:"created_at"`
	UpdatedAt  Micros          `json:"updated_at"`
}

// Limits of a Task.
const (
	MaxSpecBytes    = 1 << 20
	MaxTitleBytes   = 512
	MaxDependencies = 1000
)

// Readiness is the state of a Task without a live Dispatch whose dependencies
// are in the given states: ready when all completed, else pending. A failed,
// blocked or cancelled dependency never unlocks.
func Readiness(deps []TaskState) TaskState {
	for _, s := range deps {
		if s != TaskCompleted {
			return TaskPending
		}
	}
	return TaskReady
}

// TaskChange is what an update asks for; empty fields stay as they are.
type TaskChange struct {
	Title string    `json:"title"`
	Spec  string    `json:"spec"`
	State TaskState `json:"state"` // ready, completed, failed or cancelled
}

// Change returns t after c. latest is the Task's latest Dispatch, nil if it
// never had one, deps the states of its dependencies. Text may change at any
// time, the state only while no Dispatch is live; completed is never left.
func Change(t Task, latest *Dispatch, deps []TaskState, c TaskChange) (Task, *Error) {
	if c.Title != "" {
		t.Title = c.Title
	}
	if c.Spec != "" {
		t.Spec = c.Spec
	}
	switch {
	case c.State == "" || c.State == t.State && t.State == TaskCompleted:
		return t, nil
	case latest != nil && !latest.State.Final():
		e := Errorf(CodeTaskStateInvalid, "%s has the live Dispatch %s (%s)", t.ID, latest.ID, latest.State)
		e.Hint = "stop or abandon the Dispatch first"
		return t, e.WithNext("wavehub", "worker", "show", string(latest.ID))
	case t.State == TaskCompleted:
		e := Errorf(CodeTaskStateInvalid, "%s is completed%s, which is never left", t.ID, by(latest))
		e.Hint = "make a follow-up Task"
		return t, e
	}
	switch c.State {
	case TaskReady:
		t.State = Readiness(deps)
	case TaskCompleted, TaskFailed, TaskCancelled:
		t.State = c.State
	case TaskPending, TaskDispatched, TaskBlocked:
		return t, Invalid("state", "%s comes about by itself; it cannot be set", c.State)
	}
	return t, nil
}

func by(latest *Dispatch) string {
	if latest == nil {
		return ""
	}
	return " (its latest Dispatch is " + string(latest.ID) + ")"
}

// Startable tells why a first start or a retry of t is refused, nil if it is
// not. latest is the Task's latest Dispatch, nil if it never had one; retryOf
// is what the caller named.
func Startable(t Task, latest *Dispatch, retryOf DispatchID) *Error {
	if retryOf == "" {
		return firstStart(t, latest)
	}
	return retryStart(t, latest, retryOf)
}

func firstStart(t Task, latest *Dispatch) *Error {
	if latest == nil && t.State == TaskReady {
		return nil
	}
	if latest == nil {
		e := Errorf(CodeTaskNotStartable, "%s is %s and has never been started; it must be ready", t.ID, t.State)
		e.Hint = "it becomes ready when the Tasks that it depends on are completed, or by task update --state ready"
		return e.WithNext("wavehub", "task", "show", string(t.ID))
	}
	return notStartable(t, latest)
}

// notStartable names the Dispatch that stands in the way, or that ended t.
func notStartable(t Task, latest *Dispatch) *Error {
	e := Errorf(CodeTaskNotStartable, "%s is %s; its latest Dispatch %s is %s", t.ID, t.State, latest.ID, latest.State)
	e.Hint = "inspect that Dispatch; once it is failed, stopped or abandoned, start again with --retry-of and a placement"
	if t.State == TaskCompleted {
		e.Hint = "a completed Task is not started again: make a follow-up Task"
	}
	return e.WithNext("wavehub", "worker", "show", string(latest.ID))
}

func retryStart(t Task, latest *Dispatch, retryOf DispatchID) *Error {
	switch {
	case latest == nil:
		return Errorf(CodeTaskNotStartable, "%s has never been started, so %s is not its latest Dispatch", t.ID, retryOf).
			WithNext("wavehub", "task", "show", string(t.ID))
	case latest.ID != retryOf:
		e := Errorf(CodeTaskNotStartable, "%s is not the latest Dispatch of %s: that is %s, and it is %s", retryOf, t.ID, latest.ID, latest.State)
		return e.WithNext("wavehub", "worker", "show", string(latest.ID))
	case !latest.State.Replaceable():
		return Errorf(CodeTaskNotStartable, "%s is %s; only a failed, stopped or abandoned Dispatch is replaced", latest.ID, latest.State).
			WithNext("wavehub", "worker", "show", string(latest.ID))
	case slices.Contains([]TaskState{TaskFailed, TaskBlocked, TaskCancelled, TaskReady}, t.State):
		return nil
	default:
		return notStartable(t, latest)
	}
}
