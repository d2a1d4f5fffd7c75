package hub

import (
	"encoding/json"
	"time"
)

// Placement modes of a start: where the worker works.
const (
	WorktreeCurrent     = "current"       // the caller's directory
	WorktreeNewChild    = "new-child"     // new, recorded as child of Parent
	WorktreeNewTopLevel = "new-top-level" // new, without a parent
)

// Setup choices.
const (
	SetupRun     = "run"
	SetupSkip    = "skip"
	SetupInherit = "inherit"
)

// StartSpec is what a caller asks of a worker start. Worktree is current,
// new-child, new-top-level, id:…, path:… or an exact name. It crosses hubs
// with Task and Prompt filled in.
type StartSpec struct {
	Worktree   string `json:"worktree"`
	CurrentDir string `json:"current_dir,omitempty"` // the caller's directory, for current and defaults
	Repo       string `json:"repo,omitempty"`
	Name       string `json:"name,omitempty"`
	Base       string `json:"base,omitempty"`
	Parent     string `json:"parent,omitempty"`
	Agent      string `json:"agent,omitempty"`
	Mode       string `json:"mode,omitempty"` // tui, headless; "" is the launcher's default
	// ResumeSession lets the agent go on with its own session of the Dispatch
	// that is retried.
	ResumeSession bool       `json:"resume_session,omitempty"`
	Terminal      TerminalID `json:"terminal,omitempty"`
	Setup         string     `json:"setup,omitempty"`
	DisplayName   string     `json:"display_name,omitempty"`
	Comment       string     `json:"comment,omitempty"`
	TimeoutMS     int64      `json:"timeout_ms,omitempty"`
	// MayCoordinate lets the worker create and coordinate one child Run.
	MayCoordinate bool `json:"may_coordinate,omitempty"`
	// LivenessSecs is after how much silence the owner calls the worker lost, 0
	// never: what cannot be verified, or an attached worker that says nothing.
	LivenessSecs int64 `json:"liveness_secs,omitempty"`
	// Worker is the name or id of an attached worker, instead of a placement;
	// Session the id of the session that all attempts share, "" for that of the
	// wave's task or else the Dispatch's own.
	Worker  string `json:"worker,omitempty"`
	Session string `json:"session,omitempty"`
	// Wave is the task of a wave that the start is for, nil for none.
	Wave *WaveRef `json:"wave,omitempty"`
}

// DefaultStartTimeout is how long a start may take when the caller is silent.
const DefaultStartTimeout = 60 * time.Second

// New reports whether the spec asks for a new worktree.
func (s StartSpec) New() bool {
	return s.Worktree == WorktreeNewChild || s.Worktree == WorktreeNewTopLevel
}

