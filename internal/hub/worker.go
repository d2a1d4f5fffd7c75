package hub

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Worker is the registered identity of an attached worker: a program that no hub
// starts, and that takes its Dispatches from the mailbox worker:<id>.
type Worker struct {
	ID    WorkerID    `json:"worker_id"`
	Name  string      `json:"name"`
	State WorkerState `json:"state"`
	// Generation counts the loops that have taken the mailbox, from 1; raising it
	// fences the former one.
	Generation int64  `json:"generation"`
	CreatedAt  Micros `json:"created_at"`
}

// WorkerState is whether an identity takes Dispatches.
type WorkerState string

// The states of an identity. A draining one ends what it has; a revoked one can
// do nothing any more, and its name is free.
const (
	WorkerActive   WorkerState = "active"
	WorkerDraining WorkerState = "draining"
	WorkerRevoked  WorkerState = "revoked"
)

var workerName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// CheckWorkerName refuses a name outside the grammar of names. An @ would make
// name@peer ambiguous.
func CheckWorkerName(name string) error {
	if workerName.MatchString(name) && !strings.Contains(name, "..") && !ValidID(PrefixWorker, name) {
		return nil
	}
	return Invalid("name", "%q must be 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit", name)
}

// Box returns the mailbox of the identity.
func (w WorkerID) Box() Box { return Box("worker:" + w) }

// Worker returns the identity whose mailbox b is.
func (b Box) Worker() (WorkerID, bool) {
	s, ok := strings.CutPrefix(string(b), "worker:")
	return WorkerID(s), ok && ValidID(PrefixWorker, s)
}

// Session is what a worker keeps between the Dispatches of one piece of work. Its
// id is the Dispatch's, or one that the caller of the start chose: then all
// attempts share it. Home is as in Attachment, and ids are unique per home.
type Session struct {
	ID           string
	Home         PeerID
	Worker       WorkerID // "" for a worker that a hub started
	Orchestrator Box      // the mailbox that the work is reported to
	Dispatch     DispatchID
	Status       SessionStatus
	BackendCtx   json.RawMessage // the worker's own words, nil for none
	Metadata     json.RawMessage // what the start said of it, nil for none
	UpdatedAt    Micros
}

// SessionStatus is whether a Dispatch of the session is under way.
type SessionStatus string

// The states of a session.
const (
	SessionOpen   SessionStatus = "open"
	SessionClosed SessionStatus = "closed"
)

// MaxBackendCtxBytes bounds a session's backend_ctx, as JSON.
const MaxBackendCtxBytes = 64 << 10

// MaxSessionBytes bounds the id of a session: <wave>--<task>.
const MaxSessionBytes = 258

// SessionStart is the payload of a session_start. Prompt is the Task's text and
// behind it Background as text; Preamble says how to report.
type SessionStart struct {
	Action     string              `json:"action"` // start
	Session    string              `json:"session_id"`
	Dispatch   DispatchID          `json:"dispatch_id"`
	Task       TaskID              `json:"task_id"`
	Run        RunID               `json:"run_id"`
	Title      string              `json:"title"`
	Prompt     string              `json:"prompt"`
	Preamble   string              `json:"preamble"`
	BackendCtx json.RawMessage     `json:"backend_ctx"`
	Attempt    int                 `json:"attempt"`
	RetryOf    DispatchID          `json:"retry_of,omitempty"`
	Commands   map[string][]string `json:"commands"` // how to report, as argument vectors
	// Checks is what a success is judged by; an attached worker runs VerifyCmd
	// itself.
	Checks
	WaveMark
	// Background is what the Task depends on, nil for nothing; SpecBytes is how much
	// of Prompt is the Task's own text then.
	Background *Background `json:"background,omitempty"`
	SpecBytes  int         `json:"spec_bytes,omitempty"`
}

// Spec is the Task's text alone.
func (s SessionStart) Spec() string {
	if s.Background == nil {
		return s.Prompt
	}
	return s.Prompt[:min(max(s.SpecBytes, 0), len(s.Prompt))]
}

// SessionControl is the payload of a control and, with State, of a
// session_close.
type SessionControl struct {
	Action   string     `json:"action"` // cancel or close
	Session  string     `json:"session_id"`
	Dispatch DispatchID `json:"dispatch_id"`
	Task     TaskID     `json:"task_id"`
	// State is what is known here of the Dispatch's end: its state, or settled
	// where another hub is its home.
	State string `json:"state,omitempty"`
	WaveMark
}

// Actions of the mail that a hub writes to an attached worker.
const (
	ActionStart  = "start"
	ActionCancel = "cancel"
	ActionClose  = "close"
)
