package hub

import (
	"slices"
	"strings"
)

// Checks is what a Task asks its owner to find out before a report of success
// leaves it. It crosses hubs with the start.
type Checks struct {
	VerifyCmd string `json:"verify_cmd,omitempty"`
	Verify    string `json:"verify,omitempty"` // record, required
	// VerifyTimeoutSecs bounds one run of VerifyCmd; 0 takes the owner's default.
	VerifyTimeoutSecs int64    `json:"verify_timeout_secs,omitempty"`
	WriteScope        []string `json:"write_scope,omitempty"` // as CleanScope gave it
	Scope             string   `json:"scope,omitempty"`       // advisory, enforce
	HandoffPath       string   `json:"handoff_path,omitempty"`
}

// Checks is what t asks of the owners of its Dispatches.
func (t Task) Checks() Checks {
	return Checks{
		VerifyCmd: t.VerifyCmd, Verify: t.Verify, VerifyTimeoutSecs: t.VerifyTimeoutSecs,
		WriteScope: t.WriteScope, Scope: t.Scope, HandoffPath: t.HandoffPath,
	}
}

// Hold reports whether a success is held back until it has been looked into.
// Who leaves notes gets that looked at too.
func (c Checks) Hold() bool {
	return c.VerifyCmd != "" || len(c.WriteScope) > 0 || c.HandoffPath != ""
}

// Limits of Checks.
const (
	MaxVerifyCmdBytes    = 64 << 10
	MaxVerifyTimeoutSecs = 24 * 60 * 60
	MaxHandoffPathBytes  = 4096
)

// Clean returns c with its paths cleaned, or refuses it with the field named.
func (c Checks) Clean() (Checks, error) {
	switch {
	case c.Verify != "" && c.Verify != VerifyRecord && c.Verify != VerifyRequired:
		return c, Invalid("verify", "must be record or required")
	case c.Scope != "" && c.Scope != ScopeAdvisory && c.Scope != ScopeEnforce:
		return c, Invalid("scope", "must be advisory or enforce")
	case c.Verify == VerifyRequired && c.VerifyCmd == "":
		return c, Invalid("verify", "required needs a verify_cmd")
	case c.Scope == ScopeEnforce && len(c.WriteScope) == 0:
		return c, Invalid("scope", "enforce needs a write_scope")
	case c.VerifyTimeoutSecs < 0 || c.VerifyTimeoutSecs > MaxVerifyTimeoutSecs:
		return c, Invalid("verify_timeout_secs", "must be 0 to %d", MaxVerifyTimeoutSecs)
	}
	if err := CheckText("verify_cmd", c.VerifyCmd, MaxVerifyCmdBytes); err != nil {
		return c, err
	}
	if c.VerifyCmd != "" && strings.TrimSpace(c.VerifyCmd) == "" {
		return c, Invalid("verify_cmd", "says nothing")
	}
	return c.cleanPaths()
}

func (c Checks) cleanPaths() (_ Checks, err error) {
	if c.WriteScope, err = CleanScope(c.WriteScope); err != nil || c.HandoffPath == "" {
		return c, err
	}
	if err := CheckText("handoff_path", c.HandoffPath, MaxHandoffPathBytes); err != nil {
		return c, err
	}
	if c.HandoffPath, err = CleanPath("handoff_path", c.HandoffPath); err == nil && c.HandoffPath == "." {
		err = Invalid("handoff_path", "names a folder, not a file")
	}
	return c, err
}

// Results of a verification.
const (
	VerifyPassed  = "passed"
	VerifyFailed  = "failed"
	VerifyMissing = "missing" // no run of it came to an end
)

// Who verified.
const (
	VerifiedByHub    = "hub"
	VerifiedByWorker = "worker"
)

// Results of a look at what was changed.
const (
	ScopeClean       = "clean"
	ScopeViolated    = "violated"
	ScopeUnavailable = "unavailable" // nothing can be said; never a failure
)

// Reasons of a verification that is not passed.
const (
	ReasonTimeout      = "timeout"      // its limit came first
	ReasonLost         = "lost"         // its process ended and nobody knows how
	ReasonUnverifiable = "unverifiable" // its process can be neither seen nor ended
)

// Reasons of a Dispatch that failed by what was found.
const (
	ReasonVerificationFailed = "verification_failed"
	ReasonScopeViolation     = "scope_violation"
)

