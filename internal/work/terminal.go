package work

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Screens reads and writes pseudo terminals.
type Screens interface {
	// Input writes as a keyboard would, to exactly this incarnation. See
	// untouched for what its errors prove.
	Input(ctx context.Context, in hub.Incarnation, data []byte) error
	// Output reads a stretch of output, also after the end.
	Output(ctx context.Context, id hub.TerminalID, from int64, maxBytes int) (hub.OutputRange, error)
	// AwaitOutput returns when there is more output than after, or at the end
	// of the process.
	AwaitOutput(ctx context.Context, in hub.Incarnation, after int64) (total int64, err error)
	State(context.Context, hub.Incarnation) (hub.TerminalState, error)
	// Screen renders what a person would see, also after the end.
	Screen(context.Context, hub.TerminalID, hub.ScreenQuery) (hub.Screen, error)
}

// Occupancy asks for what runs in a terminal that no Dispatch starts: an agent
// without a prompt, a command line, or the user's shell.
type Occupancy struct {
	Terminal hub.TerminalID
	Agent    string
	Command  string
	Dir      string
	Private  string // 0700 folder of the terminal
	Size     hub.TerminalSize
	Env      map[string]string
}

// Console prepares what runs in terminals without a Dispatch, and what is typed
// into those that get one.
type Console interface {
	// Occupy returns what to launch; an agent that is not configured is
	// agent_unconfigured.
	Occupy(Occupancy) (hub.LaunchSpec, error)
	// Preamble is what an agent that runs already is told of its attempt.
	Preamble(Launch) string
	// Pointer writes the text to a file in the private folder and returns one
	// line that names it.
	Pointer(private, text string) (string, error)
}

// Limits and defaults of terminals. The sizes are those of package terminal.
const (
	MaxTerminalRows  = 300
	MinTerminalCols  = 2
	MaxTerminalCols  = 500
	MaxTerminalName  = 128
	MaxCommandLine   = 32 << 10
	launchTimeout    = 30 * time.Second
	defaultCloseTime = 30 * time.Second
)

var defaultSize = hub.TerminalSize{Rows: 40, Cols: 120}

// TerminalCreate is the argument of CreateTerminal. Worktree is as in a start,
// of an existing one; Dir is an absolute folder; without both it is CurrentDir.
// Without Agent and Command the user's shell is run.
type TerminalCreate struct {
	Worktree   string
	CurrentDir string
	Dir        string
	Agent      string
	Command    string
	Name       string
	Size       hub.TerminalSize // zero values take the default
}

// Check refuses contradictions before any effect.
func (in TerminalCreate) Check() error {
	switch {
	case in.Agent != "" && in.Command != "":
		return invalidPair("--agent", "--command")
	case in.Worktree != "" && in.Dir != "":
		return invalidPair("--worktree", "--dir")
	case hub.StartSpec{Worktree: in.Worktree}.New():
		return hub.Invalid("worktree", "%s makes a worktree, and a terminal needs an existing one", in.Worktree)
	case in.Dir != "" && !filepath.IsAbs(in.Dir):
		return hub.Invalid("dir", "%q must be an absolute path", in.Dir)
	case in.Worktree == "" && in.Dir == "" && in.CurrentDir == "":
		return hub.Invalid("dir", "say where: a worktree or a folder")
	case in.Size.Rows < 0 || in.Size.Rows > MaxTerminalRows:
		return hub.Invalid("rows", "must be 1 to %d", MaxTerminalRows)
	case in.Size.Cols != 0 && in.Size.Cols < MinTerminalCols || in.Size.Cols > MaxTerminalCols:
		return hub.Invalid("cols", "must be %d to %d", MinTerminalCols, MaxTerminalCols)
	}
	return errors.Join(hub.CheckText("name", in.Name, MaxTerminalName), hub.CheckText("command", in.Command, MaxCommandLine))
}

func invalidPair(a, b string) error {
	return hub.Errorf(hub.CodeInvalidArgument, "%s and %s cannot be combined", a, b)
}

// role is what the terminal is made for.
func (in TerminalCreate) role() hub.TerminalRole {
	if in.Agent != "" {
		return hub.TerminalAgent
	}
	return hub.TerminalShell
}