// Check refuses contradictions, naming both flags, before any effect. remote
// says that the worker goes to a peer.
func (s StartSpec) Check(remote bool) error {
	if err := s.checkSession(); err != nil {
		return err
	}
	if s.Worker != "" {
		return s.checkAttached()
	}
	switch {
	case s.Worktree == "":
		return Invalid("worktree", "say where: current, new-child, new-top-level, id:…, path:… or a name")
	case s.Terminal != "" && s.Agent != "":
		return conflict("--terminal", "--agent")
	case s.Terminal != "" && s.Mode != "":
		return conflict("--terminal", "--mode")
	case s.Terminal != "" && s.ResumeSession:
		return conflict("--terminal", "--resume-session")
	case s.Mode != "" && s.Mode != ModeTUI && s.Mode != ModeHeadless:
		return Invalid("mode", "must be tui or headless")
	case s.Terminal != "" && s.Setup != "":
		return conflict("--terminal", "--setup")
	case s.Terminal != "" && s.Name != "":
		return conflict("--terminal", "--name")
	case s.Terminal != "" && s.Base != "":
		return conflict("--terminal", "--base")
	case s.Terminal != "" && s.New():
		return conflict("--terminal", "--worktree "+s.Worktree)
	case s.Terminal == "" && s.Agent == "":
		return Invalid("agent", "neither --agent nor --terminal is given; name the agent to start")
	case s.Worktree == WorktreeCurrent && remote:
		return conflict("--worktree current", "--on")
	case s.Worktree == WorktreeNewChild && remote && s.Parent == "":
		return Invalid("parent", "--worktree new-child with --on needs --parent")
	case s.New() && s.Name == "":
		return Invalid("name", "--worktree %s needs --name", s.Worktree)
	case !s.New() && s.Setup != "":
		return conflict("--setup", "--worktree "+s.Worktree)
	case !s.New() && s.Name != "":
		return conflict("--name", "--worktree "+s.Worktree)
	case !s.New() && s.Base != "":
		return conflict("--base", "--worktree "+s.Worktree)
	case s.Worktree == WorktreeNewTopLevel && s.Parent != "":
		return conflict("--parent", "--worktree "+s.Worktree)
	case s.TimeoutMS < 0 || s.TimeoutMS > 600_000:
		return Invalid("timeout_ms", "must be 0 to 600000")
	case s.Setup != "" && s.Setup != SetupRun && s.Setup != SetupSkip && s.Setup != SetupInherit:
		return Invalid("setup", "must be run, skip or inherit")
	}
	return s.CheckLiveness()
}

// checkAttached refuses a placement of an attached worker: it works where it is.
func (s StartSpec) checkAttached() error {
	switch {
	case s.Worktree+s.Repo+s.Name+s.Base+s.Parent+s.Agent+s.Setup != "" || s.Terminal != "":
		return Invalid("to", "an attached worker takes no placement")
	case s.TimeoutMS < 0 || s.TimeoutMS > 600_000:
		return Invalid("timeout_ms", "must be 0 to 600000")
	}
	return s.CheckLiveness()
}

func (s StartSpec) checkSession() error {
	if err := s.Wave.Check(); err != nil {
		return err
	}
	return CheckText("session_id", s.Session, MaxSessionBytes)
}

// SessionOf is the id of the session of a start under the spec.
func (s StartSpec) SessionOf(d DispatchID) string {
	switch {
	case s.Session != "":
		return s.Session
	case s.Wave != nil:
		return s.Wave.Session()
	}
	return string(d)
}

func conflict(a, b string) error {
	return Errorf(CodeInvalidArgument, "%s and %s cannot be combined", a, b)
}

// Stage is how far a start has come; each is committed before its effect.
type Stage string

// The stages, in order.
const (
	StageAccepted         Stage = "accepted"
	StageAttachRequested  Stage = "attach_requested"
	StageWorktreeCreating Stage = "worktree_creating"
	StageWorktreeCreated  Stage = "worktree_created"
	StageSetupStarted     Stage = "setup_started"
	StageAuthority        Stage = "authority_attached"
	StageTerminalCreating Stage = "terminal_creating"
	StageTerminalCreated  Stage = "terminal_created"
	StageInputDelivering  Stage = "input_delivering"
	StageInputAccepted    Stage = "input_accepted"
)

// Results of a start.
const (
	StartReady          = "ready"
	StartFailed         = "failed"
	StartOutcomeUnknown = "outcome_unknown"
	StartStarting       = "starting"
)

// Resource is an effect or residual: something that exists outside the store.
type Resource struct {
	Kind     string   `json:"kind"`   // worktree, branch, terminal, setup, dispatch_input
	Action   string   `json:"action"` // created, reused, delivered, attempted
	Role     *string  `json:"role"`   // agent, setup
	ID       string   `json:"id"`
	Server   string   `json:"server"`
	State    string   `json:"state,omitempty"`
	Liveness Liveness `json:"liveness,omitempty"`
}

