package store

import "github.com/wavehub/wavehub/internal/hub"

// TerminalFilter selects terminals; empty fields do not filter.
type TerminalFilter struct {
	Worktree hub.WorktreeID
	Live     bool // only those whose end is not on record
}

// TerminalReader reads the terminals of this hub.
type TerminalReader interface {
	// Terminal is terminal_not_found for one that there is not.
	Terminal(hub.TerminalID) (hub.Terminal, error)
	TerminalList(TerminalFilter, Page) (ts []hub.Terminal, next int64, err error)
	// OpenTerminals are those whose end is not on record.
	OpenTerminals() ([]hub.Terminal, error)
	// AttachedTo are the attempts at the terminal that still need care, the
	// oldest first.
	AttachedTo(hub.TerminalID) ([]hub.Attachment, error)
}

// Terminals keeps the terminals of this hub.
type Terminals interface {
	TerminalReader
	PutTerminal(hub.Terminal) error
	SaveTerminal(hub.Terminal) error
}
