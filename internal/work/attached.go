package work

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// DispatchInput is the argument of Dispatch. To is worker:NAME[@peer] or
// terminal:ID; Session names the session that all attempts share, "" for the
// Dispatch's own.
type DispatchInput struct {
	Task      hub.TaskID
	To        string
	RetryOf   hub.DispatchID
	Quiet     bool
	Inject    bool
	DryRun    bool
	NoWait    bool
	TimeoutMS int64
	Session   string
	// LivenessSecs and Wave are as in hub.StartSpec.
	LivenessSecs int64
	Wave         *hub.WaveRef
	// Admit is as in StartInput.
	Admit func(store.Tx) error `json:"-"`
}

// Dispatch gives the Task to a worker or terminal that there is. It returns when
// that has taken it up, or, after the time of the call, with state starting: it is
// committed and waits. Nothing about it is unknown.
func (s *Service) Dispatch(ctx context.Context, r receipt.Request, in DispatchInput) (hub.Receipt, error) {
	kind, name, _ := strings.Cut(in.To, ":")
	switch {
	case kind == "terminal" && name != "":
		return s.DispatchTerminal(ctx, r, TerminalDispatch{
			Task: in.Task, Terminal: hub.TerminalID(name), RetryOf: in.RetryOf, Inject: in.Inject, DryRun: in.DryRun, Quiet: in.Quiet, TimeoutMS: in.TimeoutMS,
			LivenessSecs: in.LivenessSecs, Wave: in.Wave,
		})
	case kind != "worker" || name == "":
		return hub.Receipt{}, hub.Invalid("to", "must be worker:NAME, worker:NAME@PEER or terminal:ID")
	case in.Inject:
		return hub.Receipt{}, hub.Invalid("inject", "is for terminals: an attached worker reads its mailbox")
	}
	return s.toWorker(ctx, r, in, name)
}

func (s *Service) toWorker(ctx context.Context, r receipt.Request, in DispatchInput, name string) (hub.Receipt, error) {
	worker, peer, _ := strings.Cut(name, "@")
	start := StartInput{
		Task: in.Task, On: peer, RetryOf: in.RetryOf, Quiet: in.Quiet, NoWait: in.NoWait, Admit: in.Admit,
		Spec: hub.StartSpec{Worker: worker, Session: in.Session, TimeoutMS: in.TimeoutMS, LivenessSecs: in.LivenessSecs, Wave: in.Wave},
	}
	if err := start.Spec.Check(peer != ""); err != nil {
		return hub.Receipt{}, err
	}
	if strings.Contains(name, "@") && peer == "" || worker == "" {
		return hub.Receipt{}, hub.Invalid("to", "must be worker:NAME, worker:NAME@PEER or terminal:ID")
	}
	if in.DryRun {
		return s.rehearseWorker(ctx, start)
	}
	op := s.localDispatch(r, start)
	if peer != "" {
		op = s.remoteDispatch(r, start)
	}
	op.Class, op.Unknown, op.Open = store.New, openStart, func(begun hub.Receipt) hub.Receipt { return begun }
	return receipt.Long(ctx, s.Gate, r, op)
}

func (s *Service) localDispatch(r receipt.Request, in StartInput) receipt.Operation[hub.Receipt] {
	return receipt.Operation[hub.Receipt]{
		Begin: in.admitted(func(tx store.Tx) (hub.Receipt, error) { return s.beginAttached(tx, r, in) }),
		Perform: func(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
			if in.NoWait {
				return begun, nil
			}
			return s.untilTaken(ctx, begun)
		},
		Observe: s.observeStart,
	}
}

func (s *Service) remoteDispatch(r receipt.Request, in StartInput) receipt.Operation[hub.Receipt] {
	op := s.remoteStart(r, in)
	send := op.Perform
	op.Perform = func(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
		sent, err := send(ctx, begun)
		if err != nil || in.NoWait || !sent.Queued() {
			return sent, err
		}
		return s.untilTaken(ctx, sent)
	}
	if in.NoWait {
		op.Perform = s.later(op.Perform)
	}
	return op
}

// rehearseWorker refuses what Dispatch would refuse, and says what it would do. It
// changes nothing, here or at a peer, and makes no receipt.
func (s *Service) rehearseWorker(ctx context.Context, in StartInput) (hub.Receipt, error) {
	if _, err := s.startableNow(ctx, in); err != nil {
		return hub.Receipt{}, err
	}
	start := hub.PeerStart{Dispatch: "DISPATCH", Task: in.Task, Spec: in.Spec}
	server, w := hub.Server{Name: s.Name}, hub.Worker{Name: in.Spec.Worker}
	var err error
	if in.On != "" {
		var peer hub.Peer
		var body hub.PeerStart
		peer, err = s.probe(ctx, in, &body)
		server, start.Run = hub.Server{PeerID: peer.ID, Name: peer.Name}, body.Run
	} else {
		err = s.Store.View(ctx, func(rx store.Rx) error {
			t, err := rx.Task(in.Task)
			if err == nil {
				start.Run = t.Run
				w, err = dispatch.TakesWork(rx, in.Spec.Worker)
			}
			return err
		})
	}
	if err != nil {
		return hub.Receipt{}, err
	}
	out := s.attachedTo(w, start, "", "").Receipt
	out.Server, out.Dispatch, out.Stage, out.DryRun = server, "", hub.StageAccepted, true
	out.Effects, out.NextCommands = []hub.Resource{}, [][]string{}
	out.Warnings = []string{"this was a dry run: nothing has been changed"}
	return out, nil
}