// Default is a value that the hub chose, and why.
type Default struct {
	Field  string `json:"field"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// SetupReport says what became of the setup hook.
type SetupReport struct {
	Requested     string `json:"requested"`
	Effective     string `json:"effective"` // run, skip, none
	Source        string `json:"source"`    // explicit_request, default, repository
	HookFound     bool   `json:"hook_found"`
	StartupPolicy string `json:"startup_policy"`
	State         string `json:"state"` // SetupNotApplicable and so on
	// Hash is of the file that the hook is in, Terminal where it runs or ran.
	// ExitCode is nil until it has ended, and when the code is not known.
	Hash      string     `json:"hash,omitempty"`
	Terminal  TerminalID `json:"terminal_id,omitempty"`
	ExitCode  *int       `json:"exit_code,omitempty"`
	LastError string     `json:"last_error,omitempty"`
	// Launched: its spawn is on record. Ended: nothing of it runs or will.
	Launched bool `json:"launched,omitempty"`
	Ended    bool `json:"ended,omitempty"`
}

// Mutation says under which request id an effect is recorded, and whether this
// answer is that record read again.
type Mutation struct {
	RequestID RequestID `json:"request_id"`
	Replayed  bool      `json:"replayed"`
}

// Receipt is the answer to a worker start, complete at every stage.
type Receipt struct {
	Run             RunID         `json:"run_id"`
	Task            TaskID        `json:"task_id"`
	Dispatch        DispatchID    `json:"dispatch_id"`
	State           string        `json:"state"`
	DispatchState   DispatchState `json:"dispatch_state"`
	Stage           Stage         `json:"stage"`
	Server          Server        `json:"server"`
	Setup           SetupReport   `json:"setup"`
	ReadinessSource string        `json:"readiness_source"`
	TimeoutMS       int64         `json:"timeout_ms"`
	Effects         []Resource    `json:"effects"`
	Residuals       []Resource    `json:"residual_resources"`
	Defaults        []Default     `json:"defaults"`
	FailedStage     Stage         `json:"failed_stage"`
	LastError       string        `json:"last_error"`
	NextCommands    [][]string    `json:"next_commands"`
	Warnings        []string      `json:"warnings"`
	Mutation        Mutation      `json:"mutation"`
	// Worker is the name of the attached worker that the Dispatch went to.
	Worker string `json:"worker,omitempty"`
	// Preamble is what the worker of a low-level dispatch has to be told.
	Preamble string `json:"preamble,omitempty"`
	// Cut says that the start failed since the worker's hub was restarted before it
	// launched the worker: nothing of the start itself was wrong.
	Cut bool `json:"cut,omitempty"`
	// DryRun says that nothing was begun.
	DryRun bool `json:"dry_run,omitempty"`
}

// Queued reports whether the start is committed to the mailbox of an attached
// worker that has not taken it up.
func (r Receipt) Queued() bool {
	return r.Worker != "" && r.State == StartStarting && r.Stage == StageInputDelivering
}

// Mut returns the mutation, for the receipt gate.
func (r *Receipt) Mut() *Mutation { return &r.Mutation }

// Subject is the Dispatch.
func (r *Receipt) Subject() (RunID, string) { return r.Run, string(r.Dispatch) }

// StopResult is the answer to stop and abandon.
type StopResult struct {
	Run            RunID         `json:"-"`
	Dispatch       DispatchID    `json:"dispatch_id"`
	State          DispatchState `json:"state"`
	AlreadySettled bool          `json:"already_settled"`
	Action         ProcessAction `json:"process_action"`
	Residuals      []Resource    `json:"residual_resources"`
	NextCommands   [][]string    `json:"next_commands"`
	LastError      string        `json:"last_error"`
	Warning        string        `json:"warning,omitempty"`
	Mutation       Mutation      `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *StopResult) Mut() *Mutation { return &r.Mutation }

// Subject is the Dispatch.
func (r *StopResult) Subject() (RunID, string) { return r.Run, string(r.Dispatch) }

