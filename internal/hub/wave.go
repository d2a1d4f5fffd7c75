package hub

import (
	"encoding/json"
	"strings"
)

// WaveID names a wave: the caller's token, or one that the hub minted. It is
// unique on its home for ever.
type WaveID string

// WaveUID is minted with a wave, also when the caller chose its name: request ids
// of its operations are derived from it.
type WaveUID string

// PrefixWave begins the minted names of waves and all WaveUIDs.
const PrefixWave = "wave_"

// WaveStatus is where a wave is.
type WaveStatus string

// The statuses of a wave.
const (
	WavePending   WaveStatus = "pending"
	WaveRunning   WaveStatus = "running"
	WaveCompleted WaveStatus = "completed"
	WaveFailed    WaveStatus = "failed"
	WaveCancelled WaveStatus = "cancelled"
)

// WaveStatuses lists all statuses, in the order of a life; those of the tasks of a
// wave are the same.
var WaveStatuses = []WaveStatus{WavePending, WaveRunning, WaveCompleted, WaveFailed, WaveCancelled}

// Final reports whether only a retry leaves s.
func (s WaveStatus) Final() bool {
	return s == WaveCompleted || s == WaveFailed || s == WaveCancelled
}

// Limits of waves.
const (
	MaxWaveTasks      = 20_000
	MaxWaveToken      = 128
	MaxWaveGoalBytes  = 64 << 10
	MaxWaveMetadata   = 16 << 10
	MaxWaveReason     = 4 << 10
	DefaultWaveTime   = 3600   // seconds
	MaxWaveTime       = 604800 // seconds: 7 days
	DefaultLiveness   = 90     // seconds
	DefaultIdle       = 600    // seconds
	MaxWaveRetry      = 3
	DefaultIterations = 3
	MaxIterations     = 1000
)

// ValidToken reports whether s may name a wave or a task of one: 1 to 128 bytes of
// printable ASCII without space, . * > and /, without --, not beginning or ending
// with -.
func ValidToken(s string) bool {
	if s == "" || len(s) > MaxWaveToken || strings.Contains(s, "--") || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte(".*>/", c) >= 0 {
			return false
		}
	}
	return true
}

// WaveSession is the id of the session that all attempts at a task of a wave share.
func WaveSession(w WaveID, token string) string { return string(w) + "--" + token }

// WaveOrigin is the origin of the Tasks of a wave.
func WaveOrigin(w WaveID) string { return "wave:" + string(w) }

// NoWaveTask refuses a name that no task of a wave has.
func NoWaveTask(w WaveID, token string) *Error {
	e := Errorf(CodeTaskNotFound, "the wave %s has no task %q", w, token)
	e.Hint = "see the tasks of the wave with wave status"
	return e
}

// Wave is a set of Tasks of one Run that its caller handed to the hub, with a
// policy. Times of day are the home's; durations are awake time of the home and
// downtime, in milliseconds.
type Wave struct {
	ID       WaveID
	UID      WaveUID
	Run      RunID
	Goal     string
	Owner    string // who created it: a principal's name, or what the caller said
	Status   WaveStatus
	Ending   *WaveEnding // why it is being ended, nil if it is not
	Policy   WavePolicy
	Metadata json.RawMessage // a JSON object, or nil
	Total    int             // tasks
	Warnings []Finding       // of its plan
	// Iteration counts the passes: 1 from the first spawn on, 0 before.
	Iteration int
	// RaiseReason is why max_iterations was last raised; Exhausted that a pass was
	// asked for beyond it.
	RaiseReason   string
	Exhausted     bool
	CheckpointDir string // absolute, on this host; "" for none
	Filed         int64  // the Version that its folder shows, as far as it matters after the end
	ElapsedMS     int64  // of this iteration
	DowntimeMS    int64  // of this iteration: part of ElapsedMS
	Clock         WaveClock
	CreatedAt     Micros
	StartedAt     Micros // of this iteration, 0 before
	CompletedAt   Micros
	Version       int64 // grows with every change
}

// Unfiled reports whether the wave has ended and its checkpoint folder does not show
// its last change.
func (w Wave) Unfiled() bool {
	return w.Status.Final() && w.CheckpointDir != "" && w.Filed < w.Version
}

// WaveEnding is the decision to end a wave; the first one counts.
type WaveEnding struct {
	As     WaveStatus `json:"as"`     // failed or cancelled
	Reason string     `json:"reason"` // task_failed, timeout, budget_exceeded, cancelled
	At     Micros     `json:"at"`
}

// Reasons of endings and of the ends of tasks that programs may compare with.
const (
	EndTaskFailed    = "task_failed"
	EndTimeout       = "timeout"
	EndBudget        = "budget_exceeded"
	EndCancelled     = "cancelled"
	EndLiveness      = "liveness"
	EndBlocked       = "blocked"    // by a dependency or level that did not complete
	EndWave          = "wave_ended" // before it was started
	EndSetByOperator = "set_by_operator"
	EndByWorker      = ReasonCancelledByWorker
)

