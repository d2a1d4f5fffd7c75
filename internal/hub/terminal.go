package hub

import (
	"strings"
	"unicode/utf8"
)

// TerminalRole says what a terminal was made for.
type TerminalRole string

// The roles of terminals.
const (
	TerminalAgent  TerminalRole = "agent"
	TerminalSetup  TerminalRole = "setup"
	TerminalVerify TerminalRole = "verify"
	TerminalShell  TerminalRole = "shell" // whatever else a person runs
)

// Terminal is the owning hub's record of one supervised process: what it was
// made for, where it works, and what became of it.
type Terminal struct {
	ID       TerminalID
	Role     TerminalRole
	Worktree WorktreeID // "" for a plain folder
	Dir      string
	Agent    string // the launcher that runs in it, "" for none
	Name     string // for people
	Size     TerminalSize
	// Home and Dispatch name the attempt that was attached to it last, "" for
	// none; Home as in Attachment. Whether it owns the terminal still is
	// decided by its state.
	Home     PeerID
	Dispatch DispatchID
	// Process is nil until a process is proven to have been started.
	Process   *Incarnation
	CreatedAt Micros
	ClosedAt  Micros // a close was ordered: nothing is attached any more
	// EndedAt is when its end was committed: an exit, or the proof that
	// nothing was started, of which Process stays nil.
	EndedAt  Micros
	ExitCode *int
	Signal   string
	// CreatedBy is the name of the principal who asked for it, "" for one that
	// a start, a setup or a verification has.
	CreatedBy string
}

// OfPeer reports whether another hub has asked for the terminal.
func (t Terminal) OfPeer() bool { return SpaceOf(t.CreatedBy) != localSpace }

// Over reports whether the terminal's end is on record.
func (t Terminal) Over() bool { return t.EndedAt != 0 }

// In reports whether the terminal belongs to the place: a worktree, or a
// folder that is none.
func (t Terminal) In(w WorktreeID, dir string) bool {
	if w != "" || t.Worktree != "" {
		return t.Worktree == w
	}
	return t.Dir == dir
}

// Results of operations on terminals.
const (
	TerminalReady   = "ready"
	TerminalSent    = "sent"
	TerminalClosed  = "closed"
	TerminalFailed  = "failed"
	TerminalUnknown = "outcome_unknown"
)

// TerminalReceipt is the answer to a creation, complete at every stage: State
// is starting, ready, failed or outcome_unknown.
type TerminalReceipt struct {
	Terminal     Terminal
	State        string
	Stage        Stage
	FailedStage  Stage
	LastError    string
	NextCommands [][]string
	Mutation     Mutation
}

// Mut returns the mutation, for the receipt gate.
func (r *TerminalReceipt) Mut() *Mutation { return &r.Mutation }

// Subject is the terminal, which belongs to no Run.
func (r *TerminalReceipt) Subject() (RunID, string) { return "", string(r.Terminal.ID) }

// TerminalInput is the answer to sending: State is sent, failed (nothing was
// written) or outcome_unknown (it may have been, and is never sent again).
type TerminalInput struct {
	Terminal  TerminalID
	State     string
	Bytes     int
	LastError string
	Mutation  Mutation
}

// Mut returns the mutation, for the receipt gate.
func (r *TerminalInput) Mut() *Mutation { return &r.Mutation }

// Subject is the terminal.
func (r *TerminalInput) Subject() (RunID, string) { return "", string(r.Terminal) }

// TerminalEnd is the answer to a close: State is closed or outcome_unknown.
type TerminalEnd struct {
	Terminal      TerminalID
	State         string
	AlreadyClosed bool
	Action        ProcessAction
	ExitCode      *int
	LastError     string
	NextCommands  [][]string
	Mutation      Mutation
}

// Mut returns the mutation, for the receipt gate.
func (r *TerminalEnd) Mut() *Mutation { return &r.Mutation }

// Subject is the terminal.
func (r *TerminalEnd) Subject() (RunID, string) { return "", string(r.Terminal) }

// Activity is what the process of a terminal says it does.
type Activity string

// The activities; "" is none that is recognised.
const (
	ActivityIdle    Activity = "idle"
	ActivityWorking Activity = "working"
	ActivityBlocked Activity = "blocked" // a person has to answer something
)

// announced are the states of OSC 7501, and titled the beginnings of window
// titles by which agents tell their state.
var (
	announced = map[string]Activity{
		"idle": ActivityIdle, "done": ActivityIdle, "working": ActivityWorking, "blocked": ActivityBlocked,
	}
	titled = []struct {
		begin string
		state Activity
	}{
		{"✳ ", ActivityIdle}, {"◇ ", ActivityIdle}, {"✦ ", ActivityWorking}, {"✋ ", ActivityBlocked},
		{"[ ! ] Action Required", ActivityBlocked}, {"[ . ] Action Required", ActivityBlocked},
	}
)

// Activity is what the terminal's process announced last, by OSC 7501 or else by
// its title; "" when that tells nothing.
func (s TerminalState) Activity() Activity {
	for part := range strings.SplitSeq(s.Agent, ":") {
		if state, ok := strings.CutPrefix(part, "state="); ok {
			return announced[state]
		}
	}
	for _, t := range titled {
		if strings.HasPrefix(s.Title, t.begin) {
			return t.state
		}
	}
	if spins(s.Title) {
		return ActivityWorking
	}
	return ""
}

// spins reports whether a title begins with a Braille spinner.
func spins(title string) bool {
	r, _ := utf8.DecodeRuneInString(title)
	return r > 0x2800 && r <= 0x28ff
}
