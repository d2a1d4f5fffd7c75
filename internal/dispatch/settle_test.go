package dispatch_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

func TestAcceptance_L01_ReportSettlesDispatchAndTask(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	for outcome, want := range map[hub.Outcome]struct {
		d hub.DispatchState
		t hub.TaskState
	}{
		hub.OutcomeSucceeded: {hub.Succeeded, hub.TaskCompleted},
		hub.OutcomeFailed:    {hub.Failed, hub.TaskFailed},
		hub.OutcomeCancelled: {hub.Stopped, hub.TaskBlocked},
	} {
		task := w.newTask(r)
		id := w.begin(task)
		sent, err := w.send(worker(id), report(task, id, outcome, "body"))
		if err != nil || sent.Verdict != hub.VerdictAccepted || sent.State != dispatch.SentAccepted {
			t.Fatalf("%s: %+v %v", outcome, sent, err)
		}
		tk, d := w.states(task, id)
		if d.State != want.d || tk.State != want.t || tk.Result != "body" || d.Evidence != hub.EvidenceReport {
			t.Errorf("%s: Dispatch %s, Task %s, result %q", outcome, d.State, tk.State, tk.Result)
		}
	}
	if n := len(w.inbox(r)); n != 3 {
		t.Errorf("%d messages for 3 settlements", n)
	}
}

// Invariant 9.
func TestAcceptance_L02_RepeatedAndLateReports(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	for i, c := range []struct {
		in   dispatch.SendInput
		want hub.Verdict
	}{
		{report(task, id, hub.OutcomeSucceeded, "a"), hub.VerdictAccepted},
		{report(task, id, hub.OutcomeSucceeded, "a"), hub.VerdictDuplicate},
		{report(task, id, hub.OutcomeFailed, "a"), hub.VerdictStale},
	} {
		sent, err := w.send(worker(id), c.in)
		if err != nil || sent.Verdict != c.want {
			t.Fatalf("report %d: %q %v, want %s", i, sent.Verdict, err, c.want)
		}
	}
	tk, d := w.states(task, id)
	if d.State != hub.Succeeded || tk.State != hub.TaskCompleted {
		t.Errorf("Dispatch %s, Task %s", d.State, tk.State)
	}
	live := 0
	for _, m := range w.inbox(r) {
		if !m.Stale {
			live++
		}
	}
	if live != 1 {
		t.Errorf("%d deliverable reports", live)
	}
}

func TestLateReportsHaveAQuota(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	var err error
	for i := range 40 {
		if _, err = w.send(worker(id), report(task, id, hub.OutcomeSucceeded, strings.Repeat("x", i+1))); err != nil {
			break
		}
	}
	if !hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
		t.Fatalf("40 late reports: %v", err)
	}
	if n := len(w.inbox(r)); n > 17 {
		t.Errorf("%d reports are kept", n)
	}
}

func TestAcceptance_L03_MalformedReportsChangeNothing(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task, other := w.newTask(r), w.newTask(r)
	id, foreign := w.begin(task), w.begin(other)
	for field, in := range map[string]dispatch.SendInput{
		"task_id":     report("", id, hub.OutcomeSucceeded, "b"),
		"dispatch_id": report(task, "", hub.OutcomeSucceeded, "b"),
		"outcome":     report(task, id, "", "b"),
		"body":        report(task, id, hub.OutcomeSucceeded, " "),
	} {
		_, err := w.send(worker(id), in)
		if e, ok := errors.AsType[*hub.Error](err); !ok || e.Code != hub.CodeLifecycleInvalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, in := range []dispatch.SendInput{report(other, id, hub.OutcomeSucceeded, "b"), report(task, foreign, hub.OutcomeSucceeded, "b")} {
		if _, err := w.send(worker(id), in); !hub.IsCode(err, hub.CodeLifecycleInvalid) {
			t.Errorf("a foreign pair: %v", err)
		}
	}
	if tk, d := w.states(task, id); d.State != hub.Ready || tk.State != hub.TaskDispatched || len(w.inbox(r)) != 0 {
		t.Errorf("Dispatch %s, Task %s, %d messages", d.State, tk.State, len(w.inbox(r)))
	}
}

// Invariant 5.
func TestAcceptance_L04_OnlyTheCredentialReports(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	task, other := w.newTask(r), w.newTask(r)
	id, foreign := w.begin(task), w.begin(other)
	if _, err := w.send(worker(foreign), report(task, id, hub.OutcomeSucceeded, "b")); !hub.IsCode(err, hub.CodeLifecycleInvalid) {
		t.Errorf("another Dispatch: %v", err)
	}
	if _, err := w.send(consumer, report(task, id, hub.OutcomeSucceeded, "b")); !hub.IsCode(err, hub.CodeOutOfScope) {
		t.Errorf("the coordinator: %v", err)
	}
	in := report(task, id, hub.OutcomeSucceeded, "b")
	in.To = r.Box()
	if _, err := w.send(worker(id), in); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("a recipient of its own: %v", err)
	}
	w.update(func(tx store.Tx) error {
		_, _, err := dispatch.Abandon(tx, id)
		return err
	})
	sent, err := w.send(worker(id), report(task, id, hub.OutcomeSucceeded, "b"))
	if err != nil || sent.Verdict != hub.VerdictStale {
		t.Errorf("a fenced worker: %+v %v", sent, err)
	}
	if tk, d := w.states(task, id); d.State != hub.Abandoned || tk.State != hub.TaskBlocked {
		t.Errorf("Dispatch %s, Task %s", d.State, tk.State)
	}
}

