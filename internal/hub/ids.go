package hub

import (
	"strings"

	"github.com/wavehub/wavehub/internal/id"
)

// Identifiers are distinct types; each value is a prefix and 26 characters.
type (
	RunID      string
	TaskID     string
	DispatchID string
	DeliveryID string
	MessageID  string
	RequestID  string
	TerminalID string
	WorktreeID string
	RepoID     string
	PeerID     string
	InviteID   string
	WorkerID   string
)

// Prefixes of the identifiers.
const (
	PrefixRun      = "run_"
	PrefixTask     = "task_"
	PrefixDispatch = "dispatch_"
	PrefixDelivery = "delivery_"
	PrefixMessage  = "msg_"
	PrefixRequest  = "req_"
	PrefixTerminal = "term_"
	PrefixWorktree = "wt_"
	PrefixRepo     = "repo_"
	PrefixPeer     = "peer_"
	PrefixInvite   = "invite_"
	PrefixWorker   = "worker_"
)

// NewRunID and its fellows mint ids; the hub that owns the object calls them.
func NewRunID() RunID           { return RunID(id.New(PrefixRun)) }
func NewTaskID() TaskID         { return TaskID(id.New(PrefixTask)) }
func NewDispatchID() DispatchID { return DispatchID(id.New(PrefixDispatch)) }
func NewDeliveryID() DeliveryID { return DeliveryID(id.New(PrefixDelivery)) }
func NewMessageID() MessageID   { return MessageID(id.New(PrefixMessage)) }
func NewRequestID() RequestID   { return RequestID(id.New(PrefixRequest)) }
func NewTerminalID() TerminalID { return TerminalID(id.New(PrefixTerminal)) }
func NewWorktreeID() WorktreeID { return WorktreeID(id.New(PrefixWorktree)) }
func NewRepoID() RepoID         { return RepoID(id.New(PrefixRepo)) }
func NewPeerID() PeerID         { return PeerID(id.New(PrefixPeer)) }
func NewInviteID() InviteID     { return InviteID(id.New(PrefixInvite)) }

// ValidID reports whether s is an id of the prefix's kind.
func ValidID(prefix, s string) bool { return id.Valid(prefix, s) }

// Box names a mailbox: "run:<id>", "dispatch:<id>" or "worker:<id>".
type Box string

// Box returns the coordinator mailbox of the Run.
func (r RunID) Box() Box { return Box("run:" + r) }

// Box returns the mailbox of the Dispatch.
func (d DispatchID) Box() Box { return Box("dispatch:" + d) }

// Run returns the Run whose mailbox b is.
func (b Box) Run() (RunID, bool) {
	s, ok := strings.CutPrefix(string(b), "run:")
	return RunID(s), ok && id.Valid(PrefixRun, s)
}

// Dispatch returns the Dispatch whose mailbox b is.
func (b Box) Dispatch() (DispatchID, bool) {
	s, ok := strings.CutPrefix(string(b), "dispatch:")
	return DispatchID(s), ok && id.Valid(PrefixDispatch, s)
}
