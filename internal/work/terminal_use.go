package work

import (
	"context"
	"errors"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// maxTyped is how much prompt is pasted into a terminal; a longer one goes by
// file, with one line that names it.
const maxTyped = 8 << 10

// resolveTerminal finds the existing terminal that a start names, in the place
// that p has, and refuses one that cannot be used.
func (s *Service) resolveTerminal(ctx context.Context, p *place) error {
	var t hub.Terminal
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		t, err = usable(rx, p.spec.Terminal, *p)
		return err
	})
	if err != nil {
		return err
	}
	p.terminal, p.agent = t, "report"
	if t.Agent == "" {
		e := hub.Invalid("terminal", "%s runs no agent that would read a prompt", t.ID)
		e.Hint = "attach the Task without input by a low-level dispatch to terminal:" + string(t.ID) + ", or name a terminal of an agent"
		return e
	}
	st, err := s.proven(ctx, t)
	if err != nil {
		return err
	}
	return notBusy(t, st)
}

type terminalRx interface {
	store.TerminalReader
	store.DispatchReader
	store.AttachmentReader
	Peer(hub.PeerID) (hub.Peer, error)
}

// usable reads a terminal that a Dispatch may be attached to: there, in that
// place, not ended, free, and with a keyboard.
func usable(rx terminalRx, id hub.TerminalID, p place) (hub.Terminal, error) {
	t, err := rx.Terminal(id)
	if err != nil {
		return t, err
	}
	if !t.In(p.worktree.ID, p.dir) {
		return t, hub.Errorf(hub.CodeTerminalWorktreeMismatch, "%s is not in %s", t.ID, p.dir)
	}
	if _, err := typable(t); err != nil {
		return t, err
	}
	return t, free(rx, t)
}

// free refuses a terminal that works for a live Dispatch.
func free(rx terminalRx, t hub.Terminal) error {
	busy, err := owned(rx, t)
	if err != nil || !busy {
		return err
	}
	e := hub.Errorf(hub.CodeTerminalBusy, "%s works for %s", t.ID, t.Dispatch)
	e.Hint = "wait for the end of that Dispatch, or stop it, which ends the terminal"
	return e
}

// owned reports whether the Dispatch that was attached to the terminal last is
// live: of this hub by its state, of a paired hub by its capability. An order to stop
// that is not carried out keeps the terminal too, for it will end it.
func owned(rx terminalRx, t hub.Terminal) (bool, error) {
	if t.Dispatch == "" {
		return false, nil
	}
	a, ok, err := rx.Attachment(t.Home, t.Dispatch)
	if err != nil || !ok {
		return false, err
	}
	if a.Fence != nil && !a.Fenced {
		return true, nil
	}
	if t.Home != "" {
		home, err := rx.Peer(t.Home)
		return home.State.Trusted() && !a.ExitDone && !a.Capability.Ended(), err
	}
	d, err := rx.Dispatch(t.Dispatch)
	return !d.State.Final(), err
}

// proven asks the terminal's supervisor, which proves the incarnation.
func (s *Service) proven(ctx context.Context, t hub.Terminal) (hub.TerminalState, error) {
	switch st := s.processOf(ctx, t); st.Liveness {
	case hub.Exited:
		return hub.TerminalState{}, noneLives(t)
	case hub.Unverifiable:
		e := hub.Errorf(hub.CodePreconditionFailed, "the process of %s cannot be verified; nothing is sent to it", t.ID)
		e.Hint = "look at it with terminal show, or use another terminal"
		return hub.TerminalState{}, e
	case hub.Live:
	}
	return s.Terminals.State(ctx, *t.Process)
}

// notBusy refuses a terminal whose process says that it is not idle.
func notBusy(t hub.Terminal, st hub.TerminalState) error {
	if a := st.Activity(); a == hub.ActivityWorking || a == hub.ActivityBlocked {
		e := hub.Errorf(hub.CodeTerminalBusy, "the agent of %s says that it is %s", t.ID, a)
		e.Hint = "wait for it with terminal wait --for idle"
		return e
	}
	return nil
}

// claim gives the terminal to the attempt, if it still can be given. The
// attempts before it have no part in its process any more. It does nothing for
// a start that makes a terminal of its own.
func claim(tx store.Tx, p place, a hub.Attachment) error {
	if p.spec.Terminal == "" {
		return nil
	}
	t, err := usable(tx, p.spec.Terminal, p)
	if err != nil {
		return err
	}
	if p.terminal.Process == nil || *t.Process != *p.terminal.Process {
		return hub.Errorf(hub.CodePreconditionFailed, "%s has another process than when it was looked at", t.ID)
	}
	if err := release(tx, t); err != nil {
		return err
	}
	t.Home, t.Dispatch = a.Home, a.Dispatch
	return tx.SaveTerminal(t)
}

// release ends the part of former attempts in the terminal's process.
func release(tx store.Tx, t hub.Terminal) error {
	former, err := tx.AttachedTo(t.ID)
	for _, f := range former {
		if err == nil && f.Fence != nil && !f.Fenced {
			err = hub.Errorf(hub.CodeTerminalBusy, "%s is about to be ended with %s", t.ID, f.Dispatch)
		}
		if err == nil {
			f.ExitDone = true
			err = tx.SaveAttachment(f)
		}
	}
	return err
}

