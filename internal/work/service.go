package work

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Terminals starts, observes and ends supervised processes.
type Terminals interface {
	Launch(context.Context, hub.LaunchSpec) (hub.Incarnation, error)
	// Recover finds out whether a launch that was cut off took place; false is
	// final: it will not take place any more.
	Recover(context.Context, hub.TerminalID) (hub.Incarnation, bool, error)
	Observe(context.Context, hub.Incarnation) (hub.ProcessState, error)
	// Wait blocks until the process is proven gone, or can no longer be
	// verified.
	Wait(context.Context, hub.Incarnation) (hub.ProcessState, error)
	Stop(ctx context.Context, in hub.Incarnation, grace time.Duration) (hub.StopProof, error)
	Tail(ctx context.Context, id hub.TerminalID, maxBytes int) (hub.OutputTail, error)
}

// Folder is what a path turned out to be.
type Folder struct {
	Path string // the repository's top folder, or the folder itself
	Kind string // hub.RepoGit or hub.RepoFolder
	Head string // commit, "" for none
}

// NewWorktree asks for a git worktree on a new branch.
type NewWorktree struct {
	Repo hub.Repo
	ID   hub.WorktreeID
	Name string
	Base string
}

// Git inspects folders and makes worktrees.
type Git interface {
	Inspect(ctx context.Context, path string) (Folder, error)
	// Canonical is an existing folder's path without symbolic links.
	Canonical(path string) (string, error)
	// Where are the path and the branch that Create will use.
	Where(NewWorktree) (path, branch string)
	// Check refuses names and refs outside their grammar.
	Check(name, base string) error
	// Free refuses a name whose branch or folder is in use.
	Free(context.Context, NewWorktree) error
	Create(context.Context, NewWorktree) (hub.Worktree, error)
	// HasSetup reports whether the repository has a setup hook at its base.
	HasSetup(ctx context.Context, repo hub.Repo, base string) (bool, error)
}

// Launch asks an agent's launcher how to start it.
type Launch struct {
	Agent    string
	Terminal hub.TerminalID
	Dispatch hub.DispatchID
	Task     hub.TaskID
	Dir      string // working directory
	Private  string // 0700 folder of the terminal, for prompt files
	Prompt   string
	Env      map[string]string
}

// Agents knows the configured launchers.
type Agents interface {
	// Completion is what ends an attempt without a report; an unknown or
	// missing agent is agent_unconfigured.
	Completion(agent string) (string, error)
	// Grace is between the polite and the forced end of the agent.
	Grace(agent string) time.Duration
	// Plan writes the prompt files and returns what to start.
	Plan(Launch) (hub.LaunchSpec, error)
	// Preamble tells an attached worker how to report.
	Preamble(hub.TaskID, hub.DispatchID) string
}

// Remote asks a peer as the owner of a Dispatch. An error that is
// ErrAnswerLost says that the request may have been accepted.
type Remote interface {
	Probe(ctx context.Context, peer hub.PeerID, body []byte) (hub.Probe, error)
	Start(ctx context.Context, peer hub.PeerID, key hub.RequestID, body []byte) (hub.Receipt, error)
	Show(ctx context.Context, peer hub.PeerID, d hub.DispatchID) (hub.PeerShow, error)
	Stop(ctx context.Context, peer hub.PeerID, key hub.RequestID, d hub.DispatchID, in hub.PeerStop) (hub.StopEvidence, error)
	Output(ctx context.Context, peer hub.PeerID, d hub.DispatchID, q OutputQuery) (hub.OutputPage, error)
}

// Authority makes the capability of a Dispatch: derived, so that it can be
// written again after a restart, and hashed for the store.
type Authority interface {
	Capability(home hub.PeerID, d hub.DispatchID) (token, sum string)
	// WriteFile replaces the worker's capability file and returns its path.
	WriteFile(a hub.Attachment, token string) (path string, err error)
	// Private is the terminal's 0700 folder; it is made if it is missing.
	Private(hub.TerminalID) (string, error)
}

// Config is what a Service needs.
type Config struct {
	Store     store.Store
	Gate      *receipt.Gate
	Terminals Terminals
	Git       Git
	Agents    Agents
	Remote    Remote
	Authority Authority
	Bus       Bus
	// AnswerLost reports whether an error of Remote leaves the outcome open.
	AnswerLost func(error) bool
	// LinkUp reports whether the relay link to a peer is up.
	LinkUp func(hub.PeerID) bool
	// Listening reports whether somebody waits on a mailbox.
	Listening func(hub.Box) bool
	// Spawn runs a function in a goroutine with an owner; false when stopping.
	Spawn func(func(context.Context)) bool
	// Name, Bin, Workers and PerAgent are this hub's name, its program's
	// absolute path, and its limits of live workers, in all and by the name of
	// their agent (0: none).
	Name     string
	Bin      string
	Workers  int
	PerAgent map[string]int
	// Epoch is the store's identity.
	StoreID string
	Epoch   int64
	Log     *slog.Logger
}

// Bus wakes the loop that carries fences out.
type Bus interface {
	Subscribe(topic, key string) (woken <-chan struct{}, cancel func())
}

// Service is the effects' use-cases. Its methods are safe for concurrent use.
type Service struct {
	Config
	hands   hands
	beats   beats
	workers presences
}

// New makes a Service; it starts nothing.
func New(c Config) *Service { return &Service{Config: c} }

// attempt names an attachment.
type attempt struct {
	home hub.PeerID
	id   hub.DispatchID
}

// hands lets one goroutine at a time act on an attachment's process. The zero
// value is ready.
type hands struct {
	mu   sync.Mutex
	held map[attempt]chan struct{} // guarded by mu; closed when released
}

// take waits until the attachment is free, or until ctx ends.
func (h *hands) take(ctx context.Context, a attempt) (release func(), err error) {
	for {
		h.mu.Lock()
		busy, ok := h.held[a]
		if !ok {
			if h.held == nil {
				h.held = map[attempt]chan struct{}{}
			}
			mine := make(chan struct{})
			h.held[a] = mine
			h.mu.Unlock()
			return func() { h.drop(a, mine) }, nil
		}
		h.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// busy reports whether somebody acts on the attachment now.
func (h *hands) busy(a attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.held[a]
	return ok
}

func (h *hands) drop(a attempt, mine chan struct{}) {
	h.mu.Lock()
	delete(h.held, a)
	h.mu.Unlock()
	close(mine)
}