// Findings is what the owner found out about a success. The zero value says
// that nothing was asked for.
type Findings struct {
	VerifyResult string        `json:"verify_result,omitempty"` // passed, failed, missing
	VerifiedBy   string        `json:"verified_by,omitempty"`   // hub, worker
	Verification *Verification `json:"verify,omitempty"`
	ScopeCheck   string        `json:"scope_check,omitempty"` // clean, violated, unavailable
	// ScopeSource says whose word the changes are: hub (git) or worker.
	ScopeSource string `json:"scope_source,omitempty"`
	ScopeReason string `json:"scope_reason,omitempty"` // why it is unavailable
	// Violations are the first changes outside of the scope, ViolationCount
	// their number in all.
	Violations     []string `json:"scope_violations,omitempty"`
	ViolationCount int      `json:"scope_violation_count,omitempty"`
	// ScopeShared says that the scopes of other Tasks in the worktree counted too.
	ScopeShared bool     `json:"scope_shared,omitempty"`
	Handoff     *Handoff `json:"handoff,omitempty"`
}

// Verification is the record of one verification.
type Verification struct {
	Command    string `json:"command"` // its beginning
	ExitCode   *int   `json:"exit_code"`
	Reason     string `json:"reason,omitempty"` // why it is not passed, if not by its exit code
	OutputTail string `json:"output_tail"`
	DurationMS int64  `json:"duration_ms"`
	Attempts   int    `json:"attempts"` // runs that were begun; more than one after a loss
}

