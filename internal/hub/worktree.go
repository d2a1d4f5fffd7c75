package hub

// Worktree is a git worktree that this hub made, or is about to make or remove.
type Worktree struct {
	ID          WorktreeID    `json:"worktree_id"`
	Repo        RepoID        `json:"repo_id"`
	Name        string        `json:"name"`
	Path        string        `json:"path"`
	Branch      string        `json:"branch"`
	Base        string        `json:"base_commit"`
	Parent      WorktreeID    `json:"parent_worktree_id"`
	State       WorktreeState `json:"state"`
	DisplayName string        `json:"display_name"`
	Comment     string        `json:"comment"`
	Setup       WorktreeSetup `json:"setup"`
	Request     RequestID     `json:"-"` // of the creation without a worker that made it
	CreatedBy   string        `json:"-"` // the name of the principal of that request, "" for none
	CreatedAt   Micros        `json:"created_at"`
}

// WorktreeState says whether a worktree can be used.
type WorktreeState string

// The states of a worktree. What is creating or removing when its hub dies is
// looked at by the next process; a deletion goes on when it is asked for again.
const (
	WorktreeCreating WorktreeState = "creating"
	WorktreeReady    WorktreeState = "ready"
	WorktreeRemoving WorktreeState = "removing" // nothing is deleted yet
	WorktreeDeleting WorktreeState = "deleting" // nothing of it is needed any more
)

// Open reports whether somebody still has to look after w: it is being made or
// about to be removed, or its setup may run.
func (w Worktree) Open() bool {
	return w.State == WorktreeCreating || w.State == WorktreeRemoving || w.Setup.Open()
}

// WorktreeSetup is the setup of a new worktree: the process, and for whom it
// runs. Home and Dispatch are those of the start that made the worktree, "" for
// one that was made without a worker.
type WorktreeSetup struct {
	Report   SetupReport  `json:"report"`
	Home     PeerID       `json:"home"`
	Dispatch DispatchID   `json:"dispatch_id"`
	Process  *Incarnation `json:"process"`
}

// Open reports whether the setup is to run, or may, and its end is not known yet.
func (s WorktreeSetup) Open() bool { return s.Report.Effective == SetupRun && !s.Report.Over() }

// SetupHook is how a repository has its new worktrees set up, as one commit says.
type SetupHook struct {
	Found  bool
	Run    string // text for the platform's shell
	Policy string // PolicyImmediate or PolicyWait
	Hash   string // SHA-256 of the file it is in, in hexadecimal
}

// Policies of a setup: whether the agent is started beside it or after it.
const (
	PolicyImmediate = "start-immediately"
	PolicyWait      = "wait-for-setup"
)

// States of a setup.
const (
	SetupNotApplicable = "not_applicable"
	SetupNotConfigured = "not_configured"
	SetupSkipped       = "skipped"
	SetupRunning       = "running"
	SetupSucceeded     = "succeeded"
	SetupFailed        = "failed"
	SetupUnknown       = "unknown"
)

// Over reports whether the setup has ended, or never will begin.
func (s SetupReport) Over() bool { return s.Ended }

// Gates reports whether the agent is started only after the setup's success.
func (s SetupReport) Gates() bool { return s.Effective == SetupRun && s.StartupPolicy == PolicyWait }

// Later is what is known of a setup of which two reports exist: an end is final.
func (s SetupReport) Later(o SetupReport) SetupReport {
	if s.Over() {
		return s
	}
	return o
}

// NoteSetup brings the receipt up to what is known of the setup: its report and,
// once it has been launched, its terminal in the lists of resources. The lists
// are copied.
func (r *Receipt) NoteSetup(s SetupReport) {
	r.Setup = s
	now := s.Resources(r.Server.Name)
	r.Effects = noteSetup(r.Effects, now)
	if r.State != StartReady {
		r.Residuals = noteSetup(r.Residuals, now)
	}
}

// noteSetup puts now in the place of what a list has of the setup.
func noteSetup(rs, now []Resource) []Resource {
	out, put := make([]Resource, 0, len(rs)+len(now)), false
	for _, e := range rs {
		if !e.OfSetup() {
			out = append(out, e)
		} else if !put {
			out, put = append(out, now...), true
		}
	}
	if !put {
		out = append(out, now...)
	}
	return out
}

// Resources are the setup and its terminal as far as they have been launched.
func (s SetupReport) Resources(server string) []Resource {
	role := RoleSetup
	terminal := Resource{Kind: "terminal", Action: "created", Role: &role, ID: string(s.Terminal), Server: server, Liveness: Live}
	setup := Resource{Kind: "setup", Action: "run", Role: &role, ID: string(s.Terminal), Server: server, State: s.State}
	switch {
	case s.Terminal == "" || s.Ended && !s.Launched:
		return nil
	case !s.Launched:
		terminal.Action, terminal.Liveness = "attempted", Unverifiable
		return []Resource{terminal}
	case s.Ended:
		terminal.Liveness = Exited
	}
	return []Resource{terminal, setup}
}