// WaveClock is the host's clocks when a wave's elapsed time was last stored.
type WaveClock struct {
	Boot   string `json:"boot,omitempty"` // identity of the boot, "" unknown
	BootMS int64  `json:"boot_ms"`        // since that boot
	At     Micros `json:"at"`             // wall clock, 0 before the first time
}

// WaveEntry is a task as the caller declared it.
type WaveEntry struct {
	Token        string     `json:"task_id"`
	Goal         string     `json:"goal"`
	Worker       string     `json:"worker,omitempty"` // name or name@peer
	Start        *WaveStart `json:"start,omitempty"`
	Dependencies []string   `json:"dependencies,omitempty"`
	// WriteScope is nil where nothing is known of it, and empty where the task
	// writes nothing.
	WriteScope  []string `json:"write_scope"`
	ReadScope   []string `json:"read_scope,omitempty"`
	Workspace   string   `json:"workspace,omitempty"`
	HandoffPath string   `json:"handoff_path,omitempty"`
	VerifyCmd   string   `json:"verify_cmd,omitempty"`
	TimeoutSecs int64    `json:"timeout_secs,omitempty"` // of one attempt; 0 none
}

// WaveStart places a task's worker, as worker start does.
type WaveStart struct {
	On       string `json:"on,omitempty"` // peer, "" this hub
	Agent    string `json:"agent,omitempty"`
	Worktree string `json:"worktree,omitempty"`
	Name     string `json:"name,omitempty"`
	Repo     string `json:"repo,omitempty"`
	Base     string `json:"base,omitempty"`
	Parent   string `json:"parent,omitempty"`
	Setup    string `json:"setup,omitempty"`
	Terminal string `json:"terminal,omitempty"`
}

// Target is the hub that the task runs on by the name of the peer, "" for this
// one, and the worker's name if it goes to an attached one.
func (e WaveEntry) Target() (on, worker string) {
	if e.Start != nil {
		return e.Start.On, ""
	}
	worker, on, _ = strings.Cut(e.Worker, "@")
	return on, worker
}

// WaveTask is a task of a wave. What may be computed from its Task and Dispatch is
// not kept.
type WaveTask struct {
	Wave  WaveID
	Index int // as declared, from 0
	Level int // from 1
	Sub   int // 1 for a, 2 for b; 0 where the level is not divided
	Task  TaskID
	Entry WaveEntry
	WaveProgress
}

// WaveProgress is what the engine wrote down of a task of a wave.
type WaveProgress struct {
	// Iteration is the pass that the rest is of; below the wave's the task has to
	// be opened again.
	Iteration   int
	EndedAs     WaveStatus // "" while it has not ended
	EndedReason string
	// Base is the latest Dispatch from before the iteration, Noted the latest one
	// whose beginning is in the log of events.
	Base        DispatchID
	Noted       DispatchID
	ReadyMS     int64      // the wave's elapsed time when Noted was seen ready, 0 before
	Idle        DispatchID // the one whose idleness was told
	StartedAt   Micros
	CompletedAt Micros
}

// WaveOrder is an edge that serializing put between two tasks, by their indexes.
type WaveOrder struct {
	First, Second int
	Path          string
}

// SubLabel is the letter of a sub-wave: a, b, … z, aa.
func SubLabel(sub int) string {
	label := ""
	for ; sub > 0; sub = (sub - 1) / 26 {
		label = string(rune('a'+(sub-1)%26)) + label
	}
	return label
}

// WaveRow is a task of a wave with the present state of its Task and its latest
// Dispatch.
type WaveRow struct {
	WaveTask
	State      TaskState
	Result     string // at most MaxWaveResult characters of it
	ResultData json.RawMessage
	Dispatch   *Dispatch // nil before the first
	Attempts   int       // Dispatches of the Task, ever
}

// DispatchUsage is what one Dispatch of a wave used, as its settlement said.
type DispatchUsage struct {
	Task     TaskID
	Dispatch DispatchID
	Usage    json.RawMessage
}

// MaxWaveResult is how much of a result is shown with a wave.
const MaxWaveResult = 2 << 10

// WaveEvent is one entry of the log of events. Wave, Token and Index are empty
// where it belongs to none.
type WaveEvent struct {
	Seq   int64
	At    Micros
	Run   RunID
	Type  string
	Wave  WaveID
	Token string
	Task  TaskID
	Index int // declared position, -1 for an event of the wave itself
	Total int
	Data  json.RawMessage // a JSON object
}

// Types of events.
const (
	EventWaveStarted    = "wave_started"
	EventTaskSerialized = "task_serialized"
	EventTaskDispatched = "task_dispatched"
	EventTaskCompleted  = "task_completed"
	EventTaskFailed     = "task_failed"
	EventTaskCancelled  = "task_cancelled"
	EventMilestone      = "milestone"
	EventVerifyPassed   = "verify_passed"
	EventVerifyFailed   = "verify_failed"
	EventWaveCompleted  = "wave_completed"
	EventWaveFailed     = "wave_failed"
	EventWaveCancelled  = "wave_cancelled"
	EventWarning        = "warning"
)
