package work_test

import (
	"errors"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// workerOf is the principal of a Dispatch's worker, as a server makes it.
func workerOf(d hub.DispatchID) hub.Principal {
	return hub.Principal{Kind: hub.DispatchCap, ID: string(d), Credential: "cap-" + string(d), Coordinator: true}
}

func requestBy(t *testing.T, p hub.Principal) receipt.Request {
	t.Helper()
	r, err := receipt.New(p, "", "op", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// childOf has a worker create its child Run.
func (m *machine) childOf(d hub.DispatchID) (hub.Run, error) {
	runs := &run.Service{Store: m.store, Tokens: deskTokens{}}
	p := workerOf(d)
	b, err := runs.Create(m.t.Context(), requestBy(m.t, p), run.CreateInput{Objective: "parts"})
	return b.Run, err
}

// chiefIn starts a worker that may coordinate, in a folder.
func chiefIn(dir string) work.StartInput {
	return work.StartInput{Spec: hub.StartSpec{Worktree: "path:" + dir, Agent: "sh", MayCoordinate: true}}
}

func (m *machine) startIn(s *work.Service, by hub.Principal, id hub.RunID, in work.StartInput) (hub.DispatchID, error) {
	r, err := s.StartNew(m.t.Context(), requestBy(m.t, by), id, hub.Task{Spec: "x"}, in)
	return r.Dispatch, err
}

func (m *machine) home(name string, g hub.Grants) hub.Peer {
	m.t.Helper()
	p := hub.Peer{ID: hub.NewPeerID(), Name: name, Lineage: "hub_" + name, Fingerprint: name, Role: hub.RoleHome, State: hub.PeerActive, Grants: g}
	m.savePeer(p, true)
	return p
}

func (m *machine) savePeer(p hub.Peer, fresh bool) {
	m.t.Helper()
	err := m.store.Update(m.t.Context(), store.New, func(tx store.Tx) error {
		if fresh {
			return tx.PutPeer(p)
		}
		return tx.SavePeer(p)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// startFor starts a worker for a home's Dispatch in a Run of the depth.
func (m *machine) startFor(s *work.Service, home hub.Peer, depth int, in work.StartInput) (hub.PeerStart, error) {
	body := hub.PeerStart{
		Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Prompt: "x", Spec: in.Spec,
		StoreID: "store_1", Epoch: 1, Depth: depth, Contract: hub.ContractFederation,
	}
	r := requestBy(m.t, hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)})
	_, err := s.StartFor(m.t.Context(), r, home, body)
	return body, err
}

// TestAcceptance_R10_WorkersNestThreeDeep: each worker creates a Run below its
// own; the fourth is refused.
func TestAcceptance_R10_WorkersNestThreeDeep(t *testing.T) {
	m := newMachine(t)
	s, by, id := m.hubOf(m.store), operator, m.newRun()
	for depth := 1; ; depth++ {
		d, err := m.startIn(s, by, id, chiefIn("/demo"))
		if err != nil {
			t.Fatal(err)
		}
		child, err := m.childOf(d)
		if depth > hub.MaxRunDepth {
			if !hub.IsCode(err, hub.CodeInvalidArgument) {
				t.Errorf("a Run at depth %d: %+v %v", depth, child, err)
			}
			return
		}
		if err != nil || child.Parent != id || child.Depth != depth {
			t.Fatalf("at depth %d: %+v %v", depth, child, err)
		}
		by, id = workerOf(d), child.ID
	}
}

// TestAcceptance_R10_TheDepthCrossesHubs with the start.
func TestAcceptance_R10_TheDepthCrossesHubs(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	p := m.home("mac", hub.Grants{Repos: []string{"/demo"}, Verbs: []string{hub.GrantStart}})
	body, err := m.startFor(s, p, 2, chiefIn("/demo"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := m.childOf(body.Dispatch)
	if err != nil || child.Depth != 3 || child.Parent != body.Run {
		t.Fatalf("%+v %v", child, err)
	}
	d, err := m.startIn(s, workerOf(body.Dispatch), child.ID, chiefIn("/demo"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.childOf(d); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("deeper: %+v %v", got, err)
	}
	body, err = m.startFor(s, p, 3, chiefIn("/demo"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.childOf(body.Dispatch); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("below the deepest: %+v %v", got, err)
	}
	for _, depth := range []int{-1, 4} {
		if _, err := m.startFor(s, p, depth, chiefIn("/demo")); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("a start at depth %d: %v", depth, err)
		}
	}
}

// TestAPeersGrantsBoundWhatItsWorkersStart, however deep, as they are now.
func TestAPeersGrantsBoundWhatItsWorkersStart(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	p := m.home("mac", hub.Grants{Repos: []string{"/demo", "/more"}, Verbs: []string{hub.GrantStart}, MaxWorkers: 3})
	body, err := m.startFor(s, p, 0, chiefIn("/demo/a"))
	if err != nil {
		t.Fatal(err)
	}
	chief := workerOf(body.Dispatch)
	child, err := m.childOf(body.Dispatch)
	if err != nil {
		t.Fatal(err)
	}
	start := func(by hub.Principal, id hub.RunID, dir string) (hub.DispatchID, hub.Code) {
		t.Helper()
		d, err := m.startIn(s, by, id, chiefIn(dir))
		if err == nil {
			return d, ""
		}
		return d, hub.CodeOf(err)
	}
	if _, code := start(chief, child.ID, "/elsewhere"); code != hub.CodeRepoNotGranted {
		t.Errorf("outside of the grant: %s", code)
	}
	below, code := start(chief, child.ID, "/more/b")
	if code != "" {
		t.Fatalf("within the grant: %s", code)
	}
	grandchild, err := m.childOf(below)
	if err != nil {
		t.Fatal(err)
	}
	if _, code := start(workerOf(below), grandchild.ID, "/demo"); code != hub.CodeRepoNotGranted {
		t.Errorf("granted, but not of the worker that starts it: %s", code)
	}
	if _, code := start(workerOf(below), grandchild.ID, "/more/b/c"); code != "" {
		t.Errorf("its own folder: %s", code)
	}
	if _, code := start(chief, child.ID, "/demo"); code != hub.CodeWorkerLimit {
		t.Errorf("over the peer's limit, three workers run: %s", code)
	}
	if _, err := m.startFor(s, p, 0, chiefIn("/demo")); !hub.IsCode(err, hub.CodeWorkerLimit) {
		t.Errorf("the peer itself over its limit: %v", err)
	}
	p.Grants.MaxWorkers, p.Grants.Repos = 0, []string{"/more"}
	m.savePeer(p, false)
	if _, code := start(chief, child.ID, "/demo"); code != hub.CodeRepoNotGranted {
		t.Errorf("no longer granted: %s", code)
	}
	p.State = hub.PeerRevoked
	m.savePeer(p, false)
	for _, by := range []struct {
		p  hub.Principal
		id hub.RunID
	}{{chief, child.ID}, {workerOf(below), grandchild.ID}} {
		if _, code := start(by.p, by.id, "/more/b"); code != hub.CodePeerRevoked {
			t.Errorf("of a revoked peer: %s", code)
		}
	}
}

// TestAWorkersRepositoryIsThatOfItsFolder: a new worktree of it, from below its
// top as well; of no other one.
func TestAWorkersRepositoryIsThatOfItsFolder(t *testing.T) {
	m := newMachine(t)
	s, id := m.hubOf(m.store), m.newRun()
	err := m.store.Update(t.Context(), store.New, func(tx store.Tx) error {
		return tx.PutRepo(hub.Repo{ID: hub.NewRepoID(), Name: "other", Path: "/other", Kind: hub.RepoGit})
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]work.StartInput{"a folder of it": chiefIn("/demo/sub"), "its top": chiefIn("/demo"), "a worktree of it": specInput()} {
		in.Spec.MayCoordinate = true
		r, err := s.StartNew(t.Context(), requestBy(t, operator), id, hub.Task{Spec: "chief", Title: name}, in)
		if err != nil {
			t.Fatal(err)
		}
		child, err := m.childOf(r.Dispatch)
		if err != nil {
			t.Fatal(err)
		}
		place := func(spec hub.StartSpec) error {
			spec.Agent = "sh"
			if spec.New() {
				spec.Name = "w" + string(hub.NewRequestID())[20:]
			}
			_, err := m.startIn(s, workerOf(r.Dispatch), child.ID, work.StartInput{Spec: spec})
			return err
		}
		if err := place(hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "demo"}); err != nil {
			t.Errorf("%s: a new worktree: %v", name, err)
		}
		_, d := m.task(r.Task)
		if err := place(hub.StartSpec{Worktree: hub.WorktreeCurrent, CurrentDir: m.dirOf(d.ID)}); err != nil {
			t.Errorf("%s: its own folder: %v", name, err)
		}
		if err := place(hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "other"}); !hub.IsCode(err, hub.CodeRepoNotGranted) {
			t.Errorf("%s: another repository: %v", name, err)
		}
		err = place(hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "none"})
		if e, ok := errors.AsType[*hub.Error](err); !ok || e.Code != hub.CodeRepoNotFound || len(e.Next) > 0 || e.Hint == "" {
			t.Errorf("%s: no repository: %+v", name, err)
		}
		if err := place(hub.StartSpec{Worktree: "path:/etc"}); !hub.IsCode(err, hub.CodeRepoNotGranted) {
			t.Errorf("%s: a folder elsewhere: %v", name, err)
		}
	}
}

func (m *machine) dirOf(d hub.DispatchID) (dir string) {
	m.t.Helper()
	err := m.store.View(m.t.Context(), func(rx store.Rx) error {
		a, _, err := rx.Attachment("", d)
		dir = a.Dir
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return dir
}

// TestWhatIsRecordedIsReplayedToAWorkerThatHasEnded: the effect was made.
func TestWhatIsRecordedIsReplayedToAWorkerThatHasEnded(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	d, err := m.startIn(s, operator, m.newRun(), chiefIn("/demo"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := m.childOf(d)
	if err != nil {
		t.Fatal(err)
	}
	r := requestBy(t, workerOf(d))
	start := func() (hub.Receipt, error) {
		return s.StartNew(t.Context(), r, child.ID, hub.Task{Spec: "part"}, chiefIn("/demo"))
	}
	first, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.store.Update(t.Context(), store.Settle, func(tx store.Tx) error {
		_, _, err := dispatch.Abandon(tx, d)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if again, err := start(); err != nil || !again.Mutation.Replayed || again.Dispatch != first.Dispatch {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := m.startIn(s, workerOf(d), child.ID, chiefIn("/demo")); !hub.IsCode(err, hub.CodeDispatchInactive) {
		t.Errorf("a new one: %v", err)
	}
}
