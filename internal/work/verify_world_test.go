package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// What a run of a verification does.
const (
	runPasses = "passes"
	runFails  = "fails"
	runHangs  = "hangs"
	runLost   = "lost"      // it ends and nobody knows how
	runBroken = "broken"    // it cannot be launched
	runBlind  = "blind"     // it can be neither seen nor ended
	runSlow   = "slow stop" // it hangs, and the first stop proves nothing
)

const lostCode = -1

// verifiers are terminals whose verifications do what they are told, one run
// after the other, the last one again.
type verifiers struct {
	*terminals
	mu      sync.Mutex
	script  []string         // guarded by mu
	specs   []hub.LaunchSpec // guarded by mu: of verifications
	removed int              // guarded by mu
	began   chan struct{}    // a hint for each run
}

func (v *verifiers) next(s hub.LaunchSpec) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.specs = append(v.specs, s)
	return v.script[min(len(v.specs), len(v.script))-1]
}

func (v *verifiers) runs() []hub.LaunchSpec {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]hub.LaunchSpec{}, v.specs...)
}

func (v *verifiers) Launch(ctx context.Context, s hub.LaunchSpec) (hub.Incarnation, error) {
	if len(s.Argv) < 2 {
		return v.terminals.Launch(ctx, s)
	}
	does := v.next(s)
	if does == runBroken {
		return hub.Incarnation{}, errors.New("no such folder")
	}
	in, err := v.terminals.Launch(ctx, s)
	p, _ := v.find(s.Terminal)
	switch p.does = does; does {
	case runPasses, runFails, runLost:
		p.code = map[string]int{runPasses: 0, runFails: 3, runLost: lostCode}[does]
		close(p.exited)
	}
	v.began <- struct{}{}
	return in, err
}

func (v *verifiers) Wait(ctx context.Context, in hub.Incarnation) (hub.ProcessState, error) {
	if p, ok := v.find(in.Terminal); ok && p.does == runBlind {
		return hub.ProcessState{Liveness: hub.Unverifiable}, nil
	}
	st, err := v.terminals.Wait(ctx, in)
	if st.ExitCode != nil && *st.ExitCode == lostCode {
		st.ExitCode = nil
	}
	return st, err
}

func (v *verifiers) Stop(ctx context.Context, in hub.Incarnation, grace time.Duration) (hub.StopProof, error) {
	p, ok := v.find(in.Terminal)
	unproved := hub.StopProof{Action: hub.ActionUnknown, State: hub.ProcessState{Liveness: hub.Unverifiable}}
	v.mu.Lock()
	slow := ok && p.does == runSlow
	if slow {
		p.does = runHangs
	}
	v.mu.Unlock()
	if slow || ok && p.does == runBlind {
		return unproved, nil
	}
	return v.terminals.Stop(ctx, in, grace)
}

func (v *verifiers) Remove(hub.TerminalID) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.removed++
	return nil
}

// checked is a machine whose verifications follow a script.
type checked struct {
	*machine
	v *verifiers
}

func newChecked(t *testing.T, script ...string) checked {
	m := newMachine(t)
	return checked{m, &verifiers{terminals: m.terms, script: script, began: make(chan struct{}, 16)}}
}

// hub starts one that verifies, over the given view of the store.
func (c checked) hub(st store.Store) *work.Service {
	s, _ := c.hubThatStops(st)
	return s
}

func (c checked) hubThatStops(st store.Store) (*work.Service, func()) {
	jobs := group.New(context.Background())
	stop := func() { jobs.Stop(10 * time.Millisecond) }
	c.t.Cleanup(stop)
	s := work.New(work.Config{
		Store: st, Gate: receipt.NewGate(st, jobs.Go), Terminals: c.v, Git: c.trees, Agents: launchers{}, Authority: authority{},
		Bus: c.bus, Spawn: jobs.Go, Name: "mac", Bin: "/bin/wavehub", StoreID: "store_1", Epoch: 1, Log: slog.New(slog.DiscardHandler),
		AnswerLost: func(error) bool { return false }, LinkUp: func(hub.PeerID) bool { return false }, VerifyTimeout: time.Minute,
		Unspool: c.unspool,
	})
	jobs.Go(func(ctx context.Context) { _ = s.Verifications(ctx) })
	return s, stop
}

