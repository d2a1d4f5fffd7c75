package work_test

import (
	"context"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// fences runs what carries out relayed stops until the test ends.
func (m *machine) fences(s *work.Service) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Fences(ctx) // nil, once ctx has ended
	}()
	m.t.Cleanup(func() { cancel(); <-done })
}

// fencedAt waits until the order on an attachment has been carried out.
func (m *machine) fencedAt(home hub.PeerID, id hub.DispatchID) {
	m.t.Helper()
	woken, cancel := m.bus.Subscribe(string(hub.TopicAttachment), hub.AttachmentKey(home, id))
	defer cancel()
	deadline := time.After(20 * time.Second)
	for {
		var a hub.Attachment
		err := m.store.View(context.Background(), func(rx store.Rx) (err error) {
			a, _, err = rx.Attachment(home, id)
			return err
		})
		if err != nil {
			m.t.Fatal(err)
		}
		if a.Fenced {
			return
		}
		select {
		case <-woken:
		case <-deadline:
			m.t.Fatal("the order was not carried out")
		}
	}
}

// A home's order came through the relay and was carried out before the direct
// call of the same stop: the call says what the order did. Another stop ended
// nothing.
func TestADirectStopBehindItsFenceSaysWhatThatDid(t *testing.T) {
	m := newMachine(t)
	home := m.addPeer(hub.RoleHome)
	s := m.homeOf(nil, m.terms, 0)
	body := hub.PeerStart{Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Contract: hub.ContractFederation, StoreID: "store_1",
		Spec: hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "demo", Name: "two", Agent: "sh"}}
	as := func(op string) receipt.Request {
		q, err := receipt.New(hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)}, "", op, body)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	if r, err := s.StartFor(t.Context(), as("peer.start"), home, body); err != nil || r.State != hub.StartReady {
		t.Fatalf("%s %v", r.State, err)
	}
	first, other := as("peer.stop"), as("peer.stop")
	err := m.store.Update(t.Context(), store.Import, func(tx store.Tx) error {
		a, _, err := tx.Attachment(home.ID, body.Dispatch)
		if err != nil {
			return err
		}
		return dispatch.Order(tx, a, hub.FenceItem{Request: first.Key})
	})
	if err != nil {
		t.Fatal(err)
	}
	m.fences(s)
	m.fencedAt(home.ID, body.Dispatch)
	in := hub.PeerStop{StoreID: "store_1", Epoch: 1}
	for range 2 {
		if ev, err := s.StopFor(t.Context(), first, home, body.Dispatch, in); err != nil || !ev.Proved || ev.Action != hub.ActionEnded {
			t.Errorf("the same stop: %+v %v", ev, err)
		}
	}
	if ev, err := s.StopFor(t.Context(), other, home, body.Dispatch, in); err != nil || !ev.Proved || ev.Action != hub.ActionNone {
		t.Errorf("another stop: %+v %v", ev, err)
	}
}

// A stop that its hub did not live to answer is carried out after the restart;
// asked again under its id, it says what that did.
func TestAStopCarriedOutAfterARestartSaysWhatItDid(t *testing.T) {
	m := newMachine(t)
	_, r := m.started(t, m.hubOf(m.store))
	in := work.StopInput{Dispatch: r.Dispatch}
	q, err := receipt.New(operator, "", "worker.stop", in)
	if err != nil {
		t.Fatal(err)
	}
	f := &frozen{Store: m.store, left: 1, after: true, died: make(chan struct{}), never: make(chan struct{})}
	dying := make(chan error, 1)
	go func() {
		_, err := m.hubOf(f).Stop(context.Background(), q, in)
		dying <- err
	}()
	t.Cleanup(func() { close(f.never); <-dying })
	<-f.died // the fence is committed, and nothing behind it
	next := m.hubOf(m.store)
	if err := next.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.fences(next)
	m.fencedAt("", r.Dispatch)
	out, err := next.Stop(t.Context(), q, in)
	if err != nil || out.State != hub.Stopped || out.AlreadySettled || out.Action != hub.ActionEnded {
		t.Errorf("%+v %v", out, err)
	}
}
