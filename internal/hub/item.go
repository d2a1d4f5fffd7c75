package hub

import (
	"encoding/json"
	"strings"
)

// Direction is the way of a relay queue.
type Direction string

// The directions.
const (
	ToHome   Direction = "to_home"
	ToWorker Direction = "to_worker"
)

// ItemKind says what a relay item carries.
type ItemKind string

// The kinds of items. Payload by kind:
// message: Message; exit: ExitItem; stopped: StopItem; answer: AnswerItem;
// question_closed: ClosedItem; fence: FenceItem; worker_waiting: WaitingItem.
// question_closed: ClosedItem; fence: FenceItem; started: nothing.
const (
	ItemMessage        ItemKind = "message"
	ItemExit           ItemKind = "exit"
	ItemStopped        ItemKind = "stopped"
	ItemAnswer         ItemKind = "answer"
	ItemQuestionClosed ItemKind = "question_closed"
	ItemFence          ItemKind = "fence"
	ItemWaiting        ItemKind = "worker_waiting"
	ItemStarted        ItemKind = "started" // an attached worker took its Dispatch up
)

// Item is one entry of a Dispatch's relay queue. Seq counts from 1 without
// holes per (Dispatch, direction) within one store epoch of the source; its
// content never changes once committed. Pos is its place in the source's log
// of everything queued, of all Dispatches: the feed position.
type Item struct {
	Pos      int64
	Dispatch DispatchID
	Seq      int64
	ID       MessageID // dedupes across epochs
	Kind     ItemKind
	Payload  []byte
}

// Ack is the receiver's cumulative word on one Dispatch's queue: everything up
// to Seq is committed there. Verdicts carries what was made of reports and of
// late messages among them. A refusal parks the Dispatch at the source.
type Ack struct {
	Dispatch DispatchID
	Seq      int64
	Verdicts []ItemVerdict
	Parked   string // reason the next item could not be imported; "" if none
}

// ItemVerdict is what was made of item Seq: the verdict on a report, or stale
// for any other message that came too late for its recipient.
type ItemVerdict struct {
	Seq     int64
	Verdict Verdict
	Reason  string
}

// Want asks the source to send the Dispatch's queue again from Seq on: up to
// Until, or as far as it has sent it when that is 0.
type Want struct {
	Dispatch DispatchID
	Seq      int64
	Until    int64
}

// ImportResult is what one import committed.
type ImportResult struct {
	Acks  []Ack
	Wants []Want // gaps: items that could not be imported yet
	Feed  int64  // everything up to this feed position has been seen
}

// FeedState is how far a receiver has come with one source's log: to a position
// of it, and with how many items of this epoch.
type FeedState struct {
	StoreID  string
	Epoch    int64
	Position int64
	Items    int64
	// Seen is the highest epoch of the store that the receiver has met. The store
	// keeps it: who sets the other fields need not.
	Seen int64
}

// LogState is what a source says of its log for one receiver.
type LogState struct {
	StoreID string
	Epoch   int64
	// Begin is the position up to which the log of the epoch before is known
	// here: what a receiver had of that epoch beyond it is lost.
	Begin int64
	// End is the position of the newest item, whomever it is for.
	End int64
	// Acked is the position of the newest acknowledged item, Items how many are
	// acknowledged in this epoch, Swept the position of the newest one that is
	// not kept any more.
	Acked, Items, Swept int64
}

// Lacks reports whether a receiver that has come so far has lost what it had
// acknowledged.
func (l LogState) Lacks(f FeedState) bool {
	if f.StoreID != l.StoreID || f.Epoch != l.Epoch {
		return l.Items > 0
	}
	return f.Position < l.Acked || f.Items < l.Items
}

// Reasons for which a queue is parked that more than one package names.
const (
	// ParkedConflict: the source uses sequences again that it had used before. It
	// is parked until the source's epoch is raised.
	ParkedConflict = "relay_conflict"
	// ParkedUnknown: the receiver does not know the Dispatch.
	ParkedUnknown = "unknown_dispatch"
)

// RelayState is what a hub knows of its relay queues with a peer: what waits to
// be acknowledged in those that flow, and the parked ones, of which Parked has the
// first.
type RelayState struct {
	Items       int
	Bytes       int64
	ParkedCount int
	Parked      []ParkedQueue
}

// ParkedQueue is a queue that does not flow. Sending says that this hub is its
// source; Waiting is then how many items it holds.
type ParkedQueue struct {
	Dispatch DispatchID
	Sending  bool
	Waiting  int
	Reason   string
}

// Conflicting reports whether an ack is a refusal that no retry ends.
func (a Ack) Conflicting() bool { return strings.HasPrefix(a.Parked, ParkedConflict) }

// ExitItem is the proven end of a worker's process.
type ExitItem struct {
	Incarnation Incarnation `json:"incarnation"`
	ExitCode    *int        `json:"exit_code"`
	Signal      string      `json:"signal,omitempty"`
	// Usage is what the worker used in all, as its owner knows it, nil for nothing.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// WaitingItem says that a worker began to wait for a person.
type WaitingItem struct {
	WaitingFor string `json:"waiting_for"` // prompt, permission
	Detail     string `json:"detail"`      // the agent's own words
}

// StopItem is the owner's evidence about a stop that the home fenced.
type StopItem struct {
	Request RequestID     `json:"request_id"`
	Proved  bool          `json:"proved"`
	Action  ProcessAction `json:"process_action"`
	Reason  string        `json:"reason,omitempty"`
	// Usage is what the worker used, as its owner knows it, nil for nothing.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// AnswerItem carries the answer to a question.
type AnswerItem struct {
	Question MessageID `json:"question"`
	Message  MessageID `json:"message_id"`
	Body     string    `json:"body"`
}

// ClosedItem closes a pending question.
type ClosedItem struct {
	Question MessageID `json:"question"`
	Reason   string    `json:"reason"`
}

// FenceItem tells the owner to stop the Dispatch's exact incarnation.
type FenceItem struct {
	Request RequestID `json:"request_id"`
	GraceMS int64     `json:"grace_ms"`
	// Reported notes on an attachment that its home knows that nothing could
	// be proved so far.
	Reported bool `json:"reported,omitempty"`
	// Action and ExitCode note on an attachment what carrying it out came to: the
	// same request is answered so, whoever asks again.
	Action   ProcessAction `json:"process_action,omitempty"`
	ExitCode *int          `json:"exit_code,omitempty"`
}

// Quotas of one queue; the reserved amount comes on top for a terminal report.
// Exits, stops, fences, question_closed and answers are never refused.
const (
	QueueItems          = 1000
	QueueBytes          = 8 << 20
	ReservedReportBytes = 256 << 10
	ReservedExitBytes   = 4 << 10
)