// attempts is the number of the Task's next Dispatch, from 1.
func attempts(rx store.DispatchReader, id hub.TaskID) (int, error) {
	n, p := 1, store.Page{Limit: 200}
	for {
		ds, next, err := rx.DispatchList(store.DispatchFilter{Task: id}, p)
		n += len(ds)
		if p.Before = next; err != nil || next == 0 {
			return n, err
		}
	}
}

// attachedTo is the owner's record of a Dispatch that is given to a worker: its
// start is under way until the worker takes it up.
func (s *Service) attachedTo(w hub.Worker, in hub.PeerStart, home hub.PeerID, key hub.RequestID) hub.Attachment {
	a := hub.Attachment{
		Dispatch: in.Dispatch, Task: in.Task, Run: in.Run, Home: home, Request: key, Spec: in.Spec, Capability: hub.CapActive,
		Completion: "report", Worker: w.ID, Session: in.Spec.SessionOf(in.Dispatch), StartMail: hub.NewMessageID(),
	}
	input := s.resource("dispatch_input", "delivered", "agent", string(a.StartMail))
	input.State = "queued"
	a.Receipt = hub.Receipt{
		Run: in.Run, Task: in.Task, Dispatch: in.Dispatch, State: hub.StartStarting, DispatchState: hub.Starting,
		Stage: hub.StageInputDelivering, Server: hub.Server{Name: s.Name}, Setup: notApplicable, TimeoutMS: startTimeout(in.Spec).Milliseconds(),
		Effects: []hub.Resource{input}, Residuals: []hub.Resource{}, Defaults: []hub.Default{}, NextCommands: inspectCommands(in.Dispatch),
		Warnings: selfGraded(in), Worker: w.Name, Preamble: s.Agents.AttachedPreamble(in.Task, in.Dispatch, in.Checks, in.Spec.Wave),
	}
	return a
}

// selfGraded warns whoever gives a Task with a check to an attached worker.
func selfGraded(in hub.PeerStart) []string {
	if in.Spec.Worker == "" || in.VerifyCmd == "" {
		return []string{}
	}
	return []string{"self_graded: no hub verifies what an attached worker has done; its own verify_result counts"}
}

// startMail is the session_start of an attachment.
func (s *Service) startMail(a hub.Attachment, in hub.PeerStart) hub.SessionStart {
	report := func(outcome string) []string {
		return []string{
			"wavehub", "send", "--type", "worker_done", "--task-id", string(a.Task), "--dispatch-id", string(a.Dispatch),
			"--outcome", outcome, "--subject", outcome, "--body", "what was done, or why not",
		}
	}
	out := hub.SessionStart{
		Action: hub.ActionStart, Session: a.Session, Dispatch: a.Dispatch, Task: a.Task, Run: a.Run, Title: in.Title, Prompt: in.Background.Behind(in.Prompt),
		WaveMark: a.Spec.Wave.Mark(), Background: in.Background,
		Checks: in.Checks, Preamble: a.Receipt.Preamble, Attempt: max(in.Attempt, 1), RetryOf: in.RetryOf,
		Commands: map[string][]string{
			"done": report("succeeded"), "failed": report("failed"), "cancelled": report("cancelled"),
			"status": {"wavehub", "send", "--type", "status", "--dispatch-id", string(a.Dispatch), "--subject", "short", "--body", "more"},
		},
	}
	if out.Background != nil {
		out.SpecBytes = len(in.Prompt)
	}
	return out
}

func (s *Service) beginAttached(tx store.Tx, r receipt.Request, in StartInput) (hub.Receipt, error) {
	t, err := tx.Task(in.Task)
	if err != nil {
		return hub.Receipt{}, err
	}
	if err := dispatch.Startable(tx, t, in.RetryOf); err != nil {
		return hub.Receipt{}, err
	}
	w, err := dispatch.TakesWork(tx, in.Spec.Worker)
	if err != nil {
		return hub.Receipt{}, err
	}
	n, err := attempts(tx, t.ID)
	if err != nil {
		return hub.Receipt{}, err
	}
	background, err := s.backgroundOf(tx, t)
	if err != nil {
		return hub.Receipt{}, err
	}
	start := hub.PeerStart{
		Dispatch: hub.NewDispatchID(), Task: t.ID, Run: t.Run, Title: t.Title, Prompt: t.Spec, Spec: in.Spec, RetryOf: in.RetryOf, Attempt: n, Checks: t.Checks(), Background: background,
	}
	a := s.attachedTo(w, start, "", r.Key)
	_, err = dispatch.Begin(tx, dispatch.Attempt{
		ID: start.Dispatch, Task: in.Task, RetryOf: in.RetryOf, Server: hub.Server{Name: s.Name},
		Request: r.Key, Quiet: in.Quiet, Receipt: a.Receipt,
	})
	if err != nil {
		return hub.Receipt{}, err
	}
	return a.Receipt, dispatch.AttachWorker(tx, a, s.startMail(a, start))
}

