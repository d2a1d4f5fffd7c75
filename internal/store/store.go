package store

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
)

// Class orders waiting transactions: lower classes run first, with one slot of
// eight kept for the last so that it never starves.
type Class uint8

// The classes.
const (
	Import Class = iota // relay imports and acks
	Settle              // settlement and control
	New                 // new work
)

// Writer runs write transactions. Update queues fn, runs it in a transaction
// that may be shared with others, each under its own savepoint, and returns
// after the commit is durable. ctx bounds the queueing only. fn may run twice:
// it assigns captured variables, never appends to them, has no outside effects
// and never calls Update. An error of fn rolls back its own changes alone.
//
// A commit whose outcome is unknown is answered with outcome_unknown and stops
// the process; storage_full means that nothing was committed.
type Writer interface {
	Update(ctx context.Context, class Class, fn func(Tx) error) error
}

// Reader runs read transactions on a snapshot; fn has to be short (under 1 s).
type Reader interface {
	View(ctx context.Context, fn func(Rx) error) error
}

// Store is both.
type Store interface {
	Writer
	Reader
}

// Tx is one write transaction. Now is one instant for the whole transaction.
// Signal is kept with the transaction, dropped with it, and published after
// the commit and before Update returns.
type Tx interface {
	Receipts
	Credentials
	Runs
	Tasks
	Dispatches
	Mail
	Questions
	Attachments
	Holds
	Workers
	Sessions
	Relay
	Peers
	Repos
	Outputs
	Pools
	Terminals
	Waves
	Events
	Identity
	Now() hub.Micros
	Signal(hub.Signal)
}

// Rx is one read snapshot. Now is one instant for all of it.
type Rx interface {
	ReceiptReader
	CredentialReader
	RunReader
	TaskReader
	DispatchReader
	MailReader
	QuestionReader
	AttachmentReader
	HoldReader
	WorkerReader
	SessionReader
	RelayReader
	PeerReader
	RepoReader
	OutputReader
	PoolReader
	TerminalReader
	WaveReader
	EventReader
	Identity
	Now() hub.Micros
	Counts() (Counts, error)
	// IDsFrom are the first two ids of a kind (hub.PrefixRun and so on) that
	// begin with the text; IDsEnding those of a Run, Task, Dispatch, or of one of
	// the newest messages and Deliveries, that end in its six characters.
	IDsFrom(kind, text string) ([]string, error)
	IDsEnding(text string) ([]string, error)
}

// Page asks for at most Limit rows older than the row numbered Before; 0 means
// from the newest. Lists return the Before of the next page, 0 at the end.
type Page struct {
	Before int64
	Limit  int
}

// Counts are the figures of the status page.
type Counts struct {
	Runs           int64 `json:"runs"`
	Tasks          int64 `json:"tasks"`
	DispatchesLive int64 `json:"dispatches_live"`
	Messages       int64 `json:"messages"`
}

// Identity is what a store is: a random id made with it, and an epoch that
// only a restore raises.
type Identity interface {
	StoreIdentity() (id string, epoch int64, err error)
}