// Observation is what the owner can say of a worker now, in separate facts.
type Observation struct {
	Link    string   `json:"link"`    // local, up, down
	LinkAt  Micros   `json:"link_at"` // since when it is so, 0 unknown
	Process Liveness `json:"process"` // live, exited, unverifiable
	// ProcessAt is when an owner last vouched for the process, by this hub's clock,
	// and LastProcess what it said: where the link is down, all that is known.
	ProcessAt    Micros          `json:"process_at"`
	LastProcess  Liveness        `json:"last_process"`
	Attachment   string          `json:"attachment"` // present, absent, unknown
	LastOutputAt Micros          `json:"last_output_at"`
	LastReportAt Micros          `json:"last_report_at"`
	WaitingFor   string          `json:"waiting_for"`
	Usage        json.RawMessage `json:"usage,omitempty"`      // by the worker's own count
	Session      string          `json:"session_id,omitempty"` // the agent's own, as its CLI said
	Lost         bool            `json:"lost"`
	ExitCode     *int            `json:"exit_code"`
	LastSeq      int64           `json:"last_seq"` // of the to_home queue; facts are applied only behind it
	StartState   string          `json:"start_state"`
	FailedStage  Stage           `json:"failed_stage"`
	LastError    string          `json:"last_error"`
	Stage        Stage           `json:"stage"`
	ObservedAt   Micros          `json:"observed_at"`
}

// OutputPage is one page of a worker's output: Transcript or Terminal is set, as
// Source says. Cursor goes on behind it, in the same source; nil where there
// will never be more.
type OutputPage struct {
	Dispatch       DispatchID      `json:"dispatch_id"`
	Source         string          `json:"source"` // transcript, terminal
	SourceIdentity string          `json:"source_identity"`
	Provider       *string         `json:"provider"`
	Server         Server          `json:"server"`
	OwnerEpoch     int64           `json:"owner_epoch"`
	Transcript     *TranscriptPage `json:"transcript,omitempty"`
	Terminal       *TerminalText   `json:"terminal,omitempty"`
	Archived       bool            `json:"archived,omitempty"` // kept of the end of a source that is gone
	Cursor         *string         `json:"cursor"`
	Status         OutputStatus    `json:"status"`
	FallbackReason *string         `json:"fallback_reason"`
	Warnings       []string        `json:"warnings"`
}

// TranscriptPage is a part of a transcript. Limited says that more follows, or
// that something was left out for its size.
type TranscriptPage struct {
	Messages []TranscriptMessage `json:"messages"`
	Limited  bool                `json:"limited"`
}

// TerminalText is a part of a terminal's output as text. Truncated says that
// something before it is not shown.
type TerminalText struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"`
}

// OutputStatus is the state of the worker and its terminal at reading.
type OutputStatus struct {
	Worker   DispatchState `json:"worker"`
	Terminal Liveness      `json:"terminal"`
}

