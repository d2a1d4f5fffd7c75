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

// The constructors mint ids; the hub that owns the object calls them.

// NewRunID mints the id of a Run.
func NewRunID() RunID { return RunID(id.New(PrefixRun)) }

// NewTaskID mints the id of a Task.
func NewTaskID() TaskID { return TaskID(id.New(PrefixTask)) }

// NewDispatchID mints the id of a Dispatch.
func NewDispatchID() DispatchID { return DispatchID(id.New(PrefixDispatch)) }

// NewDeliveryID mints the id of a Delivery.
func NewDeliveryID() DeliveryID { return DeliveryID(id.New(PrefixDelivery)) }

// NewMessageID mints the id of a message.
func NewMessageID() MessageID { return MessageID(id.New(PrefixMessage)) }

// NewRequestID mints the id of a request.
func NewRequestID() RequestID { return RequestID(id.New(PrefixRequest)) }

// NewTerminalID mints the id of a terminal.
func NewTerminalID() TerminalID { return TerminalID(id.New(PrefixTerminal)) }

// NewWorktreeID mints the id of a worktree.
func NewWorktreeID() WorktreeID { return WorktreeID(id.New(PrefixWorktree)) }

// NewRepoID mints the id of a repository.
func NewRepoID() RepoID { return RepoID(id.New(PrefixRepo)) }

// NewPeerID mints the id of a peer.
func NewPeerID() PeerID { return PeerID(id.New(PrefixPeer)) }

// NewInviteID mints the id of an invite.
func NewInviteID() InviteID { return InviteID(id.New(PrefixInvite)) }

// NewWorkerID mints the id of an attached worker's identity.
func NewWorkerID() WorkerID { return WorkerID(id.New(PrefixWorker)) }

// NewWaveID mints the name of a wave whose caller gave it none.
func NewWaveID() WaveID { return WaveID(id.New(PrefixWave)) }

// NewWaveUID mints the uid of a wave.
func NewWaveUID() WaveUID { return WaveUID(id.New(PrefixWave)) }

// ValidID reports whether s is an id of the prefix's kind.
func ValidID(prefix, s string) bool { return id.Valid(prefix, s) }

// ParseID returns the 16 bytes that an id of the prefix's kind stands for; false
// for what is none.
func ParseID(prefix, s string) ([16]byte, bool) { return id.Parse(prefix, s) }

// FormatID is the reverse of ParseID.
func FormatID(prefix string, b [16]byte) string { return id.Format(prefix, b) }

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

// MintedAt is when an id was minted, by the clock of whoever minted it; 0 for
// what is no id.
func MintedAt(text string) Micros {
	ms, ok := id.Millis(text)
	if !ok {
		return 0
	}
	return Micros(ms * 1000)
}
