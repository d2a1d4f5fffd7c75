package hub

// Usage is what tokens and money something took. A figure that its source does
// not give is nil: nothing is guessed. InputTokens holds the cached ones.
type Usage struct {
	InputTokens       *int64      `json:"input_tokens"`
	CachedInputTokens *int64      `json:"cached_input_tokens"`
	OutputTokens      *int64      `json:"output_tokens"`
	ReasoningTokens   *int64      `json:"reasoning_tokens"`
	CostUSD           *float64    `json:"cost_usd"`
	Source            UsageSource `json:"source"`
}

// UsageSource is where the figures of a Usage come from.
type UsageSource string

// The sources of a Usage.
const (
	UsageReported  UsageSource = "reported"  // by the agent itself
	UsageEstimated UsageSource = "estimated" // by the hub, from what it saw
	UsageUnknown   UsageSource = "unknown"
)

// AgentEventKind is what an agent's own CLI said through a hook, its notify
// program or a plugin, in wavehub's words.
type AgentEventKind string

// The kinds of events of an agent.
const (
	AgentSessionStarted AgentEventKind = "session_started"
	AgentTurnStarted    AgentEventKind = "turn_started"
	AgentTurnEnded      AgentEventKind = "turn_ended"
	AgentTurnFailed     AgentEventKind = "turn_failed"
	AgentPermission     AgentEventKind = "permission" // a person has to allow something
	AgentIdle           AgentEventKind = "idle"       // it waits for a prompt
	AgentToolStarted    AgentEventKind = "tool_started"
	AgentToolEnded      AgentEventKind = "tool_ended"
	AgentSessionEnded   AgentEventKind = "session_ended"
	AgentOther          AgentEventKind = "other" // nothing follows from it
)

// AgentEvent is one such event. Session is the agent's own id of its session,
// Transcript the absolute path of the file that it keeps of it; both may be
// empty. Detail is for people and is worker text.
type AgentEvent struct {
	Kind       AgentEventKind `json:"kind"`
	Session    string         `json:"session,omitempty"`
	Transcript string         `json:"transcript,omitempty"`
	Detail     string         `json:"detail,omitempty"`
	Class      ErrorClass     `json:"class,omitempty"` // of a turn that failed
	ResetAt    Micros         `json:"reset_at,omitempty"`
}

// ErrorClass says why an agent's provider refused to work.
type ErrorClass string

// The classes of errors; ErrorNone is an error of no class.
const (
	ErrorNone           ErrorClass = "none"
	ErrorRateLimited    ErrorClass = "rate_limited"
	ErrorQuotaExhausted ErrorClass = "quota_exhausted"
	ErrorAuthFailed     ErrorClass = "auth_failed"
	ErrorTransient      ErrorClass = "transient"
)

// AgentResult is the terminal record of an agent's structured output: what it
// says that its attempt came to.
type AgentResult struct {
	Outcome Outcome
	Text    string // the agent's last words, worker text
	Session string
	Usage   Usage
	Class   ErrorClass // of a failure
	ResetAt Micros     // when the provider works again, if it said so
	Denied  []string   // tools that it was not allowed to use
}

// The modes of an agent.
const (
	ModeTUI      = "tui"      // in a terminal, for people to look at
	ModeHeadless = "headless" // over pipes, one turn and out
)

// AgentState is what an owner knows of the agent of an attachment: how it was
// launched, and the latest word of its own CLI.
type AgentState struct {
	Mode    string       `json:"mode,omitempty"`
	Stream  string       `json:"stream,omitempty"` // kind of its structured output, "" for none
	Paste   bool         `json:"paste,omitempty"`  // it is launched without its prompt, which is pasted
	Session AgentSession `json:"session"`
	Waiting string       `json:"waiting,omitempty"` // what it waits for, as its hooks said
	Usage   *Usage       `json:"usage,omitempty"`   // as its output was decoded
	// Said is what the worker itself said last that it used, a JSON object, "" for
	// nothing: text, so that states compare.
	Said string `json:"usage_said,omitempty"`
}

// AgentSession names an agent's own record of its work. It is exact: reported by
// this very process, or chosen for it at launch.
type AgentSession struct {
	Provider   string `json:"provider,omitempty"` // whose format it has
	ID         string `json:"id,omitempty"`
	Transcript string `json:"transcript,omitempty"` // absolute path of its file
	Output     bool   `json:"output,omitempty"`     // without a file: what it writes to its output is its record
}

// What an agent waits for, as an Observation says it.
const (
	WaitsForPrompt       = "prompt"
	WaitsForPermission   = "permission"
	WaitsForWorker       = "worker"
	WaitsForVerification = "verification"
	WaitsForNone         = "none"
	WaitsForUnknown      = "unknown"
)

// WaitingFor is what an agent waits for after an event, given what it waited
// for before.
func WaitingFor(before string, k AgentEventKind) string {
	switch k {
	case AgentTurnStarted, AgentToolStarted, AgentToolEnded:
		return WaitsForNone
	case AgentTurnEnded, AgentTurnFailed, AgentIdle:
		return WaitsForPrompt
	case AgentPermission:
		return WaitsForPermission
	case AgentSessionStarted, AgentSessionEnded, AgentOther:
	}
	return before
}

// AgentPool is how a provider treats the agents of one name on a hub: after it
// has refused to work, starts are refused until Until.
type AgentPool struct {
	Agent string
	Class ErrorClass
	Until Micros
	Times int // refusals in a row
}

// Pauses of a pool whose provider names no time.
const (
	firstPause Micros = 60 * 1_000_000
	lastPause  Micros = 30 * firstPause
)

// Refuse returns the pool after one more refusal at an instant; resetAt is when
// the provider works again, 0 if it did not say.
func (p AgentPool) Refuse(class ErrorClass, now, resetAt Micros) AgentPool {
	pause := lastPause
	if p.Times < 5 {
		pause = min(firstPause<<p.Times, lastPause)
	}
	p.Class, p.Until, p.Times = class, now+pause, p.Times+1
	if resetAt > now {
		p.Until = resetAt
	}
	return p
}

// Refusal reports whether c closes a pool.
func (c ErrorClass) Refusal() bool { return c == ErrorRateLimited || c == ErrorQuotaExhausted }

// ArchivedOutput is the end of a worker's output, kept when its process had
// ended: Messages or Text.
type ArchivedOutput struct {
	Source   string              `json:"source"`
	Identity string              `json:"identity"`
	Provider string              `json:"provider,omitempty"`
	Messages []TranscriptMessage `json:"messages,omitempty"`
	Text     TerminalText        `json:"text"`
}

// AgentFacts say how an agent is configured on a hub, and whether it can be used.
type AgentFacts struct {
	Name        string
	BuiltIn     bool
	Modes       []string
	DefaultMode string
	Program     string // absolute, "" where it is missing
	Missing     string // why it cannot be used
	Completion  string // in its default mode
}
