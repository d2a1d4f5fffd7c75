package work_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// machine is what survives a hub: the disk and the processes on it.
type machine struct {
	t     *testing.T
	store *sqlite.Store
	bus   *signal.Bus
	terms *terminals
	trees *trees
	notes *records
	spool func(hub.DispatchID) error // what Unspool does, if set
	later atomic.Int64               // how far the store's clock is ahead, in microseconds
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, bus: &signal.Bus{}, terms: &terminals{live: map[hub.TerminalID]*process{}}, trees: &trees{}, notes: &records{id: "first"}}
	st, err := sqlite.Open(t.Context(), sqlite.Config{
		Path: filepath.Join(t.TempDir(), "hub.db"),
		Now:  func() hub.Micros { return hub.MicrosOf(time.Now()) + hub.Micros(m.later.Load()) },
		Publish: func(ss []hub.Signal) {
			for _, s := range ss {
				m.bus.Publish(string(s.Topic), s.Key)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	m.store = st
	err = st.Update(t.Context(), store.New, func(tx store.Tx) error {
		return errors.Join(
			tx.PutCredential(store.Credential{Sum: "op", Kind: store.CredOperator}),
			tx.PutRepo(hub.Repo{ID: testRepo, Name: "demo", Path: "/demo", Kind: hub.RepoGit}))
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var (
	testRepo = hub.NewRepoID()
	operator = hub.Principal{Kind: hub.Operator, Credential: "op"}
)

// hubOf starts a hub on the machine over the given view of its store.
func (m *machine) hubOf(st store.Store) *work.Service {
	jobs := group.New(context.Background())
	m.t.Cleanup(func() { jobs.Stop(10 * time.Millisecond) })
	return work.New(work.Config{
		Store: st, Gate: receipt.NewGate(st, jobs.Go), Terminals: m.terms, Git: m.trees, Agents: launchers{}, Console: launchers{}, Authority: authority{}, Transcripts: m.notes,
		Bus: m.bus, Spawn: jobs.Go, Name: "mac", Bin: "/bin/wavehub", StoreID: "store_1", Epoch: 1, Log: slog.New(slog.DiscardHandler),
		CursorKey: []byte("key"), AnswerLost: func(error) bool { return false }, LinkUp: func(hub.PeerID) bool { return false },
		Listening: func(hub.Box) bool { return false }, Unspool: m.unspool,
	})
}

func (m *machine) unspool(_ context.Context, id hub.DispatchID) error {
	if m.spool == nil {
		return nil
	}
	return m.spool(id)
}

func (m *machine) newTask() hub.TaskID {
	m.t.Helper()
	var id hub.TaskID
	err := m.store.Update(m.t.Context(), store.New, func(tx store.Tx) error {
		r := hub.Run{ID: hub.NewRunID(), Objective: "o"}
		if err := errors.Join(tx.PutRun(r), tx.PutMailbox(store.Mailbox{Box: r.ID.Box()})); err != nil {
			return err
		}
		ts, err := run.CreateTasks(tx, r.ID, []hub.Task{{ID: hub.NewTaskID(), Spec: "true"}})
		if err == nil {
			id = ts[0].ID
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}

func (m *machine) task(id hub.TaskID) (t hub.Task, d hub.Dispatch) {
	m.t.Helper()
	err := m.store.View(m.t.Context(), func(rx store.Rx) (err error) {
		if t, err = rx.Task(id); err != nil || t.Latest == "" {
			return err
		}
		d, err = rx.Dispatch(t.Latest)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return t, d
}

// frozen is a store that a hub dies on: its n-th Update blocks for ever, before
// or after the commit.
type frozen struct {
	store.Store
	mu    sync.Mutex
	left  int // guarded by mu
	after bool
	died  chan struct{}
	never chan struct{} // closed by the test's end
}

var errDead = errors.New("the hub is dead")

func (f *frozen) Update(ctx context.Context, c store.Class, fn func(store.Tx) error) error {
	f.mu.Lock()
	f.left--
	now, dead := f.left == 0, f.left < 0
	f.mu.Unlock()
	if dead || now && !f.after {
		return f.die()
	}
	err := f.Store.Update(ctx, c, fn)
	if now {
		return f.die()
	}
	return err
}

func (f *frozen) die() error {
	select {
	case <-f.died:
	default:
		close(f.died)
	}
	<-f.never
	return errDead
}

// process is one fake supervised process.
type process struct {
	in     hub.Incarnation
	exited chan struct{} // closed at its end
	code   int
	does   string  // of a verification: see verifiers
	screen *screen // of a pseudo terminal, nil for pipes
	env    []string
}

// terminals launches fake processes; each launch is counted.
type terminals struct {
	mu       sync.Mutex
	live     map[hub.TerminalID]*process // guarded by mu
	launches int                         // guarded by mu; of agents
	setups   []*process                  // guarded by mu
	noSetup  error                       // of launches of setups, if set
	screens  screens
}

func (ts *terminals) Launch(_ context.Context, s hub.LaunchSpec) (hub.Incarnation, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	setup := len(s.Argv) == 2
	if setup && ts.noSetup != nil {
		return hub.Incarnation{}, ts.noSetup
	}
	p := &process{in: hub.Incarnation{Terminal: s.Terminal, Nonce: "n", PID: len(ts.live) + 1}, exited: make(chan struct{})}
	p.env = s.Env
	if s.PTY != nil {
		p.screen = newScreen(*s.PTY)
	}
	ts.live[s.Terminal] = p
	if setup {
		ts.setups = append(ts.setups, p)
	} else {
		ts.launches++
	}
	return p.in, nil
}

func (ts *terminals) find(id hub.TerminalID) (*process, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	p, ok := ts.live[id]
	return p, ok
}

func (ts *terminals) Recover(_ context.Context, id hub.TerminalID) (hub.Incarnation, bool, error) {
	p, ok := ts.find(id)
	if !ok {
		return hub.Incarnation{}, false, nil
	}
	return p.in, true, nil
}

func (ts *terminals) Observe(_ context.Context, in hub.Incarnation) (hub.ProcessState, error) {
	p, ok := ts.find(in.Terminal)
	if !ok {
		return hub.ProcessState{Liveness: hub.Unverifiable}, nil
	}
	select {
	case <-p.exited:
		return hub.ProcessState{Liveness: hub.Exited, ExitCode: &p.code}, nil
	default:
		return hub.ProcessState{Liveness: hub.Live}, nil
	}
}

func (ts *terminals) Wait(ctx context.Context, in hub.Incarnation) (hub.ProcessState, error) {
	p, ok := ts.find(in.Terminal)
	if !ok {
		return hub.ProcessState{Liveness: hub.Unverifiable}, nil
	}
	select {
	case <-p.exited:
		return hub.ProcessState{Liveness: hub.Exited, ExitCode: &p.code}, nil
	case <-ctx.Done():
		return hub.ProcessState{}, ctx.Err()
	}
}

func (ts *terminals) Attend(ctx context.Context, in hub.Incarnation, sign func(hub.Micros, func())) (hub.ProcessState, error) {
	if st, err := ts.Observe(ctx, in); err == nil && st.Liveness == hub.Live {
		sign(0, func() {})
	}
	return ts.Wait(ctx, in)
}

func (ts *terminals) Stop(ctx context.Context, in hub.Incarnation, _ time.Duration) (hub.StopProof, error) {
	p, ok := ts.find(in.Terminal)
	if !ok {
		return hub.StopProof{Action: hub.ActionUnknown, State: hub.ProcessState{Liveness: hub.Unverifiable}}, nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	select {
	case <-p.exited:
		return hub.StopProof{Action: hub.ActionNone, State: hub.ProcessState{Liveness: hub.Exited, ExitCode: &p.code}}, nil
	default:
		p.code = 143
		close(p.exited)
		return hub.StopProof{Action: hub.ActionEnded, State: hub.ProcessState{Liveness: hub.Exited, ExitCode: &p.code}}, nil
	}
}

func (ts *terminals) Tail(_ context.Context, id hub.TerminalID, _ int) (hub.OutputTail, error) {
	if data, _, _ := ts.screens.output(id); data != nil {
		return hub.OutputTail{Data: data, Total: int64(len(data))}, nil
	}
	return hub.OutputTail{Data: []byte("output whd_" + "0123456789012345678901234567890"), Total: 6}, nil
}

func (ts *terminals) Remove(hub.TerminalID) error { return nil }

// trees makes fake worktrees and counts them.
type trees struct {
	mu      sync.Mutex
	made    int                         // guarded by mu
	there   map[hub.WorktreeID]bool     // guarded by mu; complete ones
	pause   func(ctx context.Context)   // called before Create returns, if set
	fail    error                       // of Create, which then makes nothing
	hook    hub.SetupHook               // of every base
	losses  []hub.Loss                  // what Examine finds
	saved   int                         // guarded by mu; calls of Save
	removed int                         // guarded by mu
	remove  func(context.Context) error // called before Remove deletes, if set
	examine func(context.Context)       // called in Examine, if set

	snapshots int      // guarded by mu
	plain     bool     // it is no git worktree
	changed   []string // what Changes answers
	replaced  bool
	broken    error
}

func (*trees) Inspect(_ context.Context, path string) (work.Folder, error) {
	return work.Folder{Path: path, Kind: hub.RepoGit, Head: "c0"}, nil
}
func (*trees) Canonical(path string) (string, error)        { return path, nil }
func (*trees) Where(n work.NewWorktree) (string, string)    { return "/wt/" + n.Name, "wavehub/" + n.Name }
func (*trees) Check(string, string) error                   { return nil }
func (*trees) Free(context.Context, work.NewWorktree) error { return nil }
func (g *trees) Create(ctx context.Context, n work.NewWorktree) (hub.Worktree, error) {
	if g.fail != nil {
		return hub.Worktree{}, g.fail
	}
	g.mu.Lock()
	g.made++
	if g.there == nil {
		g.there = map[hub.WorktreeID]bool{}
	}
	g.there[n.ID] = true
	g.mu.Unlock()
	if g.pause != nil {
		g.pause(ctx)
	}
	return hub.Worktree{ID: n.ID, Repo: n.Repo.ID, Name: n.Name, Path: "/wt/" + n.Name, Branch: "wavehub/" + n.Name, Base: "c0"}, nil
}

func (g *trees) Snapshot(_ context.Context, dir string) (hub.Baseline, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.snapshots++
	if g.plain {
		return hub.Baseline{}, nil
	}
	return hub.Baseline{Root: dir, GitDir: "/demo/.git", Head: "c0"}, nil
}
func (g *trees) Changes(context.Context, string, hub.Baseline) ([]string, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed, g.replaced, g.broken
}
func (*trees) Handoff(dir, path string) (hub.Handoff, error) {
	return hub.Handoff{Present: true, Bytes: int64(len(dir + path)), SHA256: "s"}, nil
}

func (g *trees) Salvage(_ context.Context, n work.NewWorktree) (hub.Worktree, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.there[n.ID] {
		return hub.Worktree{}, false, nil
	}
	return hub.Worktree{ID: n.ID, Path: "/wt/" + n.Name, Branch: "wavehub/" + n.Name, Base: "c0"}, true, nil
}

func (g *trees) SetupHook(context.Context, hub.Repo, string) (hub.SetupHook, string, error) {
	return g.hook, "c0", nil
}

func (g *trees) Examine(ctx context.Context, _ hub.Repo, w hub.Worktree) (hub.TreeState, error) {
	if g.examine != nil {
		g.examine(ctx)
	}
	return hub.TreeState{Present: true, Head: "c1", Branch: w.Branch, Tip: "c1", Losses: g.losses}, nil
}

func (g *trees) Save(context.Context, hub.Repo, hub.Worktree) ([]hub.SavedRef, []hub.Loss, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.saved++
	return []hub.SavedRef{{Ref: "refs/wavehub/removed/x/1", Commit: "c1", Of: "head"}}, nil, nil
}

func (g *trees) Remove(ctx context.Context, _ hub.Repo, w hub.Worktree, _ string) (bool, error) {
	if g.remove != nil {
		if err := g.remove(ctx); err != nil {
			return false, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removed++
	delete(g.there, w.ID)
	return false, nil
}

type launchers struct{}

func (launchers) Completion(name, _ string) (string, error) {
	if name != "sh" && name != "other" {
		return "", hub.Errorf(hub.CodeAgentUnconfigured, "no agent %q", name)
	}
	return "exit", nil
}
func (launchers) Grace(string) time.Duration { return time.Second }
func (launchers) Plan(l work.Launch) (work.Planned, error) {
	return work.Planned{Spec: hub.LaunchSpec{Terminal: l.Terminal, Argv: []string{"/bin/sh"}, Dir: l.Dir}}, nil
}

func (launchers) Script(in work.Script) (hub.LaunchSpec, error) {
	return hub.LaunchSpec{Terminal: in.Terminal, Argv: []string{"/bin/sh", in.Text}, Dir: in.Dir}, nil
}

func (launchers) Setup(l work.SetupLaunch) (hub.LaunchSpec, error) {
	return hub.LaunchSpec{Terminal: l.Terminal, Argv: []string{"/bin/sh", "setup"}, Dir: l.Dir}, nil
}

func (launchers) AttachedPreamble(_ hub.TaskID, id hub.DispatchID, _ hub.Checks, _ *hub.WaveRef) string {
	return "how to report " + string(id)
}

type authority struct{}

func (authority) Capability(_ hub.PeerID, d hub.DispatchID) (string, string) {
	return "whd_" + string(d), "cap-" + string(d)
}
func (authority) WriteFile(hub.Attachment, string) (string, error) {
	return "/private/dispatch.json", nil
}
func (authority) Private(hub.TerminalID) (string, error) { return "/private", nil }
func (authority) File(hub.TerminalID) (string, error)    { return "/private/none.json", nil }
func (authority) Open(hub.TerminalID) (string, error)    { return "/private/dispatch.json", nil }
