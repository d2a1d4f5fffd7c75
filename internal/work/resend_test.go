package work_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// tracedRemote keeps every start it is sent and counts all other calls. It
// answers a start with answer.
type tracedRemote struct {
	answer func(begun []byte) (hub.Receipt, error)
	keys   []hub.RequestID
	bodies [][]byte
	others int
}

func (r *tracedRemote) Probe(context.Context, hub.PeerID, []byte) (hub.Probe, error) {
	r.others++
	return hub.Probe{}, nil
}

func (r *tracedRemote) Start(_ context.Context, _ hub.PeerID, key hub.RequestID, body []byte) (hub.Receipt, error) {
	r.keys, r.bodies = append(r.keys, key), append(r.bodies, bytes.Clone(body))
	return r.answer(body)
}

func (r *tracedRemote) Show(context.Context, hub.PeerID, hub.DispatchID) (hub.PeerShow, error) {
	r.others++
	return hub.PeerShow{}, errors.New("down")
}

func (r *tracedRemote) Stop(context.Context, hub.PeerID, hub.RequestID, hub.DispatchID, hub.PeerStop) (hub.StopEvidence, error) {
	r.others++
	return hub.StopEvidence{}, errors.New("down")
}

func (r *tracedRemote) Output(context.Context, hub.PeerID, hub.DispatchID, work.OutputQuery) (hub.OutputPage, error) {
	r.others++
	return hub.OutputPage{}, errors.New("down")
}

func lost([]byte) (hub.Receipt, error) { return hub.Receipt{}, errLost }

// lostStart is a remote start whose answer was lost.
func (m *machine) lostStart(t *testing.T) (*tracedRemote, work.StartInput, hub.RequestID) {
	t.Helper()
	rem := &tracedRemote{answer: lost}
	in, key := startInput(m.newTask()), hub.NewRequestID()
	in.On = "windows"
	m.repeated(t, rem, key, in)
	return rem, in, key
}

// repeated makes the start on a hub of its own: what it knows it has read.
func (m *machine) repeated(t *testing.T, rem *tracedRemote, key hub.RequestID, in work.StartInput) {
	t.Helper()
	r, err := m.homeOf(rem, m.terms, 0).Start(t.Context(), startRequest(t, key, in), in)
	if err != nil || r.State != hub.StartOutcomeUnknown {
		t.Fatalf("%s %v", r.State, err)
	}
}

// TestAResendIsTheSameRequest: what is sent again after a lost answer are the
// recorded bytes under the same request id, whatever has become of the Task.
// Invariant 3.
func TestAResendIsTheSameRequest(t *testing.T) {
	m := newMachine(t)
	m.addPeer(hub.RoleWorker)
	rem, in, key := m.lostStart(t)
	err := m.store.Update(t.Context(), store.New, func(tx store.Tx) error {
		_, err := run.Update(tx, run.UpdateInput{Task: in.Task, Change: hub.TaskChange{Title: "another", Spec: "another"}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m.repeated(t, rem, key, in)
	}
	if len(rem.bodies) != 3 {
		t.Fatalf("it was sent %d times", len(rem.bodies))
	}
	for i, body := range rem.bodies {
		if rem.keys[i] != key || !bytes.Equal(body, rem.bodies[0]) || !bytes.Contains(body, []byte(`"prompt":"true"`)) {
			t.Errorf("sending %d, under %s:\n%s\nfirst\n%s", i, rem.keys[i], body, rem.bodies[0])
		}
	}
}

// TestNothingIsResentToAnotherStore: a start that was addressed to one store of
// a peer goes to no other, and its outcome stays open.
// Invariant 3.
func TestNothingIsResentToAnotherStore(t *testing.T) {
	for name, change := range map[string]func(*hub.Peer){
		"a restored store": func(p *hub.Peer) { p.StoreEpoch++ },
		"another store":    func(p *hub.Peer) { p.StoreID = "store_x" },
		"another key":      func(p *hub.Peer) { p.Lineage = "hub_x" },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			peer := m.addPeer(hub.RoleWorker)
			rem, in, key := m.lostStart(t)
			change(&peer)
			if err := m.store.Update(t.Context(), store.New, func(tx store.Tx) error { return tx.SavePeer(peer) }); err != nil {
				t.Fatal(err)
			}
			m.repeated(t, rem, key, in)
			if len(rem.bodies) != 1 {
				t.Errorf("it was sent %d times", len(rem.bodies))
			}
			if got := m.state(in.Task); got != hub.StartUnknown {
				t.Errorf("the Dispatch is %s", got)
			}
		})
	}
}

// TestAcceptance_L08_AbandonCallsNoPeer: giving a remote Dispatch up asks its
// owner nothing, whether it runs or nobody knows.
func TestAcceptance_L08_AbandonCallsNoPeer(t *testing.T) {
	for name, answer := range map[string]func([]byte) (hub.Receipt, error){"ready": ready, "start_unknown": lost} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.addPeer(hub.RoleWorker)
			rem := &tracedRemote{answer: answer}
			s := m.homeOf(rem, m.terms, 0)
			in := startInput(m.newTask())
			in.On = "windows"
			r, err := s.Start(t.Context(), startRequest(t, "", in), in)
			if err != nil || string(m.state(in.Task)) != name {
				t.Fatalf("%s %v", m.state(in.Task), err)
			}
			sent, others := len(rem.bodies), rem.others
			got := abandonOf(t, s, r.Dispatch)
			if len(rem.bodies) != sent || rem.others != others {
				t.Errorf("%d starts and %d other calls for an abandon", len(rem.bodies)-sent, rem.others-others)
			}
			if tk, d := m.task(in.Task); got.State != hub.Abandoned || d.State != hub.Abandoned || tk.State != hub.TaskBlocked {
				t.Errorf("%+v, Dispatch %s, Task %s", got, d.State, tk.State)
			}
		})
	}
}

// ready is the owner's answer that the worker runs.
func ready(body []byte) (hub.Receipt, error) {
	var start hub.PeerStart
	err := json.Unmarshal(body, &start)
	return hub.Receipt{Run: start.Run, Task: start.Task, Dispatch: start.Dispatch, State: hub.StartReady, Stage: hub.StageInputAccepted}, err
}
