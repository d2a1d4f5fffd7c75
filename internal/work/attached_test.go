package work_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// identity makes an attached worker of the name.
func (m *machine) identity(name string) hub.Worker {
	m.t.Helper()
	w := hub.Worker{ID: hub.NewWorkerID(), Name: name, State: hub.WorkerActive, Generation: 1}
	err := m.store.Update(m.t.Context(), store.New, func(tx store.Tx) error {
		return errors.Join(tx.PutWorker(w), tx.PutMailbox(store.Mailbox{Box: w.ID.Box()}),
			tx.PutCredential(store.Credential{Sum: "cred-" + string(w.ID), Kind: store.CredWorker, Subject: string(w.ID)}))
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return w
}

func principalOf(w hub.Worker) hub.Principal {
	return hub.Principal{Kind: hub.AttachedWorker, ID: string(w.ID), Credential: "cred-" + string(w.ID)}
}

func dispatchRequest(t *testing.T, key hub.RequestID, in work.DispatchInput) receipt.Request {
	t.Helper()
	r, err := receipt.New(operator, key, "createDispatch", in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (m *machine) dispatch(s *work.Service, in work.DispatchInput) (hub.Receipt, error) {
	m.t.Helper()
	return s.Dispatch(context.Background(), dispatchRequest(m.t, "", in), in)
}

// starts is how many session_starts the worker's mailbox has.
func (m *machine) starts(w hub.Worker) (n int) {
	m.t.Helper()
	err := m.store.View(m.t.Context(), func(rx store.Rx) error {
		ms, _, err := rx.History(w.ID.Box(), store.HistoryFilter{Limit: 100, Types: []hub.MessageType{hub.TypeSessionStart}})
		n = len(ms)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

// A Dispatch killed at each of its commits is there with its one session_start, or
// not at all; a restart leaves it waiting, and repeating it gives nothing twice.
func TestAttachedDispatchKilledAtEachCommit(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			if completed := killedDispatch(t, n, after); completed {
				if n < 2 {
					t.Fatal("a Dispatch has no commit")
				}
				break
			}
		}
	}
}

func killedDispatch(t *testing.T, n int, after bool) (completed bool) {
	t.Run(fmt.Sprintf("commit %d, after=%v", n, after), func(t *testing.T) {
		m := newMachine(t)
		task, w := m.newTask(), m.identity("w-1")
		key, in := hub.NewRequestID(), work.DispatchInput{Task: task, To: "worker:w-1", TimeoutMS: 1}
		f := &frozen{Store: m.store, left: n, after: after, died: make(chan struct{}), never: make(chan struct{})}
		t.Cleanup(func() { close(f.never) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := m.hubOf(f).Dispatch(context.Background(), dispatchRequest(t, key, in), in); err != nil {
				t.Logf("the dying hub: %v", err)
			}
		}()
		select {
		case <-f.died:
		case <-done:
			completed = true
		case <-time.After(10 * time.Second):
			t.Fatal("neither died nor done")
		}
		again := m.hubOf(m.store)
		if err := again.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		tk, d := m.task(task)
		if tk.Latest == "" {
			if m.starts(w) != 0 || tk.State != hub.TaskReady {
				t.Errorf("nothing was begun, and the mailbox has %d session_starts", m.starts(w))
			}
			return
		}
		if d.State != hub.Starting || m.starts(w) != 1 || m.receipt(t, key).State != store.ReceiptDone {
			t.Errorf("%s with %d session_starts, on record as %s", d.State, m.starts(w), m.receipt(t, key).State)
		}
		r, err := again.Dispatch(context.Background(), dispatchRequest(t, key, in), in)
		if err != nil || r.Dispatch != d.ID || r.State != hub.StartStarting || !r.Mutation.Replayed || m.starts(w) != 1 {
			t.Errorf("repeated: %+v, %v, %d session_starts", r, err, m.starts(w))
		}
	})
	return completed
}

func TestAttachedDispatchWaitsUntilItIsTakenUp(t *testing.T) {
	m := newMachine(t)
	s, w := m.hubOf(m.store), m.identity("w-1")
	in := work.DispatchInput{Task: m.newTask(), To: "worker:" + string(w.ID), TimeoutMS: 60_000}
	answer := make(chan hub.Receipt, 1)
	go func() {
		r, err := m.dispatch(s, in)
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	m.settled(t, "it is committed", func() bool { return m.starts(w) == 1 })
	_, d := m.task(in.Task)
	shown, err := s.Show(t.Context(), d.ID)
	if o := shown.Observation; err != nil || o.WaitingFor != "worker" || o.Process != hub.Unverifiable || o.Lost {
		t.Errorf("observed: %+v, %v", o, err)
	}
	if _, live, err := s.Present(t.Context(), principalOf(w), work.WorkerPresence{Dispatches: []hub.DispatchID{d.ID}, Usage: []byte(`{"n":1}`)}); err != nil || len(live) != 1 {
		t.Fatalf("%v, %v", live, err)
	}
	if r := <-answer; r.State != hub.StartReady || r.DispatchState != hub.Ready || r.Preamble == "" || r.Worker != "w-1" {
		t.Errorf("the receipt is %+v", r)
	}
	shown, err = s.Show(t.Context(), d.ID)
	if o := shown.Observation; err != nil || o.WaitingFor != "none" || string(o.Usage) != `{"n":1}` || o.LastReportAt == 0 {
		t.Errorf("taken up it is observed as %+v, %v", o, err)
	}
	if seen := s.Seen(w.ID); seen.State != work.Deaf || seen.At == 0 {
		t.Errorf("a presence without a wait is %+v", seen)
	}
}

// settled waits for a change that another goroutine commits.
func (m *machine) settled(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	woken, cancel := m.bus.Subscribe(string(hub.TopicMailbox), "")
	defer cancel()
	for !ok() {
		select {
		case <-woken:
		case <-deadline:
			t.Fatal("never: " + what)
		}
	}
}

func TestAttachedDispatchIsRefusedBeforeAnything(t *testing.T) {
	m := newMachine(t)
	s, task := m.hubOf(m.store), m.newTask()
	m.identity("w-1")
	for name, x := range map[string]struct {
		in   work.DispatchInput
		code hub.Code
	}{
		"no target":          {work.DispatchInput{To: "w-1"}, hub.CodeInvalidArgument},
		"nobody":             {work.DispatchInput{To: "worker:"}, hub.CodeInvalidArgument},
		"no peer":            {work.DispatchInput{To: "worker:w-1@"}, hub.CodeInvalidArgument},
		"an unknown worker":  {work.DispatchInput{To: "worker:w-9"}, hub.CodeWorkerNotFound},
		"a terminal":         {work.DispatchInput{To: "terminal:" + string(hub.NewTerminalID()), Inject: true}, hub.CodeTerminalNotFound},
		"inject to a worker": {work.DispatchInput{To: "worker:w-1", Inject: true}, hub.CodeInvalidArgument},
		"too long a wait":    {work.DispatchInput{To: "worker:w-1", TimeoutMS: 600_001}, hub.CodeInvalidArgument},
		"a retry of nothing": {work.DispatchInput{To: "worker:w-1", RetryOf: hub.NewDispatchID()}, hub.CodeTaskNotStartable},
	} {
		for _, x.in.DryRun = range []bool{true, false} {
			x.in.Task = task
			if _, err := m.dispatch(s, x.in); !hub.IsCode(err, x.code) {
				t.Errorf("%s (dry run %v): %v", name, x.in.DryRun, err)
			}
		}
	}
	dry, err := m.dispatch(s, work.DispatchInput{Task: task, To: "worker:w-1", DryRun: true})
	if err != nil || !dry.DryRun || dry.Dispatch != "" || dry.Preamble == "" || dry.Worker != "w-1" {
		t.Errorf("the dry run is %+v, %v", dry, err)
	}
	if tk, _ := m.task(task); tk.Latest != "" || tk.State != hub.TaskReady {
		t.Errorf("a refusal left %+v", tk)
	}
}

func TestAttachedStopOfQueuedWorkIsProven(t *testing.T) {
	m := newMachine(t)
	s, w := m.hubOf(m.store), m.identity("w-1")
	in := work.DispatchInput{Task: m.newTask(), To: "worker:w-1", NoWait: true}
	r, err := m.dispatch(s, in)
	if err != nil || r.State != hub.StartStarting {
		t.Fatalf("%+v, %v", r, err)
	}
	stop := work.StopInput{Dispatch: r.Dispatch, TimeoutMS: 60_000}
	q, err := receipt.New(operator, "", "stopWorker", stop)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Stop(t.Context(), q, stop)
	if err != nil || out.State != hub.Stopped || out.AlreadySettled {
		t.Errorf("the stop is %+v, %v", out, err)
	}
	retry, err := m.dispatch(s, work.DispatchInput{Task: in.Task, To: "worker:w-1", RetryOf: r.Dispatch, NoWait: true})
	if err != nil || retry.Dispatch == r.Dispatch || m.starts(w) != 2 {
		t.Errorf("the retry is %+v, %v", retry, err)
	}
	err = m.store.View(t.Context(), func(rx store.Rx) error {
		own, _, err := dispatch.Assigned(rx, w.ID, 0, 10)
		if len(own) != 1 || own[0].Dispatch != retry.Dispatch {
			t.Errorf("the worker has %+v", own)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