// CreateTerminal starts a process in a pseudo terminal of its own, without a
// Dispatch. The creation goes on when the caller goes away.
func (s *Service) CreateTerminal(ctx context.Context, r receipt.Request, in TerminalCreate) (hub.TerminalReceipt, error) {
	if err := in.Check(); err != nil {
		return hub.TerminalReceipt{}, err
	}
	var p place
	return receipt.Long(ctx, s.Gate, r, receipt.Operation[hub.TerminalReceipt]{
		Class: store.New,
		Prepare: func(ctx context.Context) (err error) {
			p, err = s.seatFor(ctx, r.Principal, in)
			return err
		},
		Begin: func(tx store.Tx) (hub.TerminalReceipt, error) {
			if err := admits(tx, r.Principal, p); err != nil {
				return hub.TerminalReceipt{}, err
			}
			t := in.row(p)
			t.CreatedAt, t.CreatedBy = tx.Now(), r.Principal.Name()
			return hub.TerminalReceipt{Terminal: t, State: hub.StartStarting, Stage: hub.StageTerminalCreating, NextCommands: [][]string{}}, tx.PutTerminal(t)
		},
		Perform: func(ctx context.Context, begun hub.TerminalReceipt) (hub.TerminalReceipt, error) {
			return s.occupy(ctx, begun, in.Command)
		},
		Observe: func(ctx context.Context, begun hub.TerminalReceipt) (hub.TerminalReceipt, error) {
			return s.created(ctx, begun)
		},
		Unknown: func(r hub.TerminalReceipt) bool { return r.State == hub.TerminalUnknown },
		Open: func(begun hub.TerminalReceipt) hub.TerminalReceipt {
			return doubtful(begun, errors.New("the creation goes on and its end was not waited for"))
		},
	})
}

// seat finds where a terminal will be, without any effect.
func (s *Service) seat(ctx context.Context, in TerminalCreate) (place, error) {
	if in.Agent != "" {
		if _, err := s.Agents.Completion(in.Agent, ""); err != nil {
			return place{}, err
		}
	}
	p := place{spec: hub.StartSpec{Worktree: in.Worktree, CurrentDir: in.CurrentDir, Agent: in.Agent}}
	switch {
	case in.Dir != "":
		p.spec.Worktree = "path:" + in.Dir
	case in.Worktree == "":
		p.spec.Worktree = hub.WorktreeCurrent
	}
	if err := s.resolveExisting(ctx, &p); err != nil || p.worktree.ID != "" {
		return p, err
	}
	return p, s.withinWorktree(ctx, &p)
}

// withinWorktree finds the worktree that a folder is in, if it is in one.
func (s *Service) withinWorktree(ctx context.Context, p *place) error {
	f, err := s.Git.Inspect(ctx, p.dir)
	if err != nil {
		return err
	}
	return s.Store.View(ctx, func(rx store.Rx) error {
		w, ok, err := rx.WorktreeByPath(f.Path)
		if ok {
			p.worktree = w
		}
		return err
	})
}

// row is the record of the terminal that is asked for.
func (in TerminalCreate) row(p place) hub.Terminal {
	t := hub.Terminal{
		ID: hub.NewTerminalID(), Role: in.role(), Worktree: p.worktree.ID, Dir: p.dir, Agent: in.Agent, Name: in.Name, Size: in.Size,
	}
	if t.Size.Rows == 0 {
		t.Size.Rows = defaultSize.Rows
	}
	if t.Size.Cols == 0 {
		t.Size.Cols = defaultSize.Cols
	}
	return t
}

// occupy launches the process of a terminal that is on record.
func (s *Service) occupy(ctx context.Context, begun hub.TerminalReceipt, command string) (hub.TerminalReceipt, error) {
	ctx, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()
	t := begun.Terminal
	in, err := s.launchOccupant(ctx, t, command)
	if hub.IsCode(err, hub.CodeOutcomeUnknown) {
		return doubtful(begun, err), nil
	}
	// What has happened is committed whatever has become of the caller.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return s.neverStarted(ctx, begun, err)
	}
	return s.occupied(ctx, begun, in)
}

