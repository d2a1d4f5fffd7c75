package work_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

var errLost = errors.New("lost")

type fakeRemote struct {
	start func(n int) (hub.Receipt, error)
	n     int
	body  []byte
}

func (*fakeRemote) Probe(context.Context, hub.PeerID, []byte) (hub.Probe, error) {
	return hub.Probe{}, nil
}
func (f *fakeRemote) Start(_ context.Context, _ hub.PeerID, _ hub.RequestID, b []byte) (hub.Receipt, error) {
	f.n++
	f.body = b
	return f.start(f.n)
}
func (*fakeRemote) Show(context.Context, hub.PeerID, hub.DispatchID) (hub.PeerShow, error) {
	return hub.PeerShow{}, errors.New("down")
}
func (*fakeRemote) Stop(context.Context, hub.PeerID, hub.RequestID, hub.DispatchID, hub.PeerStop) (hub.StopEvidence, error) {
	return hub.StopEvidence{}, errors.New("down")
}
func (*fakeRemote) Output(context.Context, hub.PeerID, hub.DispatchID, work.OutputQuery) (hub.OutputPage, error) {
	return hub.OutputPage{}, errors.New("down")
}

func (m *machine) homeOf(r work.Remote, terms work.Terminals, workers int) *work.Service {
	jobs := group.New(context.Background())
	m.t.Cleanup(func() { jobs.Stop(10 * time.Millisecond) })
	return work.New(work.Config{
		Store: m.store, Gate: receipt.NewGate(m.store, jobs.Go), Terminals: terms, Git: m.trees, Agents: launchers{}, Authority: authority{}, Transcripts: m.notes,
		Bus: m.bus, Spawn: jobs.Go, Name: "mac", Bin: "/bin/wavehub", StoreID: "store_1", Epoch: 1, Log: slog.New(slog.DiscardHandler),
		AnswerLost: func(err error) bool { return errors.Is(err, errLost) },
		LinkUp:     func(hub.PeerID) bool { return false }, Remote: r, Workers: workers, Unspool: m.unspool,
	})
}

func (m *machine) addPeer(role hub.Role) hub.Peer {
	p := hub.Peer{ID: hub.NewPeerID(), Name: "windows", Lineage: "hub_w", Fingerprint: "hub_w", Role: role, State: hub.PeerActive,
		StoreID: "store_w", StoreEpoch: 1, Grants: hub.Grants{Verbs: []string{"start"}, Repos: []string{"/demo"}}}
	if err := m.store.Update(context.Background(), store.New, func(tx store.Tx) error { return tx.PutPeer(p) }); err != nil {
		m.t.Fatal(err)
	}
	return p
}

// Invariants 3 and 4.
func TestResendingProvesNoFailure(t *testing.T) {
	m := newMachine(t)
	m.addPeer(hub.RoleWorker)
	task := m.newTask()
	rem := &fakeRemote{start: func(n int) (hub.Receipt, error) {
		if n == 1 {
			return hub.Receipt{}, errLost // accepted over there, the worker runs; the answer is lost
		}
		return hub.Receipt{}, hub.Errorf(hub.CodeRemoteRuntimeUnavailable, "dial: connection refused")
	}}
	s := m.homeOf(rem, m.terms, 0)
	in := startInput(task)
	in.On = "windows"
	key := hub.NewRequestID()
	r, err := s.Start(t.Context(), startRequest(t, key, in), in)
	if err != nil || r.State != hub.StartOutcomeUnknown {
		t.Fatalf("%s %v", r.State, err)
	}
	r, err = s.Start(t.Context(), startRequest(t, key, in), in)
	_, d := m.task(task)
	if d.State == hub.Failed {
		t.Errorf("repeated while the link is down: receipt %s, Dispatch %s (%s), err %v", r.State, d.State, d.Reason, err)
	}
}

