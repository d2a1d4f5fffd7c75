package hub

import "encoding/json"

// DispatchState is where an attempt is, as its home knows it.
type DispatchState string

// The states of a Dispatch.
const (
	Starting     DispatchState = "starting"
	Ready        DispatchState = "ready"
	StartUnknown DispatchState = "start_unknown"
	Stopping     DispatchState = "stopping"
	StopUnknown  DispatchState = "stop_unknown"
	Succeeded    DispatchState = "succeeded"
	Failed       DispatchState = "failed"
	Stopped      DispatchState = "stopped"
	Abandoned    DispatchState = "abandoned"
)

// DispatchStates lists all states in the order of a life.
var DispatchStates = []DispatchState{Starting, Ready, StartUnknown, Stopping, StopUnknown, Succeeded, Failed, Stopped, Abandoned}

// Final reports whether nothing leaves s.
func (s DispatchState) Final() bool {
	return s == Succeeded || s == Failed || s == Stopped || s == Abandoned
}

// Fenced reports whether reports no longer settle.
func (s DispatchState) Fenced() bool {
	return s == Stopping || s == StopUnknown || s == Stopped || s == Abandoned
}

// Replaceable reports whether a retry may name a Dispatch in s.
func (s DispatchState) Replaceable() bool {
	return s == Failed || s == Stopped || s == Abandoned
}

// TakesMail reports whether messages to the Dispatch are accepted.
func (s DispatchState) TakesMail() bool {
	return s == Starting || s == Ready || s == StartUnknown
}

// TaskStateFor is the Task's state while its latest Dispatch is in s.
func TaskStateFor(s DispatchState) TaskState {
	switch s {
	case Starting, Ready:
		return TaskDispatched
	case Succeeded:
		return TaskCompleted
	case Failed:
		return TaskFailed
	case StartUnknown, Stopping, StopUnknown, Stopped, Abandoned:
		return TaskBlocked
	}
	return TaskBlocked
}

// Outcome is what a report says of the work.
type Outcome string

// The outcomes.
const (
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"
	OutcomeCancelled Outcome = "cancelled"
)

// Valid reports whether o is an outcome.
func (o Outcome) Valid() bool {
	return o == OutcomeSucceeded || o == OutcomeFailed || o == OutcomeCancelled
}

// Evidence is what a settlement rests on.
type Evidence string

// The kinds of evidence.
const (
	EvidenceReport Evidence = "report" // the worker's own worker_done
	EvidenceResult Evidence = "result" // the launcher's terminal record
	EvidenceExit   Evidence = "exit"   // the proven end of the process
	EvidenceStart  Evidence = "start"  // proof that the start failed
	EvidenceStop   Evidence = "stop"   // proof of a stop
)

// Dispatch is one attempt at a Task, as its home records it.
type Dispatch struct {
	ID        DispatchID    `json:"dispatch_id"`
	Task      TaskID        `json:"task_id"`
	Run       RunID         `json:"run_id"`
	State     DispatchState `json:"state"`
	Reason    string        `json:"reason"`
	RetryOf   DispatchID    `json:"retry_of"`
	Server    Server        `json:"server"`
	Outcome   Outcome       `json:"outcome"`
	Evidence  Evidence      `json:"evidence"`
	ExitCode  *int          `json:"exit_code"`
	CreatedAt Micros        `json:"created_at"`
	SettledAt Micros        `json:"settled_at"`
	// Findings are what its owner found out about a success, nil for nothing.
	Findings *Findings `json:"findings,omitempty"`
	// Usage is what it used, as its settlement said: a JSON object, or nil.
	Usage json.RawMessage `json:"usage,omitempty"`

	// ReportSum is the hash of the report that settled it, "" for none.
	ReportSum string `json:"-"`
	// Request is the start's request; a peer is asked under the same id.
	Request RequestID `json:"-"`
	// Pin is what the start was addressed to; empty for this hub.
	Pin Pin `json:"-"`
	// Quiet keeps lifecycle mail as history: worker start --reports history.
	Quiet bool `json:"-"`
	// Version is the compare-and-set guard of every transition.
	Version int64 `json:"-"`
}

// Server names a hub in answers; PeerID is empty for the answering hub itself.
type Server struct {
	PeerID PeerID `json:"peer_id"`
	Name   string `json:"name"`
}

// Pin is the key lineage and the store a remote Dispatch is bound to, and what
// its start needs its owner to offer.
type Pin struct {
	Lineage  string
	StoreID  string
	Epoch    int64
	Contract string // "" of a start from before contracts were kept
	Features string // names with commas between them
}

// Local reports whether the Dispatch's worker lives on its home.
func (d Dispatch) Local() bool { return d.Server.PeerID == "" }
