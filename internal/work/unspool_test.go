package work_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Invariant 26: the exit of a worker is committed behind what it spooled, and not
// before that is taken.
func TestAnExitWaitsForTheSpool(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	var mu sync.Mutex
	var states []hub.DispatchState // of the Dispatch at each drain
	task, r := m.started(t, s)
	woken, cancel := m.bus.Subscribe(string(hub.TopicDispatch), string(r.Dispatch))
	defer cancel()
	m.spool = func(id hub.DispatchID) error {
		mu.Lock()
		defer mu.Unlock()
		_, d := m.task(task)
		if states = append(states, d.State); len(states) == 1 {
			return errors.New("not now")
		}
		return m.report(t, task, id)
	}
	var a hub.Attachment
	if err := m.store.View(t.Context(), func(rx store.Rx) (err error) { a, _, err = rx.Attachment("", r.Dispatch); return err }); err != nil {
		t.Fatal(err)
	}
	p, _ := m.terms.find(a.Terminal)
	p.code = 3
	close(p.exited)
	select {
	case <-woken:
	case <-time.After(10 * time.Second):
		t.Fatal("the Dispatch was not settled")
	}
	_, d := m.task(task)
	mu.Lock()
	defer mu.Unlock()
	if d.State != hub.Succeeded || d.Evidence != hub.EvidenceReport || len(states) < 2 || states[0] != hub.Ready || states[1] != hub.Ready {
		t.Errorf("Dispatch %s by %s, at the drains it was %v", d.State, d.Evidence, states)
	}
}

// report is the worker's, as a drain accepts it.
func (m *machine) report(t *testing.T, task hub.TaskID, id hub.DispatchID) error {
	t.Helper()
	in := dispatch.SendInput{Type: hub.TypeWorkerDone, Body: "done", Report: hub.Report{Task: task, Dispatch: id, Outcome: hub.OutcomeSucceeded}}
	req, err := receipt.New(hub.Principal{Kind: hub.DispatchCap, ID: string(id), Credential: "cap-" + string(id)}, "", "sendMessage", in)
	if err != nil {
		return err
	}
	_, err = (&dispatch.Service{Store: m.store}).Send(context.Background(), req, in)
	return err
}

// A stop drains too, and is not held up by what cannot be drained.
func TestAStopDrainsTheSpool(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	_, r := m.started(t, s)
	drained := make(chan hub.DispatchID, 10)
	m.spool = func(id hub.DispatchID) error {
		drained <- id
		return errors.New("not now")
	}
	if got := stopOf(t, s, r.Dispatch); got.State != hub.Stopped {
		t.Fatalf("the stop is %+v", got)
	}
	if id := <-drained; id != r.Dispatch {
		t.Errorf("the spool of %s was drained", id)
	}
}
