package hub

// LaunchSpec is everything a supervisor needs to start one process tree. The
// argv is resolved (an absolute program), the environment complete.
type LaunchSpec struct {
	Terminal TerminalID `json:"terminal_id"`
	Argv     []string   `json:"argv"`
	Env      []string   `json:"env"`
	Dir      string     `json:"dir"`
	// Stdin is written to the process and closed; nil means closed at once.
	Stdin []byte `json:"stdin"`
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
