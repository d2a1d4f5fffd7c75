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
	// Attend is Wait that tells of signs of life: once when the process is proven,
	// then each time that it wrote something after again was called. at is when it
	// wrote last, 0 unknown.
	Attend(ctx context.Context, in hub.Incarnation, sign func(at hub.Micros, again func())) (hub.ProcessState, error)
	Stop(ctx context.Context, in hub.Incarnation, grace time.Duration) (hub.StopProof, error)
	Tail(ctx context.Context, id hub.TerminalID, maxBytes int) (hub.OutputTail, error)
	// Remove forgets a terminal whose process is proven to have ended, or never
	// to start.
	Remove(hub.TerminalID) error
	Screens
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
	// Hooks lets the repository's own hooks run at the checkout.
	Hooks bool
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
	// Snapshot records what the folder's working tree is now.
	Snapshot(ctx context.Context, dir string) (hub.Baseline, error)
	// Changes are the paths that were changed since; replaced says that the
	// folder is not in that repository any more.
	Changes(ctx context.Context, dir string, base hub.Baseline) (paths []string, replaced bool, err error)
	// Handoff is what lies at a path within the folder.
	Handoff(dir, path string) (hub.Handoff, error)
	// Salvage finds out what became of a Create that was cut off: true and the
	// worktree if it is complete, else nothing of it is left. An error says that
	// nothing is known.
	Salvage(context.Context, NewWorktree) (hub.Worktree, bool, error)
	// SetupHook is how a worktree of the base would be set up, and the commit that
	// the base names. A hook that cannot be used is found, and an error.
	SetupHook(ctx context.Context, repo hub.Repo, base string) (hook hub.SetupHook, commit string, err error)
	// Examine finds out where a worktree stands and what its removal would lose.
	Examine(context.Context, hub.Repo, hub.Worktree) (hub.TreeState, error)
	// Save keeps what a removal would lose under refs; left is what it cannot.
	Save(context.Context, hub.Repo, hub.Worktree) (saved []hub.SavedRef, left []hub.Loss, err error)
	// Remove deletes a worktree, and its branch if that is at tip still.
	Remove(ctx context.Context, repo hub.Repo, w hub.Worktree, tip string) (branchKept bool, err error)
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
	Mode     string // of the agent, "" for its default
	Resume   string // the agent's own id of a session to go on with, "" for a new one
	Session  string // the id of a new session, where the agent takes one
	// Checks is what is looked at before a success counts; MayCoordinate says that
	// the worker may have workers of its own.
	Checks        hub.Checks
	MayCoordinate bool
	// Wave is the task of a wave that it works at, nil for none; Background is what
	// the Task depends on, nil for nothing.
	Wave       *hub.WaveRef
	Background *hub.Background
}

// Planned is what to start, and what to know of it: the sign that it is ready,
// what it writes, its session as far as that is known before, and what to paste
// once it is ready.
type Planned struct {
	Spec    hub.LaunchSpec
	Ready   string // launch, hook, title, quiescence
	Stream  string // kind of its structured output, "" for none
	Session hub.AgentSession
	Paste   []byte
	// Warnings are for the start receipt.
	Warnings []string
}

// Script asks how to run a command line of the user's.
type Script struct {
	Terminal hub.TerminalID
	Dir      string // working directory
	Private  string // 0700 folder of the terminal
	Text     string
}

// Agents knows the configured launchers.
type Agents interface {
	// Completion is what ends an attempt without a report, in that mode ("" for
	// the default); an unknown or missing agent is agent_unconfigured.
	Completion(agent, mode string) (string, error)
	// Grace is between the polite and the forced end of the agent.
	Grace(agent string) time.Duration
	// Plan writes the prompt files and returns what to start.
	Plan(Launch) (Planned, error)
	// AttachedPreamble tells an attached worker how to report.
	AttachedPreamble(hub.TaskID, hub.DispatchID, hub.Checks, *hub.WaveRef) string
	// Script writes the file of a command line and returns how the platform's
	// shell runs it: with a worker's environment, but without its capability.
	Script(Script) (hub.LaunchSpec, error)
	// Setup writes the script of a setup and returns what to start.
	Setup(SetupLaunch) (hub.LaunchSpec, error)
	// Event is what a hook of the agent's own CLI said; provider is whose format
	// its transcript has.
	Event(agent, name string, raw []byte) (e hub.AgentEvent, provider string, err error)
	// TitleState is what a terminal's title says of the agent in it.
	TitleState(agent, title, osc string) (hub.AgentEventKind, bool)
	// HasTranscript reports whether transcripts of the agent can be read.
	HasTranscript(agent string) bool
	// Stream reads structured output of a kind as it comes.
	Stream(kind string) (Stream, error)
	// List are the configured agents; Version runs the version command of one.
	List() []hub.AgentFacts
	Version(ctx context.Context, agent string) (string, error)
	// KnownVersion runs it only if the agent's program is another than last time.
	KnownVersion(ctx context.Context, agent string) (string, error)
}

