package hub

// Finding is one thing that is wrong with a plan, or as a warning only odd.
type Finding struct {
	Code   string   `json:"code"`
	Tasks  []string `json:"tasks"`
	Detail string   `json:"detail"`
	Line   int      `json:"line,omitempty"` // of the file, from 1
}

// Codes of findings and warnings of a plan.
const (
	FindTokenInvalid      = "token_invalid"
	FindTaskDuplicate     = "task_duplicate"
	FindDependencyUnknown = "dependency_unknown"
	FindDependencyCycle   = "dependency_cycle"
	FindScopeInvalid      = "scope_invalid"
	FindScopeConflict     = "scope_conflict"
	FindWorkerNotFound    = "worker_not_found"
	FindAgentUnconfigured = "agent_unconfigured"
	FindPeerNotFound      = "peer_not_found"
	FindRepoNotFound      = "repo_not_found"
	FindVerifyMissing     = "verify_command_missing"
	FindTimeoutInvalid    = "timeout_invalid"
	// Of one task's own words, and of the file that they are in.
	FindPlacementInvalid = "placement_invalid"
	FindValueInvalid     = "value_invalid"
	FindKeyUnknown       = "key_unknown"
	FindKeyDuplicate     = "key_duplicate"
	FindFileInvalid      = "file_invalid"

	WarnScopeUndeclared = "scope_undeclared"
	WarnScopeOverlap    = "scope_overlap" // conflicts: allow
	WarnReadOverlap     = "read_overlap"
	WarnSelfGraded      = "self_graded"
	WarnUnchecked       = "unchecked"
	WarnNotImported     = "not_imported"
	WarnSourceRunning   = "source_may_be_running"
	WarnLevelRedone     = "level_redone" // a done.json that is not trusted
)

// Plan is what a planner made of the tasks of a wave.
type Plan struct {
	Valid      bool         `json:"valid"`
	Findings   []Finding    `json:"findings"`
	Levels     []PlanLevel  `json:"levels"`
	Serialized []Serialized `json:"serialized"`
	Warnings   []Finding    `json:"warnings"`
	// Places and Orders are per task, as declared; both nil unless Valid.
	Places []Place     `json:"-"`
	Orders []WaveOrder `json:"-"`
}

// PlanLevel is a level, or a sub-wave of one.
type PlanLevel struct {
	Wave  int      `json:"wave"` // from 1
	Sub   string   `json:"sub"`  // a, b, …; "" where the level is not divided
	Tasks []string `json:"tasks"`
}

// Serialized is one decision: second waits for first, since both write path, and
// has moved to a sub-wave such as 2b.
type Serialized struct {
	Path    string `json:"path"`
	First   string `json:"first"`
	Second  string `json:"second"`
	MovedTo string `json:"moved_to"`
}

// Place is where a task is in its wave; Sub is as in WaveTask.
type Place struct{ Level, Sub int }