func (s *Service) launchOccupant(ctx context.Context, t hub.Terminal, command string) (hub.Incarnation, error) {
	file, err := s.capabilityFile(t)
	if err != nil {
		return hub.Incarnation{}, err
	}
	private, err := s.Authority.Private(t.ID)
	if err != nil {
		return hub.Incarnation{}, err
	}
	spec, err := s.Console.Occupy(Occupancy{
		Terminal: t.ID, Agent: t.Agent, Command: command, Dir: t.Dir, Private: private, Size: t.Size, Env: s.ownEnv(t.ID, file),
	})
	if err != nil {
		return hub.Incarnation{}, err
	}
	return s.Terminals.Launch(ctx, spec)
}

// capabilityFile is where the terminal's capability will be. Until then the CLI in
// it is its user's, unless another hub has asked for the terminal: that one acts
// as itself, and never with this hub's own token.
func (s *Service) capabilityFile(t hub.Terminal) (string, error) {
	if t.OfPeer() {
		return s.Authority.File(t.ID)
	}
	return s.Authority.Open(t.ID)
}

// ownEnv is what every process of a terminal is told by its hub.
func (s *Service) ownEnv(id hub.TerminalID, file string) map[string]string {
	return map[string]string{"WAVEHUB_TERMINAL_ID": string(id), "WAVEHUB_BIN": s.Bin, "WAVEHUB_DISPATCH_FILE": file}
}

// occupied commits that the process runs, and watches it.
func (s *Service) occupied(ctx context.Context, r hub.TerminalReceipt, in hub.Incarnation) (hub.TerminalReceipt, error) {
	err := s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		r.Terminal, err = startedTerminal(tx, r.Terminal.ID, in)
		return err
	})
	if err != nil {
		return doubtful(r, err), nil
	}
	s.attend(in)
	r.State, r.Stage = hub.TerminalReady, hub.StageTerminalCreated
	return r, nil
}

// neverStarted commits the proof that no process was started.
func (s *Service) neverStarted(ctx context.Context, r hub.TerminalReceipt, cause error) (hub.TerminalReceipt, error) {
	err := s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		r.Terminal, err = endTerminal(tx, r.Terminal.ID, hub.ProcessState{})
		return err
	})
	if err != nil {
		return doubtful(r, err), nil
	}
	r.State, r.FailedStage, r.LastError = hub.TerminalFailed, r.Stage, cause.Error()
	return r, nil
}

// doubtful completes the receipt of a creation that may have had its effect.
func doubtful(r hub.TerminalReceipt, err error) hub.TerminalReceipt {
	r.State, r.FailedStage, r.LastError = hub.TerminalUnknown, r.Stage, err.Error()
	r.NextCommands = [][]string{{"wavehub", "terminal", "show", string(r.Terminal.ID)}}
	return r
}

// created answers a repeated creation by what is on record and what its launch
// left behind; nothing is launched again.
func (s *Service) created(ctx context.Context, begun hub.TerminalReceipt) (hub.TerminalReceipt, error) {
	t, err := s.decided(ctx, begun.Terminal.ID)
	if err != nil {
		return doubtful(begun, err), nil
	}
	r := begun
	r.Terminal, r.FailedStage, r.LastError, r.NextCommands = t, "", "", [][]string{}
	if t.Process == nil {
		r.State, r.FailedStage, r.LastError = hub.TerminalFailed, r.Stage, "the hub was restarted before the process was launched"
		return r, nil
	}
	r.State, r.Stage = hub.TerminalReady, hub.StageTerminalCreated
	return r, nil
}

// decided reads a terminal whose creation may have been cut off, and finds out
// and commits what came of it.
func (s *Service) decided(ctx context.Context, id hub.TerminalID) (hub.Terminal, error) {
	t, err := s.terminal(ctx, id)
	if err != nil || t.Process != nil || t.Over() || t.Dispatch != "" {
		return t, err
	}
	in, ok, err := s.Terminals.Recover(ctx, id)
	if err != nil {
		return t, err
	}
	err = s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		if !ok {
			t, err = endTerminal(tx, id, hub.ProcessState{})
			return err
		}
		t, err = startedTerminal(tx, id, in)
		return err
	})
	if err == nil && ok {
		s.attend(in)
	}
	return t, err
}

func (s *Service) terminal(ctx context.Context, id hub.TerminalID) (t hub.Terminal, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		t, err = rx.Terminal(id)
		return err
	})
	return t, err
}