// probeAttached validates a peer's start of an attached worker. The verb start is
// all that has to be granted: the worker works where it is.
func (s *Service) probeAttached(ctx context.Context, home hub.Peer, in hub.PeerStart) (hub.Probe, error) {
	if err := s.addressed(home, in); err != nil {
		return hub.Probe{}, err
	}
	err := s.Store.View(ctx, func(rx store.Rx) error {
		now, err := homeNow(rx, home.ID)
		if err != nil {
			return err
		}
		_, err = dispatch.TakesWork(rx, in.Spec.Worker)
		return errors.Join(mayStart(now.Grants), err, roomGranted(rx, now))
	})
	return hub.Probe{Defaults: []hub.Default{}, Warnings: []string{}}, err
}

// attachFor gives a home's Dispatch to an attached worker: one transaction. The
// home learns by an item that the worker has taken it up.
func (s *Service) attachFor(ctx context.Context, r receipt.Request, home hub.Peer, in hub.PeerStart) (hub.Receipt, error) {
	if err := s.addressed(home, in); err != nil {
		return hub.Receipt{}, err
	}
	return receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (hub.Receipt, error) {
		if err := attachable(tx, home, in.Dispatch); err != nil {
			return hub.Receipt{}, err
		}
		now, err := homeNow(tx, home.ID)
		if err != nil {
			return hub.Receipt{}, err
		}
		w, err := dispatch.TakesWork(tx, in.Spec.Worker)
		if err := errors.Join(offered(now, in), mayStart(now.Grants), err, roomGranted(tx, now)); err != nil {
			return hub.Receipt{}, err
		}
		a := s.attachedTo(w, in, home.ID, r.Key)
		return a.Receipt, dispatch.AttachWorker(tx, a, s.startMail(a, in))
	})
}

// queued records an owner's answer that the start is committed and waits.
func (s *Service) queued(ctx context.Context, d hub.Dispatch, begun, got hub.Receipt) (out hub.Receipt, err error) {
	r := ownersReceipt(got, begun, d)
	r.Mutation = begun.Mutation
	err = s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		out, err = dispatch.RecordQueued(tx, d.ID, r)
		return err
	})
	out.Mutation = begun.Mutation
	return out, err
}

// untilTaken waits for the worker to take the Dispatch up, as long as the call may
// take. Whatever it returns is how things stand.
func (s *Service) untilTaken(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicDispatch), string(begun.Dispatch))
	defer cancel()
	limit := time.NewTimer(time.Duration(begun.TimeoutMS) * time.Millisecond)
	defer limit.Stop()
	for {
		rec, err := s.recorded(ctx, begun.Dispatch)
		if ctx.Err() != nil {
			return begun, nil // the hub stops; the Dispatch goes on waiting
		}
		if err != nil {
			return begun, err
		}
		rec.Receipt.Mutation = begun.Mutation
		if rec.Dispatch.State != hub.Starting {
			return notTaken(rec), nil
		}
		select {
		case <-woken:
		case <-limit.C:
			return rec.Receipt, nil
		case <-ctx.Done():
			return rec.Receipt, nil
		}
	}
}

// notTaken is the receipt of a start that has ended. One that was stopped before
// the worker took it up has failed.
func notTaken(rec Shown) hub.Receipt {
	r := rec.Receipt
	if st := rec.Dispatch.State; r.Queued() && (st.Final() || st.Fenced()) {
		r.State, r.FailedStage, r.LastError = hub.StartFailed, r.Stage, "the Dispatch was "+string(st)+" before the worker took it up"
	}
	return r
}

// endAttached waits for the worker's own word that it has stopped. What it was
// never handed is proven never to have started.
func (s *Service) endAttached(ctx context.Context, a hub.Attachment) hub.StopEvidence {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicDispatch), string(a.Dispatch))
	defer cancel()
	for {
		never := false
		err := s.Store.View(ctx, func(rx store.Rx) (err error) {
			var ok bool
			if a, ok, err = rx.Attachment(a.Home, a.Dispatch); err != nil || !ok {
				return errors.Join(err, missing(a.Dispatch, ok))
			}
			never, err = dispatch.NeverBegun(rx, a)
			return err
		})
		switch {
		case err == nil && (never || a.Fenced || a.ExitDone):
			return hub.StopEvidence{Proved: true, Action: hub.ActionNone}
		case err != nil && ctx.Err() == nil:
			return hub.StopEvidence{Action: hub.ActionUnknown, LastError: err.Error()}
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return hub.StopEvidence{Action: hub.ActionUnknown, LastError: "the attached worker has not said that it has stopped"}
		}
	}
}