func TestAnOwnerThatFailsProvesNothing(t *testing.T) {
	m := newMachine(t)
	m.addPeer(hub.RoleWorker)
	task := m.newTask()
	rem := &fakeRemote{start: func(n int) (hub.Receipt, error) {
		return hub.Receipt{}, hub.Errorf(hub.CodeStorageFull, "owner's finish failed")
	}}
	s := m.homeOf(rem, m.terms, 0)
	in := startInput(task)
	in.On = "windows"
	_, err := s.Start(t.Context(), startRequest(t, "", in), in)
	_, d := m.task(task)
	if d.State == hub.Failed {
		t.Errorf("Dispatch %s %v", d.State, err)
	}
}

func TestAForeignReceiptIsNotTaken(t *testing.T) {
	m := newMachine(t)
	m.addPeer(hub.RoleWorker)
	task := m.newTask()
	rem := &fakeRemote{start: func(n int) (hub.Receipt, error) {
		return hub.Receipt{Run: "run_foreign", Task: "task_foreign", Dispatch: "dispatch_foreign", State: hub.StartReady, NextCommands: [][]string{{"rm", "-rf", "/"}}}, nil
	}}
	s := m.homeOf(rem, m.terms, 0)
	in := startInput(task)
	in.On = "windows"
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil || r.State != hub.StartOutcomeUnknown || r.Dispatch == "dispatch_foreign" || slices.ContainsFunc(r.NextCommands, func(c []string) bool { return c[0] == "rm" }) {
		t.Errorf("%+v %v", r, err)
	}
}

func TestAnUnansweredFailureIsMailed(t *testing.T) {
	m := newMachine(t)
	m.trees.pause = nil
	task := m.newTask()
	s := m.homeOf(nil, failingTerms{m.terms}, 0)
	in := startInput(task)
	in.NoWait = true
	woken, cancel := m.bus.Subscribe(string(hub.TopicDispatch), "")
	defer cancel()
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil || r.State != hub.StartStarting {
		t.Fatalf("%s %v", r.State, err)
	}
	deadline := time.After(5 * time.Second)
	for {
		_, d := m.task(task)
		if d.State == hub.Failed {
			break
		}
		select {
		case <-woken:
		case <-deadline:
			t.Fatal("never failed")
		}
	}
	m.mails(t, r.Run, 1)
}

func (m *machine) mails(t *testing.T, r hub.RunID, want int) {
	var ms []hub.Message
	err := m.store.View(context.Background(), func(rx store.Rx) (err error) {
		ms, err = rx.Deliverable(r.Box(), 0, 50, 1<<20)
		return err
	})
	if err != nil || len(ms) != want {
		t.Errorf("%d mails, want %d, %v", len(ms), want, err)
	}
}

type failingTerms struct{ *terminals }

func (failingTerms) Launch(context.Context, hub.LaunchSpec) (hub.Incarnation, error) {
	return hub.Incarnation{}, errors.New("launching: no such program")
}

func TestTheHubsLimitCountsPeersToo(t *testing.T) {
	m := newMachine(t)
	home := m.addPeer(hub.RoleHome)
	s := m.homeOf(nil, m.terms, 1)
	in := startInput(m.newTask())
	if r, err := s.Start(t.Context(), startRequest(t, "", in), in); err != nil || r.State != hub.StartReady {
		t.Fatal(r.State, err)
	}
	body := hub.PeerStart{Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Contract: hub.ContractFederation, StoreID: "store_1",
		Spec: hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "demo", Name: "two", Agent: "sh"}}
	q, err := receipt.New(hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)}, "", "peer.start", body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.StartFor(t.Context(), q, home, body)
	if !hub.IsCode(err, hub.CodeWorkerLimit) {
		t.Errorf("limit 1, second worker: %s %v", r.State, err)
	}
}

type brokenRecover struct{ *terminals }