// Repo is a repository or folder that workers may be placed in.
type Repo struct {
	ID        RepoID `json:"repo_id"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	Kind      string `json:"kind"` // git, folder
	Setup     string `json:"setup,omitempty"`
	CreatedAt Micros `json:"created_at"`
}

// Kinds of a Repo.
const (
	RepoGit    = "git"
	RepoFolder = "folder"
)

// Attachment is the owner's record of a Dispatch: who its home is, what was
// asked, what runs, and the state of its capability.
type Attachment struct {
	Dispatch DispatchID
	Task     TaskID
	Run      RunID
	// Home is the peer whose Dispatch it is, "" when this hub is the home.
	Home       PeerID
	Request    RequestID
	Spec       StartSpec
	Receipt    Receipt
	Capability CapabilityState
	Terminal   TerminalID
	Worktree   WorktreeID
	Dir        string // the worker's directory
	Process    *Incarnation
	Completion string     // report, result, exit
	Agent      AgentState // what its agent is and says of itself
	ExitDone   bool       // the exit has been committed
	Fence      *FenceItem // a stop that was asked for, until Fenced
	Fenced     bool       // the stop has been carried out and its evidence committed
	// Tombstone: a stop came before any start; a late start is refused.
	Tombstone    bool
	LastReportAt Micros
	// ReportSum is the hash of the report that the capability was good for.
	// Late and LateBytes count the other ones, taken after it or after the end.
	ReportSum string
	Late      int
	LateBytes int
	// Checks is what to find out before a success is let go.
	Checks Checks
	// Depth is that of the Run, Child the Run that the worker coordinates.
	Depth int
	Child RunID
	// Sponsor is the peer whose grants bound this Dispatch although this hub is
	// its home: it belongs to a child Run of that peer's worker.
	Sponsor PeerID
	// Worker is the attached worker that the Dispatch was given to, "" for one
	// that the hub started; StartMail is its session_start, TakenUp that it has
	// begun. Session is the id of the session.
	Worker    WorkerID
	Session   string
	StartMail MessageID
	TakenUp   bool
}

// Attached reports whether the worker is one that the hub did not start.
func (a Attachment) Attached() bool { return a.Worker != "" }

// CapabilityState is what the credential of a Dispatch still may do.
type CapabilityState string

// The states of a capability.
const (
	CapActive   CapabilityState = "active"
	CapReported CapabilityState = "reported"
	CapSettled  CapabilityState = "settled"
	CapFenced   CapabilityState = "fenced"
)

// Ended reports whether the worker takes no more mail.
func (c CapabilityState) Ended() bool { return c == CapSettled || c == CapFenced }

// PeerStart is the body of a start at a peer: exact bytes are kept and sent
// again under the same request id.
type PeerStart struct {
	Dispatch DispatchID `json:"dispatch_id"`
	Task     TaskID     `json:"task_id"`
	Run      RunID      `json:"run_id"`
	Title    string     `json:"title"`
	Prompt   string     `json:"prompt"`
	Spec     StartSpec  `json:"spec"`
	RetryOf  DispatchID `json:"retry_of,omitempty"`
	StoreID  string     `json:"store_id"` // the store it was addressed to
	Epoch    int64      `json:"store_epoch"`
	Depth    int        `json:"depth"`
	Contract string     `json:"contract"`
	Features []string   `json:"features,omitempty"` // that it needs, Needs at its home
	Checks
	Attempt int `json:"attempt,omitempty"`
	// Background is what the worker is told of what the Task depends on.
	Background *Background `json:"background,omitempty"`
}

// Probe is the answer to a probe: what the owner would do.
type Probe struct {
	Defaults []Default `json:"defaults"`
	Warnings []string  `json:"warnings"`
}

// PeerShow is an owner's read-only word on a Dispatch: its receipt as far as
// it came, and the present observation. Attached is false when it knows none.
type PeerShow struct {
	Attached    bool        `json:"attached"`
	Receipt     Receipt     `json:"receipt"`
	Observation Observation `json:"observation"`
}

// PeerStop asks the owner to end a Dispatch that its home has fenced.
type PeerStop struct {
	StoreID   string `json:"store_id"` // the store the start was addressed to
	Epoch     int64  `json:"store_epoch"`
	GraceMS   int64  `json:"grace_ms"`
	TimeoutMS int64  `json:"timeout_ms"`
}

// StopEvidence is what the owner could prove. NeverAttached means that no
// start had reached it and none will be accepted from now on.
type StopEvidence struct {
	Proved        bool          `json:"proved"`
	NeverAttached bool          `json:"never_attached"`
	Action        ProcessAction `json:"process_action"`
	ExitCode      *int          `json:"exit_code"`
	Residuals     []Resource    `json:"residual_resources"`
	LastError     string        `json:"last_error"`
	// Usage is what the worker used, as its owner knows it, nil for nothing.
	Usage json.RawMessage `json:"usage,omitempty"`
}
