package work

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// TerminalDispatch is the argument of DispatchTerminal. Without Inject nothing
// is typed: whoever works in the terminal is told by the caller.
type TerminalDispatch struct {
	Task      hub.TaskID
	Terminal  hub.TerminalID
	RetryOf   hub.DispatchID
	Inject    bool // type the preamble once; needs an agent that says it is idle
	DryRun    bool // check everything, change nothing
	Quiet     bool
	TimeoutMS int64
	// LivenessSecs and Wave are as in hub.StartSpec.
	LivenessSecs int64
	Wave         *hub.WaveRef
}

// DispatchTerminal attaches the Task to an existing terminal: ready once the
// attachment is durable. The receipt carries the preamble, which is what the
// worker has to be told. A dry run answers with a receipt without a Dispatch.
func (s *Service) DispatchTerminal(ctx context.Context, r receipt.Request, in TerminalDispatch) (hub.Receipt, error) {
	if in.TimeoutMS < 0 || in.TimeoutMS > MaxWaitTime.Milliseconds() {
		return hub.Receipt{}, hub.Invalid("timeout_ms", "must be 0 to %d", MaxWaitTime.Milliseconds())
	}
	if err := (hub.StartSpec{LivenessSecs: in.LivenessSecs}).CheckLiveness(); err != nil {
		return hub.Receipt{}, err
	}
	if err := in.Wave.Check(); err != nil {
		return hub.Receipt{}, err
	}
	if in.DryRun {
		return s.rehearse(ctx, in)
	}
	out, err := receipt.Long(ctx, s.Gate, r, s.dispatchTo(r, in))
	if err != nil {
		return out, err
	}
	return s.withPreamble(ctx, out)
}

func (s *Service) dispatchTo(r receipt.Request, in TerminalDispatch) receipt.Operation[hub.Receipt] {
	var p place
	var what brief
	return receipt.Operation[hub.Receipt]{
		Class: store.New, Unknown: openStart, Open: left, Observe: s.observeStart,
		Prepare: func(ctx context.Context) (err error) {
			p, what, err = s.attachable(ctx, in)
			return err
		},
		Begin: func(tx store.Tx) (hub.Receipt, error) {
			if err := s.roomHere(tx, p.terminal.Agent); err != nil {
				return hub.Receipt{}, err
			}
			return s.beginLocal(tx, r, StartInput{Task: in.Task, Spec: p.spec, RetryOf: in.RetryOf, Quiet: in.Quiet}, p)
		},
		Perform: func(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
			return s.performOwn(ctx, "", begun, p, what, true)
		},
	}
}

// attachable checks without any effect that the Task may be started and that
// the terminal may be used for it.
func (s *Service) attachable(ctx context.Context, in TerminalDispatch) (p place, what brief, err error) {
	if what, err = s.startableNow(ctx, StartInput{Task: in.Task, RetryOf: in.RetryOf}); err != nil {
		return p, what, err
	}
	if p, err = s.placeOf(ctx, in); err != nil {
		return p, what, err
	}
	st, err := s.proven(ctx, p.terminal)
	if err == nil && in.Inject && st.Activity() != hub.ActivityIdle {
		err = notIdle(p.terminal, st)
	}
	return p, what, err
}

// notIdle refuses to type into what does not say that it waits for a prompt.
func notIdle(t hub.Terminal, st hub.TerminalState) error {
	if err := notBusy(t, st); err != nil {
		return err
	}
	e := hub.Errorf(hub.CodeTerminalBusy, "%s does not say that it is an agent that waits for a prompt", t.ID)
	e.Hint = "attach the Task without typing, and tell its worker the preamble of the receipt"
	return e
}

// placeOf is where a terminal is, as the place of a start.
func (s *Service) placeOf(ctx context.Context, in TerminalDispatch) (p place, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		t, err := rx.Terminal(in.Terminal)
		if err != nil {
			return err
		}
		p = place{
			spec:     hub.StartSpec{Worktree: "path:" + t.Dir, Terminal: t.ID, TimeoutMS: in.TimeoutMS, LivenessSecs: in.LivenessSecs, Wave: in.Wave},
			worktree: hub.Worktree{ID: t.Worktree}, dir: t.Dir, agent: "report", setup: notApplicable, terminal: t, silent: !in.Inject,
		}
		if t.Worktree != "" {
			p.spec.Worktree = "id:" + string(t.Worktree)
		}
		_, err = usable(rx, t.ID, p)
		return err
	})
	return p, err
}

// rehearse is the receipt of a dry run: what would be attached to, and what its
// worker would be told.
func (s *Service) rehearse(ctx context.Context, in TerminalDispatch) (hub.Receipt, error) {
	p, what, err := s.attachable(ctx, in)
	if err != nil {
		return hub.Receipt{}, err
	}
	a := s.newAttachment(p, hub.PeerStart{Task: in.Task, Spec: p.spec}, "", "")
	a.Receipt.Effects, a.Receipt.Warnings = s.reused(a, p), []string{"a dry run: nothing was changed"}
	a.Receipt.Dispatch, a.Receipt.DryRun = "", true
	a.Receipt.Preamble = s.Console.Preamble(s.briefing(a, p.terminal.Agent, "", what))
	return a.Receipt, nil
}

// withPreamble adds the preamble to a receipt. It is made again from what is
// stored for as long as the receipt, and is not stored in it.
func (s *Service) withPreamble(ctx context.Context, r hub.Receipt) (hub.Receipt, error) {
	var a hub.Attachment
	var what brief
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		var ok bool
		if a, ok, err = rx.Attachment("", r.Dispatch); err != nil || !ok {
			return err
		}
		t, err := rx.Task(a.Task)
		if err == nil {
			what, err = s.briefOf(rx, t)
		}
		return err
	})
	if err == nil && a.Dispatch != "" {
		r.Preamble = s.Console.Preamble(s.briefing(a, "", "", what))
	}
	return r, err
}

// attached ends a dispatch that types nothing: its capability is in its file.
func (s *Service) attached(ctx context.Context, a hub.Attachment, p place) (hub.Receipt, hub.EventKind) {
	err := s.stage(ctx, &a, hub.StageAuthority, func(a *hub.Attachment) {
		a.Process, a.Receipt.State = p.terminal.Process, hub.StartReady
	})
	if err != nil {
		return s.failed(a, err), hub.EvStartFailed
	}
	return a.Receipt, hub.EvStarted
}