func (brokenRecover) Recover(context.Context, hub.TerminalID) (hub.Incarnation, bool, error) {
	return hub.Incarnation{}, false, hub.Errorf(hub.CodeOutcomeUnknown, "the supervisor does not answer")
}
func (brokenRecover) Launch(context.Context, hub.LaunchSpec) (hub.Incarnation, error) {
	return hub.Incarnation{}, hub.Errorf(hub.CodeOutcomeUnknown, "the process may have been started")
}

func TestAMuteSupervisorDoesNotKeepTheHubDown(t *testing.T) {
	m := newMachine(t)
	s := m.homeOf(nil, brokenRecover{m.terms}, 0)
	in := startInput(m.newTask())
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil || r.State != hub.StartOutcomeUnknown {
		t.Fatalf("%s %v", r.State, err)
	}
	if _, err := s.Show(t.Context(), r.Dispatch); err != nil {
		t.Errorf("show fails: %v", err)
	}
	if err := m.homeOf(nil, brokenRecover{m.terms}, 0).Recover(t.Context()); err != nil {
		t.Errorf("the hub cannot start: %v", err)
	}
}

// flakyWait cannot read the output the first time.
type flakyWait struct {
	*terminals
	n *atomic.Int32
}

func (f flakyWait) Tail(ctx context.Context, id hub.TerminalID, n int) (hub.OutputTail, error) {
	if f.n.Add(1) == 1 {
		return hub.OutputTail{}, errors.New("too many open files")
	}
	return f.terminals.Tail(ctx, id, n)
}

func TestUnreadableOutputHoldsNoExitBack(t *testing.T) {
	m := newMachine(t)
	f := flakyWait{m.terms, &atomic.Int32{}}
	s := m.homeOf(nil, f, 0)
	task := m.newTask()
	in := startInput(task)
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil {
		t.Fatal(err)
	}
	woken, cancel := m.bus.Subscribe(string(hub.TopicDispatch), string(r.Dispatch))
	defer cancel()
	for _, p := range m.terms.live {
		close(p.exited)
	}
	select {
	case <-woken:
	case <-time.After(10 * time.Second):
		t.Fatal("the exit was not committed")
	}
	if _, d := m.task(task); d.State != hub.Succeeded {
		t.Errorf("the Dispatch is %s", d.State)
	}
}

// lateLaunch launches, but cannot say so.
type lateLaunch struct{ *terminals }

func (l lateLaunch) Launch(ctx context.Context, sp hub.LaunchSpec) (hub.Incarnation, error) {
	if _, err := l.terminals.Launch(ctx, sp); err != nil {
		return hub.Incarnation{}, err
	}
	return hub.Incarnation{}, hub.Errorf(hub.CodeOutcomeUnknown, "the process may have been started")
}

func TestAnOwnerResolvesAnUnknownStart(t *testing.T) {
	m := newMachine(t)
	home := m.addPeer(hub.RoleHome)
	s := m.homeOf(nil, lateLaunch{m.terms}, 0)
	body := hub.PeerStart{Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Contract: hub.ContractFederation, StoreID: "store_1",
		Spec: hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "demo", Name: "two", Agent: "sh"}}
	q, err := receipt.New(hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)}, "", "peer.start", body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.StartFor(t.Context(), q, home, body)
	if err != nil || r.State != hub.StartOutcomeUnknown {
		t.Fatalf("%s %v", r.State, err)
	}
	for _, p := range m.terms.live {
		close(p.exited)
	}
	shown, err := s.ShowFor(t.Context(), home, body.Dispatch)
	if err != nil || shown.Receipt.State != hub.StartReady {
		t.Errorf("shown: %s %v", shown.Receipt.State, err)
	}
	if r, err = s.StartFor(t.Context(), q, home, body); err != nil || r.State != hub.StartReady {
		t.Errorf("repeated: %s %v", r.State, err)
	}
	if m.terms.launches != 1 {
		t.Errorf("%d launches", m.terms.launches)
	}
}
