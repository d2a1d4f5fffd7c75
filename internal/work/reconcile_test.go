package work_test

import (
	"context"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// tellingRemote loses every start and shows what it is told to.
type tellingRemote struct {
	fakeRemote
	shown func(begun hub.PeerShow) hub.PeerShow
	stop  func() (hub.StopEvidence, error)
	start hub.Receipt
}

func (r *tellingRemote) Show(context.Context, hub.PeerID, hub.DispatchID) (hub.PeerShow, error) {
	return r.shown(hub.PeerShow{Attached: true, Receipt: r.start}), nil
}

func (r *tellingRemote) Stop(context.Context, hub.PeerID, hub.RequestID, hub.DispatchID, hub.PeerStop) (hub.StopEvidence, error) {
	return r.stop()
}

// lostRemotely is a remote start whose answer was lost, and the home that made it.
func (m *machine) lostRemotely(t *testing.T) (*work.Service, *tellingRemote, hub.Receipt) {
	t.Helper()
	rem := &tellingRemote{}
	rem.fakeRemote.start = func(int) (hub.Receipt, error) { return hub.Receipt{}, errLost }
	s := m.homeOf(rem, m.terms, 0)
	in := startInput(m.newTask())
	in.On = "windows"
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil || r.State != hub.StartOutcomeUnknown || len(r.Residuals) != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	rem.start = hub.Receipt{
		Run: r.Run, Task: r.Task, Dispatch: r.Dispatch, State: hub.StartStarting, Stage: hub.StageTerminalCreated,
		Effects: []hub.Resource{{Kind: "worktree", Action: "created", ID: "wt_1", Server: "there"}, {Kind: "terminal", Action: "created", ID: "term_1", Server: "there"}},
	}
	return s, rem, r
}

func show(t *testing.T, s *work.Service, id hub.DispatchID) work.Shown {
	t.Helper()
	shown, err := s.Show(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// kinds are the resources by kind, each with its id and its server.
func kinds(rs []hub.Resource) map[string]string {
	out := map[string]string{}
	for _, r := range rs {
		out[r.Kind] = r.ID + "@" + r.Server
	}
	return out
}

// A remote start whose answer was lost names its terminal as soon as its owner is
// asked, also while it is open there too. Invariant 4.
func TestALostStartNamesWhatItsOwnerHasMade(t *testing.T) {
	m := newMachine(t)
	m.addPeer(hub.RoleWorker)
	s, rem, r := m.lostRemotely(t)
	rem.shown = func(p hub.PeerShow) hub.PeerShow { return p }
	got := show(t, s, r.Dispatch)
	if got.Dispatch.State != hub.StartUnknown || got.Receipt.State != hub.StartOutcomeUnknown || got.Receipt.LastError != errLost.Error() || len(got.Receipt.NextCommands) == 0 {
		t.Errorf("%s: %+v", got.Dispatch.State, got.Receipt)
	}
	if left := kinds(got.Receipt.Residuals); left["terminal"] != "term_1@windows" || left["worktree"] != "wt_1@windows" {
		t.Errorf("left over may be %v", left)
	}
	version := func() (text string) { return m.record(t, r.Task, r.Dispatch) }
	if before, again := version(), show(t, s, r.Dispatch); version() != before || kinds(again.Receipt.Residuals)["terminal"] == "" {
		t.Error("another look at the same changes something")
	}
	if got := abandonOf(t, s, r.Dispatch); kinds(got.Residuals)["terminal"] != "term_1@windows" {
		t.Errorf("abandoned: %+v", got.Residuals)
	}
}

// That a start has failed waits for what its owner has queued before: page 4.5.
func TestAFailureDoesNotOvertakeTheQueue(t *testing.T) {
	m := newMachine(t)
	peer := m.addPeer(hub.RoleWorker)
	s, rem, r := m.lostRemotely(t)
	rem.shown = func(p hub.PeerShow) hub.PeerShow {
		p.Receipt.State, p.Receipt.FailedStage, p.Observation.LastSeq = hub.StartFailed, hub.StageTerminalCreated, 2
		return p
	}
	if got := show(t, s, r.Dispatch); got.Dispatch.State != hub.StartUnknown {
		t.Fatalf("with two items to come it is %s", got.Dispatch.State)
	}
	key := store.CursorKey{Lineage: peer.Lineage, StoreID: peer.StoreID, Epoch: peer.StoreEpoch, Dispatch: r.Dispatch}
	err := m.store.Update(t.Context(), store.Import, func(tx store.Tx) error { return tx.SaveCursor(key, store.Cursor{Seq: 2}) })
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, s, r.Dispatch); got.Dispatch.State != hub.Failed {
		t.Errorf("with all imported it is %s", got.Dispatch.State)
	}
}

// A stop names what its owner says that it leaves, whatever the home had heard of
// the start; one of another store or epoch proves nothing. Page 4.7.
func TestARemoteStopNamesWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		ev       hub.StopEvidence
		err      error
		state    hub.DispatchState
		terminal string
	}{
		"proved":         {hub.StopEvidence{Proved: true, Action: hub.ActionEnded}, nil, hub.Stopped, ""},
		"not proved":     {hub.StopEvidence{Action: hub.ActionUnknown, LastError: "no proof"}, nil, hub.StopUnknown, "term_1@windows"},
		"never attached": {hub.StopEvidence{Proved: true, NeverAttached: true, Action: hub.ActionNone}, nil, hub.Stopped, ""},
		"another store":  {hub.StopEvidence{}, hub.Errorf(hub.CodePeerStoreChanged, "the store was restored"), hub.StopUnknown, ""},
	} {
		m := newMachine(t)
		m.addPeer(hub.RoleWorker)
		s, rem, r := m.lostRemotely(t)
		rem.stop = func() (hub.StopEvidence, error) {
			if c.err == nil && !c.ev.NeverAttached {
				c.ev.Residuals = rem.start.Effects
			}
			return c.ev, c.err
		}
		got := stopOf(t, s, r.Dispatch)
		left := kinds(got.Residuals)
		if got.State != c.state || left["terminal"] != c.terminal {
			t.Errorf("%s: %s, left over %v", name, got.State, left)
		}
		if worktree := left["worktree"] == "wt_1@windows"; worktree != (c.err == nil && !c.ev.NeverAttached) {
			t.Errorf("%s: left over %v", name, left)
		}
	}
}