// Handoff is what lies at the Task's handoff_path at settlement. SHA256 is in
// hexadecimal, "" for a file that was too large to read.
type Handoff struct {
	Present bool   `json:"present"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
}

// Bounds of what Findings carry.
const (
	MaxViolations     = 200
	MaxViolationBytes = 16 << 10
	MaxOutputTail     = 16 << 10
	MaxCommandShown   = 2 << 10
	MaxReasonBytes    = 512
	// FindingsRoom is what a held report leaves free in its message.
	FindingsRoom = 4 << 10
)

// Outside sets the changes that scope does not cover.
func (f *Findings) Outside(s Scope, changes []string) {
	f.Violations, f.ViolationCount = nil, 0
	size := 0
	for _, path := range changes {
		if s.Covers(path) {
			continue
		}
		f.ViolationCount++
		name := PlainText([]byte(path))
		if size += len(name); len(f.Violations) < MaxViolations && size <= MaxViolationBytes {
			f.Violations = append(f.Violations, name)
		}
	}
}

// Smaller returns f with its largest part left out, and false when nothing is
// left to leave out. A message that would be over its limit is told shorter.
func (f Findings) Smaller() (Findings, bool) {
	switch v := f.Verification; {
	case v != nil && v.OutputTail != "":
		short := *v
		short.OutputTail = ""
		f.Verification = &short
	case len(f.Violations) > 1:
		f.Violations = slices.Clone(f.Violations[:1])
	case v != nil && v.Command != "":
		short := *v
		short.Command = ""
		f.Verification = &short
	case len(f.Violations) > 0:
		f.Violations = nil
	default:
		return f, false
	}
	return f, true
}

// Check refuses findings that no hub makes.
func (f Findings) Check() error {
	switch {
	case !slices.Contains([]string{"", VerifyPassed, VerifyFailed, VerifyMissing}, f.VerifyResult):
		return Invalid("verify_result", "%q is none", f.VerifyResult)
	case !slices.Contains([]string{"", VerifiedByHub, VerifiedByWorker}, f.VerifiedBy):
		return Invalid("verified_by", "%q is nobody", f.VerifiedBy)
	case !slices.Contains([]string{"", ScopeClean, ScopeViolated, ScopeUnavailable}, f.ScopeCheck):
		return Invalid("scope_check", "%q is none", f.ScopeCheck)
	case len(f.Violations) > MaxViolations || f.ViolationCount < len(f.Violations):
		return Invalid("scope_violations", "%d of %d are named", len(f.Violations), f.ViolationCount)
	}
	return f.checkTexts()
}

// checkTexts bounds what a home keeps with the Dispatch.
func (f Findings) checkTexts() error {
	if err := CheckText("scope_violations", strings.Join(f.Violations, ""), MaxViolationBytes); err != nil {
		return err
	}
	if err := CheckText("scope_reason", f.ScopeReason, MaxReasonBytes); err != nil || f.Verification == nil {
		return err
	}
	v := f.Verification
	if err := CheckText("verify.reason", v.Reason, MaxReasonBytes); err != nil {
		return err
	}
	if err := CheckText("verify.command", v.Command, MaxCommandShown); err != nil {
		return err
	}
	return CheckText("verify.output_tail", v.OutputTail, MaxOutputTail)
}

// Conclude is a report as the home of its Task takes it: a success that does
// not pass what the Task requires is a failure. Only what the owner itself has
// verified counts as passed, unless the worker grades itself, as one does that no
// hub started.
func (t Task) Conclude(r Report, selfGraded bool) Report {
	passed := r.VerifyResult == VerifyPassed && (selfGraded || r.VerifiedBy == VerifiedByHub)
	switch {
	case r.Outcome != OutcomeSucceeded:
	case t.Verify == VerifyRequired && !passed:
		r.Outcome, r.Reason = OutcomeFailed, ReasonVerificationFailed
		if r.VerifyResult == "" {
			r.VerifyResult = VerifyMissing
		}
	case t.Scope == ScopeEnforce && r.ScopeCheck == ScopeViolated:
		r.Outcome, r.Reason = OutcomeFailed, ReasonScopeViolation
	}
	return r
}

// Baseline is what a worktree was when the first attempt of a Task got it.
type Baseline struct {
	Root   string `json:"root"`    // top folder of the working tree, "" for none
	GitDir string `json:"git_dir"` // common git directory
	Head   string `json:"head"`    // commit, "" for none yet
	// Exclude is the sum of the repository's own list of ignored files, "" for none.
	Exclude string `json:"exclude,omitempty"`
	// Dirty are the paths that differed from Head, in the order of git.
	Dirty []DirtyPath `json:"dirty,omitempty"`
	// Beside are the other Tasks that had a worker there.
	Beside []Beside `json:"beside,omitempty"`
	// Reason says why nothing could be recorded, "" if it was.
	Reason string `json:"reason,omitempty"`
}

// Kinds of what lies at a DirtyPath.
const (
	PathGone   = "gone"
	PathFile   = "file"
	PathLink   = "link"
	PathFolder = "folder" // of another repository
)

// DirtyPath is one path that differs from a commit, and what it was like. Two
// of a path are the same if kind and size are, and the time or the hash.
type DirtyPath struct {
	Path string `json:"path"` // slashes, relative to the root
	Kind string `json:"kind"`
	Size int64  `json:"size"`
	At   int64  `json:"at"`            // modification, in nanoseconds
	Sum  string `json:"sum,omitempty"` // SHA-256 of the content, "" if it was not read
}

// Same reports whether nothing was done to the path between two looks.
func (p DirtyPath) Same(q DirtyPath) bool {
	if p.Path != q.Path || p.Kind != q.Kind || p.Size != q.Size {
		return false
	}
	return p.Kind == PathGone || p.At == q.At || p.Sum != "" && p.Sum == q.Sum
}

// Beside is a Task with a worker in a worktree: where in it, and what it may
// change there; nothing given is everything.
type Beside struct {
	Home  PeerID   `json:"home,omitempty"`
	Task  TaskID   `json:"task"`
	Dir   string   `json:"dir"`
	Scope []string `json:"scope,omitempty"`
}

// Hold is a report of success that its owner has taken and looks into before it
// lets it go. One without Reports was fenced meanwhile: what is left to do is to
// end its verification.
type Hold struct {
	Home     PeerID
	Dispatch DispatchID
	// Reports are the held one and those that came behind it.
	Reports []MessageID
	// Exit is the end of the worker's process, if it came meanwhile.
	Exit *ExitItem
	// Scoped says that the changes have been looked at, before the verification
	// makes any itself.
	Scoped bool
	// Terminal and Process are the verification's present run; Began is when it
	// was begun, Attempts counts the runs.
	Terminal TerminalID
	Process  *Incarnation
	Began    Micros
	Attempts int
	Findings Findings
}

// Fenced reports whether the held report has gone stale.
func (h Hold) Fenced() bool { return len(h.Reports) == 0 }