// Stream decodes an agent's structured output.
type Stream interface {
	Write([]byte) (int, error)
	// End tells that the process is gone, behind all of its output: an agent
	// without a terminal record has its result then.
	End(exitCode int)
	Session() string
	// Result is the terminal record, once it has come.
	Result() (hub.AgentResult, bool)
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
	// File is the path that the terminal's capability file will have.
	File(hub.TerminalID) (path string, err error)
	// Open marks a terminal as one without a Dispatch, in which the CLI is its
	// user's, until WriteFile gives it one for good. It returns the path that
	// the capability file will have.
	Open(hub.TerminalID) (path string, err error)
}

// Config is what a Service needs.
type Config struct {
	Store     store.Store
	Gate      *receipt.Gate
	Terminals Terminals
	Git       Git
	Agents    Agents
	Console   Console
	// Transcripts reads agents' records; CursorKey signs places in output.
	Transcripts Transcripts
	CursorKey   []byte
	Remote      Remote
	Authority   Authority
	Bus         Bus
	// AnswerLost reports whether an error of Remote leaves the outcome open.
	AnswerLost func(error) bool
	// LinkUp reports whether the relay link to a peer is up.
	LinkUp func(hub.PeerID) bool
	// Listening reports whether somebody waits on a mailbox.
	Listening func(hub.Box) bool
	// Unspool accepts what the worker of a Dispatch wrote down while no hub
	// answered; it costs next to nothing where there is nothing.
	Unspool func(context.Context, hub.DispatchID) error
	// Spawn runs a function in a goroutine with an owner; false when stopping.
	Spawn func(func(context.Context)) bool
	// Name, Bin, Workers and PerAgent are this hub's name, its program's
	// absolute path, and its limits of live workers, in all and by the name of
	// their agent (0: none).
	Name     string
	Bin      string
	Workers  int
	PerAgent map[string]int
	// VerifyTimeout bounds a verification whose Task does not.
	VerifyTimeout time.Duration
	// FoldCase says that the file system's names differ in more than case.
	FoldCase bool
	// Epoch is the store's identity.
	StoreID string
	Epoch   int64
	Log     *slog.Logger
}

// Bus tells what has been committed, and what is only known in memory.
type Bus interface {
	// Publish leaves a hint for whoever waits; it never blocks.
	Publish(topic, key string)
	Subscribe(topic, key string) (woken <-chan struct{}, cancel func())
	// Gather keeps the keys that are published until they are taken.
	Gather(topic string) (woken <-chan struct{}, take func() []string, cancel func())
}

// Service is the effects' use-cases. Its methods are safe for concurrent use.
type Service struct {
	Config
	hands    hands[attempt]
	typing   hands[hub.TerminalID] // at most one sequence of input at a time
	attended attended[hub.TerminalID]
	pursued  attended[attempt] // starts whose outcome somebody finds out
	beats    beats
	meters   meters
	workers  presences
	board    *board                // of the Dispatches that this hub owns
	hearsay  hearsay               // of those that peers own for it
	looks    hands[attempt]        // who looks into a held report
	looked   chan struct{}         // a hint that one of them has ended
	trees    hands[hub.WorktreeID] // of worktrees that are being made or removed
}

// New makes a Service; it starts nothing.
func New(c Config) *Service {
	s := &Service{Config: c, looked: make(chan struct{}, 1)}
	s.board = newBoard(s.beats.of, s.workers.of, s.saidAnew)
	return s
}

// attempt names an attachment.
type attempt struct {
	home hub.PeerID
	id   hub.DispatchID
}

// hands lets one goroutine at a time act on an attachment's process, or on a
// terminal. The zero value is ready.
type hands[K comparable] struct {
	mu   sync.Mutex
	held map[K]chan struct{} // guarded by mu; closed when released
}

// take waits until nobody else has a, or until ctx ends.
func (h *hands[K]) take(ctx context.Context, a K) (release func(), err error) {
	for {
		h.mu.Lock()
		busy, ok := h.held[a]
		if !ok {
			if h.held == nil {
				h.held = map[K]chan struct{}{}
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

// busy reports whether somebody has a now.
func (h *hands[K]) busy(a K) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.held[a]
	return ok
}

func (h *hands[K]) drop(a K, mine chan struct{}) {
	h.mu.Lock()
	delete(h.held, a)
	h.mu.Unlock()
	close(mine)
}