// takeOver gives an existing terminal's agent its Task: authority first, then
// the prompt, typed once. Nothing is typed again, whatever becomes of it.
func (s *Service) takeOver(ctx context.Context, a hub.Attachment, p place, what brief) (hub.Receipt, hub.EventKind) {
	l, err := s.empower(ctx, &a, p, what)
	if err != nil {
		return s.failed(a, err), hub.EvStartFailed
	}
	if p.silent {
		return s.attached(context.WithoutCancel(ctx), a, p)
	}
	st, err := s.proven(ctx, p.terminal)
	if err == nil {
		err = notBusy(p.terminal, st)
	}
	var text string
	if err == nil {
		text, err = s.typed(l, st)
	}
	if err == nil {
		err = s.stage(ctx, &a, hub.StageInputDelivering, func(a *hub.Attachment) { a.Process = p.terminal.Process })
	}
	if err != nil {
		return s.failed(a, err), hub.EvStartFailed
	}
	if began, err := s.typeInto(ctx, *p.terminal.Process, text, keys["enter"], true); err != nil {
		if !began {
			return s.failed(a, err), hub.EvStartFailed
		}
		return s.unknown(a, err), hub.EvStartLost
	}
	// The agent has its prompt: that is committed whatever has become of the budget.
	if err := s.handedOver(context.WithoutCancel(ctx), &a, readiness(st)); err != nil && !errors.Is(err, errFenced) {
		return s.unknown(a, err), hub.EvStartLost
	}
	return a.Receipt, hub.EvStarted
}

// empower writes the capability to where the terminal's process finds it.
func (s *Service) empower(ctx context.Context, a *hub.Attachment, p place, what brief) (Launch, error) {
	if err := s.stage(ctx, a, hub.StageAuthority, func(a *hub.Attachment) { a.Receipt.Effects = s.reused(*a, p) }); err != nil {
		return Launch{}, err
	}
	private, err := s.Authority.Private(a.Terminal)
	if err != nil {
		return Launch{}, err
	}
	token, _ := s.Authority.Capability(a.Home, a.Dispatch)
	if _, err := s.Authority.WriteFile(*a, token); err != nil {
		return Launch{}, err
	}
	return s.briefing(*a, p.terminal.Agent, private, what), nil
}

// briefing is what an agent is told of its attempt.
func (s *Service) briefing(a hub.Attachment, agent, private string, what brief) Launch {
	return Launch{
		Agent: agent, Terminal: a.Terminal, Dispatch: a.Dispatch, Task: a.Task, Dir: a.Dir, Private: private, Prompt: what.text,
		Checks: a.Checks, MayCoordinate: a.Spec.MayCoordinate, Wave: a.Spec.Wave, Background: what.background,
	}
}

// reused are the resources that a start finds instead of making them.
func (s *Service) reused(a hub.Attachment, p place) []hub.Resource {
	terminal := s.resource("terminal", "reused", string(hub.TerminalAgent), string(a.Terminal))
	terminal.Liveness = hub.Live
	if a.Worktree == "" {
		return []hub.Resource{terminal}
	}
	return []hub.Resource{s.resource("worktree", "reused", "", string(p.worktree.ID)), terminal}
}

// typed is the prompt as it is pasted: whole if it is short and the process
// takes it as one paste, else one line that names its file.
func (s *Service) typed(l Launch, st hub.TerminalState) (string, error) {
	text := plainPaste(s.Console.Preamble(l))
	if st.BracketedPaste && len(text) <= maxTyped {
		return text, nil
	}
	return s.Console.Pointer(l.Private, text)
}

// handedOver commits that the agent has its prompt; source is what it rests on
// that it was ready.
func (s *Service) handedOver(ctx context.Context, a *hub.Attachment, source string) error {
	return s.stage(ctx, a, hub.StageInputAccepted, func(a *hub.Attachment) { s.accepted(a, source) })
}

// readiness is what it rests on that a terminal's agent waits for a prompt.
func readiness(st hub.TerminalState) string {
	if st.Activity() == hub.ActivityIdle {
		return "title"
	}
	return "quiescence"
}

// leaveAlone is the evidence about a stop that comes when the terminal has been
// given on to another Dispatch: that one's worker is not ended for it, so the
// stop is proven by the end of the process alone. ok is false where the process
// is to be ended.
func (s *Service) leaveAlone(ctx context.Context, a hub.Attachment, in hub.Incarnation) (ev hub.StopEvidence, ok bool) {
	t, err := s.terminal(ctx, a.Terminal)
	switch {
	case hub.IsCode(err, hub.CodeTerminalNotFound): // of a hub that kept no record of terminals
		return ev, false
	case err != nil:
		return hub.StopEvidence{Action: hub.ActionUnknown, LastError: err.Error()}, true
	case t.Dispatch == a.Dispatch && t.Home == a.Home:
		return ev, false
	}
	if st, err := s.Terminals.Observe(ctx, in); err == nil && st.Liveness == hub.Exited {
		return hub.StopEvidence{Proved: true, Action: hub.ActionNone, ExitCode: st.ExitCode}, true
	}
	return hub.StopEvidence{Action: hub.ActionUnknown, LastError: "its terminal was given to another Dispatch since and is not touched"}, true
}
