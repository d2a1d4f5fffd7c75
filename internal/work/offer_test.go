package work_test

import (
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// offers records what a peer offered in its last hello.
func (m *machine) offers(p hub.Peer, contract string, features ...string) {
	m.t.Helper()
	p.Contracts, p.Features = []string{contract}, features
	if err := m.store.Update(m.t.Context(), store.New, func(tx store.Tx) error { return tx.SavePeer(p) }); err != nil {
		m.t.Fatal(err)
	}
}

func wantLacking(t *testing.T, err error, what string) {
	t.Helper()
	if !hub.IsCode(err, hub.CodeCapabilityUnsupported) || !strings.Contains(err.Error(), what) {
		t.Errorf("%v, want capability_unsupported for %s", err, what)
	}
}

// TestAcceptance_F01_AStartNeedsWhatItsOwnerOffers: the offer is looked up in the
// transaction that would begin it. No Dispatch, nothing sent.
func TestAcceptance_F01_AStartNeedsWhatItsOwnerOffers(t *testing.T) {
	for name, c := range map[string]struct {
		contract string
		features []string
		resume   bool
		lacks    string
	}{
		"the contract": {"federation/2", hub.Features(), false, hub.ContractFederation},
		"a feature":    {hub.ContractFederation, []string{hub.FeatureVerify}, true, hub.FeatureChildRuns},
		"nothing":      {hub.ContractFederation, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.offers(m.addPeer(hub.RoleWorker), c.contract, c.features...)
			rem := &tracedRemote{answer: ready}
			in := startInput(m.newTask())
			in.On, in.Spec.MayCoordinate = "windows", c.resume
			_, err := m.homeOf(rem, m.terms, 0).Start(t.Context(), startRequest(t, "", in), in)
			if c.lacks == "" {
				if err != nil || len(rem.bodies) != 1 {
					t.Errorf("%d sent, %v", len(rem.bodies), err)
				}
				return
			}
			wantLacking(t, err, c.lacks)
			if tk := m.taskOnly(in.Task); len(rem.bodies) != 0 || tk.State != hub.TaskReady || tk.Latest != "" {
				t.Errorf("%d starts were sent, the Task is %s with %q", len(rem.bodies), tk.State, tk.Latest)
			}
		})
	}
}

func (m *machine) taskOnly(id hub.TaskID) (tk hub.Task) {
	m.t.Helper()
	if err := m.store.View(m.t.Context(), func(rx store.Rx) (err error) { tk, err = rx.Task(id); return err }); err != nil {
		m.t.Fatal(err)
	}
	return tk
}

// TestAReplayAndAStopNeedWhatTheStartNeeded: a peer that offers less since then is
// sent nothing.
func TestAReplayAndAStopNeedWhatTheStartNeeded(t *testing.T) {
	m := newMachine(t)
	p := m.addPeer(hub.RoleWorker)
	rem, in, key := m.lostStart(t)
	m.offers(p, "federation/2", hub.Features()...)
	m.repeated(t, rem, key, in)
	if len(rem.bodies) != 1 {
		t.Errorf("it was sent %d times", len(rem.bodies))
	}
	_, d := m.task(in.Task)
	if d.Pin.Contract != hub.ContractFederation {
		t.Errorf("the Dispatch needs %q", d.Pin.Contract)
	}
	stop := work.StopInput{Dispatch: d.ID}
	q, err := receipt.New(operator, "", "worker.stop", stop)
	if err != nil {
		t.Fatal(err)
	}
	others := rem.others
	_, err = m.homeOf(rem, m.terms, 0).Stop(t.Context(), q, stop)
	wantLacking(t, err, hub.ContractFederation)
	if got := m.state(in.Task); got != hub.StartUnknown || rem.others != others {
		t.Errorf("the Dispatch is %s after the refused stop, %d calls", got, rem.others-others)
	}
}

// TestAcceptance_F01_AnOwnerRefusesWhatItDoesNotOffer: whoever asks by another
// contract, or for a feature that this hub has never heard of, gets nothing.
func TestAcceptance_F01_AnOwnerRefusesWhatItDoesNotOffer(t *testing.T) {
	m := newMachine(t)
	home := m.addPeer(hub.RoleHome)
	s := m.hubOf(m.store)
	start := func(edit func(*hub.PeerStart)) error {
		in := hub.PeerStart{
			Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Contract: hub.ContractFederation,
			StoreID: "store_1", Epoch: 1, Spec: startInput("").Spec,
		}
		edit(&in)
		_, err := s.StartFor(t.Context(), requestBy(t, hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)}), home, in)
		return err
	}
	wantLacking(t, start(func(in *hub.PeerStart) { in.Contract = "federation/2" }), "federation/2")
	wantLacking(t, start(func(in *hub.PeerStart) { in.Features = []string{"telepathy/1"} }), "telepathy/1")
	m.identity("w-1")
	m.offers(home, "federation/2")
	wantLacking(t, start(func(*hub.PeerStart) {}), hub.ContractFederation)
	toWorker := func(in *hub.PeerStart) { in.Spec = hub.StartSpec{Worker: "w-1"} }
	wantLacking(t, start(toWorker), hub.ContractFederation)
	m.offers(home, hub.ContractFederation)
	if err := start(toWorker); err != nil {
		t.Errorf("once it offers that again: %v", err)
	}
	if m.terms.launches != 0 || m.trees.made != 0 {
		t.Errorf("%d launches, %d worktrees", m.terms.launches, m.trees.made)
	}
}

// TestAHubThatIsNoHomeAnyMoreStopsNothing: its role is that of its record, not of
// when it was let in.
func TestAHubThatIsNoHomeAnyMoreStopsNothing(t *testing.T) {
	m := newMachine(t)
	home := m.addPeer(hub.RoleHome)
	now := home
	now.Role = hub.RoleWorker
	m.savePeer(now, false)
	r := requestBy(t, hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)})
	id := hub.NewDispatchID()
	_, err := m.hubOf(m.store).StopFor(t.Context(), r, home, id, hub.PeerStop{StoreID: "store_1", Epoch: 1})
	if !hub.IsCode(err, hub.CodeOutOfScope) {
		t.Errorf("%v, want out_of_scope", err)
	}
	err = m.store.View(t.Context(), func(rx store.Rx) error {
		if _, known, err := rx.Attachment(home.ID, id); err != nil || known {
			t.Errorf("a tombstone was made: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