// OfSetup reports whether the resource is the setup or its terminal.
func (r Resource) OfSetup() bool { return r.Role != nil && *r.Role == RoleSetup }

// Roles of a terminal.
const (
	RoleAgent = "agent"
	RoleSetup = "setup"
)

// TreeState is what is found of a worktree: where it stands, and what would be
// lost with it.
type TreeState struct {
	Present bool   `json:"present"` // its folder is there
	Head    string `json:"head"`    // commit, "" for none
	Branch  string `json:"branch"`  // checked out, "" for none
	Tip     string `json:"tip"`     // commit of the branch that was made for it, "" for none
	Losses  []Loss `json:"losses"`
}

// Loss is something that the removal of a worktree would lose. Name is a path
// within it, a commit's id, or for LossUnknown why it could not be examined.
type Loss struct {
	Kind LossKind `json:"kind"`
	Name string   `json:"name"`
}

// LossKind is a kind of Loss.
type LossKind string

// The kinds of losses.
const (
	LossModified   LossKind = "modified"
	LossDeleted    LossKind = "deleted"
	LossStaged     LossKind = "staged"
	LossUntracked  LossKind = "untracked"
	LossRepository LossKind = "repository" // inside of the worktree
	LossCommit     LossKind = "commit"     // that no other branch, tag or remote branch has
	LossUnknown    LossKind = "unknown"
)

// SavedRef is a ref that keeps something of a removed worktree.
type SavedRef struct {
	Ref    string `json:"ref"`
	Commit string `json:"commit"`
	Of     string `json:"of"` // head, branch, files or index
}

// WorktreeReceipt is the answer to the creation of a worktree.
type WorktreeReceipt struct {
	Worktree    Worktree   `json:"worktree"`
	State       string     `json:"state"` // StartReady, StartFailed, StartOutcomeUnknown, StartStarting
	Stage       Stage      `json:"stage"`
	TimeoutMS   int64      `json:"timeout_ms"`
	Effects     []Resource `json:"effects"`
	Residuals   []Resource `json:"residual_resources"`
	Defaults    []Default  `json:"defaults"`
	FailedStage Stage      `json:"failed_stage"`
	LastError   string     `json:"last_error"`
	Mutation    Mutation   `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *WorktreeReceipt) Mut() *Mutation { return &r.Mutation }

// Subject is the worktree, which belongs to no Run.
func (r *WorktreeReceipt) Subject() (RunID, string) { return "", string(r.Worktree.ID) }

// Absent completes the receipt of a creation of which nothing is there.
func (r *WorktreeReceipt) Absent(cause error) {
	r.State, r.FailedStage, r.LastError = StartFailed, r.Stage, "the creation was cut off, and nothing of it is left"
	if cause != nil {
		r.LastError = cause.Error()
	}
	r.Effects, r.Residuals = []Resource{}, []Resource{}
}

// Open completes the receipt of a creation that is not decided.
func (r *WorktreeReceipt) Open(cause error) {
	r.State, r.FailedStage, r.LastError = StartOutcomeUnknown, r.Stage, "what became of the creation is not known yet"
	if cause != nil {
		r.LastError = cause.Error()
	}
}

// Present completes the receipt with the worktree that is there. A setup that is
// to be waited for decides the outcome.
func (r *WorktreeReceipt) Present(w Worktree, made []Resource) {
	r.Worktree, r.State, r.Stage = w, StartReady, StageWorktreeCreated
	r.FailedStage, r.LastError = "", ""
	r.Effects, r.Residuals = made, []Resource{}
	setup := w.Setup.Report
	if setup.Terminal != "" {
		r.Stage = StageSetupStarted
	}
	if !setup.Gates() || setup.State == SetupSucceeded {
		return
	}
	r.State, r.FailedStage, r.Residuals = StartFailed, StageSetupStarted, made
	r.LastError = "the setup: " + setup.LastError
	if !setup.Over() {
		r.State, r.LastError = StartOutcomeUnknown, "the setup has not ended"
	}
}

// WorktreeRemoval is the answer to the removal of a worktree.
type WorktreeRemoval struct {
	Worktree   WorktreeID `json:"worktree_id"`
	Name       string     `json:"name"`
	Path       string     `json:"path"`
	Branch     string     `json:"branch"`
	BranchKept bool       `json:"branch_kept"` // it had moved, or is checked out elsewhere
	Saved      []SavedRef `json:"saved"`
	NotSaved   []Loss     `json:"not_saved"`
	Mutation   Mutation   `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *WorktreeRemoval) Mut() *Mutation { return &r.Mutation }

// Subject is the worktree, which belongs to no Run.
func (r *WorktreeRemoval) Subject() (RunID, string) { return "", string(r.Worktree) }