// taskOf makes a Task in a Run of its own.
func (c checked) taskOf(t hub.Task) hub.TaskID {
	c.t.Helper()
	err := c.store.Update(c.t.Context(), store.New, func(tx store.Tx) error {
		r := hub.Run{ID: hub.NewRunID(), Objective: "o"}
		if err := errors.Join(tx.PutRun(r), tx.PutMailbox(store.Mailbox{Box: r.ID.Box()})); err != nil {
			return err
		}
		t.ID, t.Spec = hub.NewTaskID(), "work"
		_, err := run.CreateTasks(tx, r.ID, []hub.Task{t})
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return t.ID
}

// begin starts a worker for the Task.
func (c checked) begin(s *work.Service, task hub.TaskID, retryOf hub.DispatchID) hub.DispatchID {
	c.t.Helper()
	in := startInput(task)
	in.Spec.Name = ""
	in.Spec.Worktree, in.Spec.Repo, in.RetryOf = "path:/wt/shared", "", retryOf
	r, err := s.Start(c.t.Context(), startRequest(c.t, "", in), in)
	if err != nil || r.State != hub.StartReady {
		c.t.Fatalf("%+v %v", r, err)
	}
	return r.Dispatch
}

// report sends a worker_done of the Dispatch's worker.
func (c checked) report(task hub.TaskID, id hub.DispatchID, o hub.Outcome, body string) dispatch.Sent {
	c.t.Helper()
	out, err := c.tryReport(hub.Report{Task: task, Dispatch: id, Outcome: o, Claim: hub.VerifyPassed}, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c checked) tryReport(r hub.Report, body string) (dispatch.Sent, error) {
	p := hub.Principal{Kind: hub.DispatchCap, ID: string(r.Dispatch), Credential: "cap-" + string(r.Dispatch)}
	in := dispatch.SendInput{Type: hub.TypeWorkerDone, Subject: "s", Body: body, Report: r}
	q, err := receipt.New(p, hub.NewRequestID(), "message.send", in)
	if err != nil {
		c.t.Fatal(err)
	}
	return (&dispatch.Service{Store: c.store}).Send(context.Background(), q, in)
}

// awaits waits until the Dispatch is in the state.
func (c checked) awaits(id hub.DispatchID, want hub.DispatchState) hub.Dispatch {
	c.t.Helper()
	return c.until(id, "is "+string(want), func(d hub.Dispatch) bool { return d.State == want })
}

func (c checked) until(id hub.DispatchID, what string, done func(hub.Dispatch) bool) hub.Dispatch {
	c.t.Helper()
	woken, cancel := c.bus.Subscribe(string(hub.TopicDispatch), string(id))
	defer cancel()
	deadline := time.After(20 * time.Second)
	for {
		var d hub.Dispatch
		c.look(func(rx store.Rx) (err error) { d, err = rx.Dispatch(id); return err })
		if done(d) {
			return d
		}
		select {
		case <-woken:
		case <-deadline:
			c.t.Fatalf("not so: %s %s; it is %s (%s)", id, what, d.State, d.Reason)
		}
	}
}

func (c checked) look(fn func(store.Rx) error) {
	c.t.Helper()
	if err := c.store.View(context.Background(), fn); err != nil {
		c.t.Fatal(err)
	}
}

// mail is everything in the mailbox of the Task's Run, with its payloads.
func (c checked) mail(task hub.TaskID, typ hub.MessageType) (ms []hub.Message, rs []hub.Report) {
	c.t.Helper()
	c.look(func(rx store.Rx) error {
		t, err := rx.Task(task)
		if err != nil {
			return err
		}
		ms, _, err = rx.History(t.Run.Box(), store.HistoryFilter{Limit: 100, Types: []hub.MessageType{typ}})
		return err
	})
	for _, m := range ms {
		var r hub.Report
		if err := json.Unmarshal(m.Payload, &r); err != nil {
			c.t.Fatal(err)
		}
		rs = append(rs, r)
	}
	return ms, rs
}

func (c checked) hold(home hub.PeerID, id hub.DispatchID) (h hub.Hold, open bool) {
	c.t.Helper()
	c.look(func(rx store.Rx) (err error) { h, open, err = rx.Hold(home, id); return err })
	return h, open
}

func (c checked) attachment(home hub.PeerID, id hub.DispatchID) (a hub.Attachment) {
	c.t.Helper()
	c.look(func(rx store.Rx) (err error) { a, _, err = rx.Attachment(home, id); return err })
	return a
}

// mailbox waits for verdicts as a worker does.
func (c checked) mailbox() *mail.Service {
	return &mail.Service{Store: c.store, Access: dispatch.Access{}, Bus: c.bus, Draining: make(chan struct{})}
}

func (c checked) awaitRun() {
	c.t.Helper()
	select {
	case <-c.v.began:
	case <-time.After(20 * time.Second):
		c.t.Fatal("no verification began")
	}
}