func TestAcceptance_L07_StopAgainstDone(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	races, stopped := 100, 0
	if os.Getenv("WAVEHUB_TEST_SCALE") == "full" {
		races = 1000
	}
	for i := range races {
		task := w.newTask(r)
		id := w.begin(task)
		var sent dispatch.Sent
		var already bool
		var sendErr error
		var both sync.WaitGroup
		calls := []func(){
			func() { sent, sendErr = w.send(worker(id), report(task, id, hub.OutcomeSucceeded, "b")) },
			func() {
				w.update(func(tx store.Tx) (err error) {
					_, already, err = dispatch.Fence(tx, id, hub.FenceItem{})
					return err
				})
			},
		}
		both.Go(calls[i%2]) // the one that is started last tends to be first
		both.Go(calls[1-i%2])
		both.Wait()
		tk, d := w.states(task, id)
		won := sendErr == nil && sent.Verdict == hub.VerdictAccepted
		switch {
		case sendErr != nil:
			t.Fatal(sendErr)
		case won != already:
			t.Fatalf("verdict %s, already settled %v", sent.Verdict, already)
		case won && (d.State != hub.Succeeded || tk.State != hub.TaskCompleted):
			t.Fatalf("the report won, but Dispatch %s, Task %s", d.State, tk.State)
		case !won && (d.State != hub.Stopping || tk.State != hub.TaskBlocked || sent.Verdict != hub.VerdictStale):
			t.Fatalf("the stop won, but Dispatch %s, Task %s, verdict %s", d.State, tk.State, sent.Verdict)
		}
		if already {
			stopped++
		}
	}
	t.Logf("%d races, %d won by the report", races, stopped)
}

func TestAcceptance_L10_ExitWithoutReport(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	got := make(chan mail.Batch, 1)
	go func() {
		b, err := w.check(consumer, mail.CheckInput{Box: r.Box(), WaitMS: 10_000, Types: []hub.MessageType{hub.TypeWorkerDone}})
		if err != nil {
			t.Error(err)
		}
		got <- b
	}()
	code := 7
	exit := func(tx store.Tx) error { return dispatch.Exit(tx, "", id, hub.ExitItem{ExitCode: &code}, "tail") }
	w.update(exit)
	w.update(exit)
	b := <-got
	if len(b.Messages) != 1 || b.Messages[0].Type != hub.TypeWorkerDone || b.Messages[0].From != "hub" {
		t.Fatalf("%+v", b)
	}
	if tk, d := w.states(task, id); d.State != hub.Failed || d.Reason != hub.ReasonExitedWithoutReport || *d.ExitCode != 7 || tk.State != hub.TaskFailed {
		t.Errorf("%+v %s", d, tk.State)
	}
	if n := len(w.inbox(r)); n != 1 {
		t.Errorf("%d messages for one settlement", n)
	}
}

func TestReportBeforeExitWins(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	if _, err := w.send(worker(id), report(task, id, hub.OutcomeSucceeded, "b")); err != nil {
		t.Fatal(err)
	}
	code := 1
	w.update(func(tx store.Tx) error { return dispatch.Exit(tx, "", id, hub.ExitItem{ExitCode: &code}, "") })
	if _, d := w.states(task, id); d.State != hub.Succeeded || len(w.inbox(r)) != 1 {
		t.Errorf("Dispatch %s, %d messages", d.State, len(w.inbox(r)))
	}
}

func TestAcceptance_L11_L12_Dependencies(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	a, b := w.newTask(r), w.newTask(r)
	c := w.newTask(r, a, b)
	state := func(id hub.TaskID) hub.TaskState {
		var s hub.TaskState
		w.view(func(rx store.Rx) error { t, err := rx.Task(id); s = t.State; return err })
		return s
	}
	finish := func(task hub.TaskID, o hub.Outcome) {
		id := w.begin(task)
		if _, err := w.send(worker(id), report(task, id, o, "b")); err != nil {
			t.Fatal(err)
		}
	}
	finish(a, hub.OutcomeSucceeded)
	if s := state(c); s != hub.TaskPending {
		t.Fatalf("%s with one dependency open", s)
	}
	finish(b, hub.OutcomeSucceeded)
	if s := state(c); s != hub.TaskReady {
		t.Fatalf("%s with all dependencies completed", s)
	}
	if s := state(w.newTask(r, a)); s != hub.TaskReady {
		t.Errorf("created after completion: %s", s)
	}
	f := w.newTask(r)
	waits := w.newTask(r, f)
	finish(f, hub.OutcomeFailed)
	if s := state(waits); s != hub.TaskPending {
		t.Errorf("a failed dependency unlocked: %s", s)
	}
	_, err := w.runs.CreateTask(context.Background(), w.request(operator(), "task.create", "m"), r, hub.Task{Spec: "x", Dependencies: []hub.TaskID{hub.NewTaskID()}})
	if !hub.IsCode(err, hub.CodeTaskNotFound) {
		t.Errorf("a missing dependency: %v", err)
	}
}

func TestAcceptance_L13_OneStartOfMany(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	var mu sync.Mutex
	var won []hub.DispatchID
	var refused int
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			id := hub.NewDispatchID()
			err := w.store.Update(context.Background(), store.New, func(tx store.Tx) error {
				_, err := dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: task})
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won = append(won, id)
			case hub.IsCode(err, hub.CodeTaskNotStartable):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 || refused != 99 {
		t.Fatalf("%d started, %d refused", len(won), refused)
	}
}
