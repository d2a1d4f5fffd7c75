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
