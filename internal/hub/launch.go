package hub

// LaunchSpec is everything a supervisor needs to start one process tree. The
// argv is resolved (an absolute program), the environment complete.
type LaunchSpec struct {
	Terminal TerminalID `json:"terminal_id"`
	Argv     []string   `json:"argv"`
	Env      []string   `json:"env"`
	Dir      string     `json:"dir"`
	// Stdin is written to the process and closed; nil means closed at once. A
	// process in a pseudo terminal has none.
	Stdin []byte `json:"stdin"`
	// PTY is the size of the pseudo terminal that the process gets; nil gives it
	// pipes.
	PTY *TerminalSize `json:"pty,omitempty"`
	// OutputCap bounds the output kept on disk, in bytes; 0 takes the default.
	OutputCap int64 `json:"output_cap"`
}

// Incarnation proves one process of a terminal: a same-looking process is
// never taken for it. StartedAt is the operating system's own start time of
// the pid, in a unit that only package proc compares.
type Incarnation struct {
	Terminal  TerminalID `json:"terminal_id"`
	Nonce     string     `json:"nonce"`
	PID       int        `json:"pid"`
	StartedAt int64      `json:"started_at"`
	BootID    string     `json:"boot_id"`
}

// Liveness is what can be said of a process.
type Liveness string

// The three values: only proof makes live or exited.
const (
	Live         Liveness = "live"
	Exited       Liveness = "exited"
	Unverifiable Liveness = "unverifiable"
)

// ProcessState is one observation of an incarnation.
type ProcessState struct {
	Liveness Liveness `json:"process"`
	// ExitCode is nil while live and when an exit is proven but its code is not.
	ExitCode     *int   `json:"exit_code"`
	Signal       string `json:"signal,omitempty"` // the signal that ended it, if one did
	ExitedAt     Micros `json:"exited_at"`
	LastOutputAt Micros `json:"last_output_at"`
}

// ProcessAction is what a stop did to the process.
type ProcessAction string

// The process actions of a stop.
const (
	ActionNone    ProcessAction = "none"    // it had ended, or there was none
	ActionEnded   ProcessAction = "ended"   // ended by this stop, proven
	ActionUnknown ProcessAction = "unknown" // nothing could be proven
)

// StopProof is the result of stopping an incarnation: proven gone only when
// State.Liveness is Exited.
type StopProof struct {
	Action ProcessAction `json:"process_action"`
	State  ProcessState  `json:"state"`
}

// OutputTail is the end of a terminal's output.
type OutputTail struct {
	Data      []byte
	Total     int64 // bytes ever written
	Truncated bool  // Data does not begin at the first byte ever written
}

// TerminalSize is the size of a terminal in character cells.
type TerminalSize struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
}

// OutputRange is a stretch of a terminal's output. Offsets count all bytes ever
// written from 0.
type OutputRange struct {
	Data []byte
	// From is the offset of Data's first byte: the one asked for, or First where
	// that was dropped already, or Total where it has not been written yet.
	From  int64
	First int64 // the oldest byte that is kept
	Total int64 // bytes ever written
}

// TerminalState is what a supervisor knows of its terminal at one moment. What
// only a pseudo terminal has is zero for pipes.
type TerminalState struct {
	Size TerminalSize
	// Title is the last window title that the process set, one plain line of at
	// most 256 bytes.
	Title string
	// Agent is the last state that the process announced by OSC 7501, such as
	// "state=idle:app=codex": as written, one plain line of at most 256 bytes.
	Agent          string
	BracketedPaste bool // the process asked for pastes in brackets
	// Total is the number of bytes of output that were ever written, Input that
	// of bytes that were written to the process by Input.
	Total, Input int64
	LastOutputAt Micros // 0: nothing was written yet
}

// ScreenQuery says how much of a terminal is rendered.
type ScreenQuery struct {
	Scrollback int // at most this many lines above the screen
	MaxBytes   int // of the output, from its end; 0 takes 8 MiB, which is the most
}

// Screen is a terminal as a person would see it: plain text, without escape
// sequences.
type Screen struct {
	Size TerminalSize
	// Lines are the rows of the screen from the top, without trailing blanks;
	// rows below the last that shows something are left out.
	Lines      []string
	Scrollback []string // the lines above the screen, oldest first
	Title      string
	// CursorRow and CursorCol count from 0.
	CursorRow, CursorCol int
	// Truncated: the rendering began later than at the first byte of output.
	Truncated bool
}
