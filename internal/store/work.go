package store

import "github.com/wavehub/wavehub/internal/hub"

// RunReader reads Runs, bindings and audit rows.
type RunReader interface {
	Run(hub.RunID) (hub.Run, error)
	RunList(Page) (runs []hub.Run, next int64, err error)
	// Binding is what the context was last bound to, fenced or not.
	Binding(context string) (hub.Binding, bool, error)
	// Holder is the context that holds the Run's present generation.
	Holder(hub.RunID) (hub.Binding, bool, error)
	// Audits are the newest first.
	Audits(run hub.RunID, limit int) ([]hub.Audit, error)
}

// Runs keeps Runs, bindings and audit rows.
type Runs interface {
	RunReader
	PutRun(hub.Run) error
	SaveRun(hub.Run) error
	// SetBinding replaces what the context is bound to.
	SetBinding(hub.Binding) error
	AddAudit(hub.Audit) error
}

// TaskReader reads Tasks.
type TaskReader interface {
	Task(hub.TaskID) (hub.Task, error)
	// TaskList is oldest first when state is "", so that a Run reads as it
	// was written; Page.Before then counts upwards: rows after it.
	TaskList(run hub.RunID, state hub.TaskState, p Page) (tasks []hub.Task, next int64, err error)
	// TaskState is the state of a Task, without reading its text.
	TaskState(hub.TaskID) (hub.TaskState, error)
	// Dependents are the Tasks that wait for the given one.
	Dependents(hub.TaskID) ([]hub.TaskID, error)
}

// Tasks keeps Tasks.
type Tasks interface {
	TaskReader
	PutTask(hub.Task) error
	// SaveTask keeps what transitions move: state, latest Dispatch, result,
	// version and the time of the change. A Task's text stays as it was put.
	SaveTask(hub.Task) error
	// SaveTaskText keeps title and spec too: an update by its author.
	SaveTaskText(hub.Task) error
	// RewriteTask replaces all that a Task was put with, its dependencies too.
	RewriteTask(hub.Task) error
}

// DispatchFilter selects Dispatches; empty fields do not filter.
type DispatchFilter struct {
	Run  hub.RunID
	Task hub.TaskID
	Peer hub.PeerID
	Live bool
}

// DispatchReader reads the home's records of attempts.
type DispatchReader interface {
	Dispatch(hub.DispatchID) (hub.Dispatch, error)
	DispatchList(DispatchFilter, Page) (ds []hub.Dispatch, next int64, err error)
	// StartReceipt is the start receipt as last recorded at home.
	StartReceipt(hub.DispatchID) (hub.Receipt, error)
	// PeerRequest is the exact body a remote start was sent with.
	PeerRequest(hub.DispatchID) ([]byte, error)
}

// Dispatches keeps the home's records of attempts.
type Dispatches interface {
	DispatchReader
	PutDispatch(d hub.Dispatch, r hub.Receipt, peerRequest []byte) error
	// SwapDispatch replaces old by new unless it has changed since old was
	// read; it raises the version.
	SwapDispatch(old, new hub.Dispatch) (bool, error)
	SaveStartReceipt(hub.DispatchID, hub.Receipt) error
}

// AttachmentReader reads the owner's records of attempts. Home is "" for
// Dispatches of this hub's own Runs.
type AttachmentReader interface {
	Attachment(home hub.PeerID, d hub.DispatchID) (hub.Attachment, bool, error)
	// OpenAttachments are those whose process has not been seen to its end or
	// whose fence has not been carried out.
	OpenAttachments() ([]hub.Attachment, error)
	// AttachmentsOf are a peer's, ended or not, newest first; tombstones too.
	AttachmentsOf(home hub.PeerID, p Page) (as []hub.Attachment, next int64, err error)
}

// Attachments keeps the owner's records of attempts. Every change signals
// TopicAttachment.
type Attachments interface {
	AttachmentReader
	PutAttachment(hub.Attachment) error
	SaveAttachment(hub.Attachment) error
}

// HoldReader reads what owners hold back and compare with.
type HoldReader interface {
	// Hold is what is held of a Dispatch, or what is left of it.
	Hold(home hub.PeerID, d hub.DispatchID) (hub.Hold, bool, error)
	// Holds are all, the oldest first.
	Holds() ([]hub.Hold, error)
	Baseline(home hub.PeerID, t hub.TaskID, dir string) (hub.Baseline, bool, error)
	// OpenBeside are the workers in or below a folder that need care, the
	// oldest first, at most limit and 1 MiB. More than that are the zero Beside.
	OpenBeside(root string, limit int) ([]hub.Beside, error)
	// LaterBeside are those in or below root that came after the Task's first
	// attempt in dir, the newest first, bounded likewise.
	LaterBeside(home hub.PeerID, t hub.TaskID, dir, root string, limit int) ([]hub.Beside, error)
}

// Holds keeps what owners hold back and compare with. Every change of a hold
// signals TopicAttachment.
type Holds interface {
	HoldReader
	PutHold(hub.Hold) error
	SaveHold(hub.Hold) error
	DropHold(hub.PeerID, hub.DispatchID) error
	PutBaseline(home hub.PeerID, t hub.TaskID, dir string, b hub.Baseline) error
}

// OutputReader reads what was kept of the ends of outputs.
type OutputReader interface {
	ArchivedOutput(home hub.PeerID, d hub.DispatchID) (hub.ArchivedOutput, bool, error)
}

// Outputs keeps the ends of outputs.
type Outputs interface {
	OutputReader
	// PutArchivedOutput replaces what was kept before.
	PutArchivedOutput(home hub.PeerID, d hub.DispatchID, out hub.ArchivedOutput) error
}

// PoolReader reads how providers treat agents.
type PoolReader interface {
	// AgentPool is the zero pool of that agent if nothing is on record.
	AgentPool(agent string) (hub.AgentPool, error)
	// AgentPools are those on record, by name.
	AgentPools() ([]hub.AgentPool, error)
}

// Pools keeps how providers treat agents.
type Pools interface {
	PoolReader
	SaveAgentPool(hub.AgentPool) error
	// DropAgentPool is no error if nothing is on record.
	DropAgentPool(agent string) error
}

// RepoReader reads repositories and worktrees.
type RepoReader interface {
	Repo(hub.RepoID) (hub.Repo, error)
	RepoByName(name string) (hub.Repo, bool, error)
	RepoByPath(path string) (hub.Repo, bool, error)
	RepoList(Page) (repos []hub.Repo, next int64, err error)
	Worktree(hub.WorktreeID) (hub.Worktree, error)
	WorktreesNamed(name string) ([]hub.Worktree, error)
	WorktreeByPath(path string) (hub.Worktree, bool, error)
	WorktreeList(repo hub.RepoID, p Page) (wts []hub.Worktree, next int64, err error)
	// WorktreesUnder are the children of a worktree; "" has none.
	WorktreesUnder(parent hub.WorktreeID) ([]hub.Worktree, error)
	// OpenWorktrees are those that somebody still has to look after.
	OpenWorktrees() ([]hub.Worktree, error)
}

// Repos keeps repositories and worktrees. Names of repositories are unique by
// case fold, names of worktrees unique by case fold within their repository.
type Repos interface {
	RepoReader
	PutRepo(hub.Repo) error
	SaveRepo(hub.Repo) error
	PutWorktree(hub.Worktree) error
	SaveWorktree(hub.Worktree) error
	DeleteWorktree(hub.WorktreeID) error
}
