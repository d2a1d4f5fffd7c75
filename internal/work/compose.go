package work

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/store"
)

// newAttachment is the owner's record as a start begins.
func (s *Service) newAttachment(p place, in hub.PeerStart, home hub.PeerID, key hub.RequestID) hub.Attachment {
	terminal, agent := in.Spec.Terminal, hub.AgentState{Session: hub.AgentSession{ID: p.resume}}
	if terminal == "" {
		terminal = hub.NewTerminalID()
	} else { // it is the worker of that terminal's agent, in a terminal
		in.Spec.Agent, agent.Mode = p.terminal.Agent, hub.ModeTUI
	}
	return hub.Attachment{
		Dispatch: in.Dispatch, Task: in.Task, Run: in.Run, Home: home, Request: key, Spec: in.Spec,
		Capability: hub.CapActive, Session: in.Spec.SessionOf(in.Dispatch), Depth: in.Depth, Terminal: terminal, Worktree: p.worktree.ID, Dir: p.dir, Completion: p.agent, Checks: in.Checks,
		Agent: agent,
		Receipt: hub.Receipt{
			Run: in.Run, Task: in.Task, Dispatch: in.Dispatch, State: hub.StartStarting, DispatchState: hub.Starting,
			Stage: hub.StageAccepted, Server: hub.Server{Name: s.Name}, Setup: p.setup, TimeoutMS: startTimeout(in.Spec).Milliseconds(),
			Effects: []hub.Resource{}, Residuals: []hub.Resource{}, Defaults: p.defaults, NextCommands: [][]string{}, Warnings: []string{},
		},
	}
}

// errFenced ends a composition whose Dispatch was stopped meanwhile.
var errFenced = errors.New("the Dispatch was stopped while it started")

// stage commits how far a start has come. change sets what the stage adds; it
// is applied to the row as it is now, so a fence that came meanwhile is seen.
func (s *Service) stage(ctx context.Context, a *hub.Attachment, st hub.Stage, change func(*hub.Attachment)) error {
	return s.stageTx(ctx, a, st, func(_ store.Tx, cur *hub.Attachment) error {
		if change != nil {
			change(cur)
		}
		return nil
	})
}

// stageTx is stage for a change with rows of its own; it may run twice.
func (s *Service) stageTx(ctx context.Context, a *hub.Attachment, st hub.Stage, change func(store.Tx, *hub.Attachment) error) error {
	var now hub.Attachment
	err := s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		cur, ok, err := tx.Attachment(a.Home, a.Dispatch)
		if err != nil || !ok {
			return errors.Join(err, missing(a.Dispatch, ok))
		}
		cur.Receipt.Stage = st
		if err := change(tx, &cur); err != nil {
			return err
		}
		now = cur
		return tx.SaveAttachment(cur)
	})
	if err != nil {
		return err
	}
	*a = now
	if a.Fence != nil || a.Capability == hub.CapFenced {
		return errFenced
	}
	return nil
}

func missing(id hub.DispatchID, ok bool) error {
	if ok {
		return nil
	}
	return hub.Errorf(hub.CodeDispatchNotFound, "%s is not attached here", id)
}

// compose makes a worker's effects one after another. It returns the receipt
// and what it proves: EvStarted, EvStartFailed or EvStartLost.
func (s *Service) compose(ctx context.Context, a hub.Attachment, p place, what brief) (hub.Receipt, hub.EventKind) {
	release, err := s.hands.take(ctx, attempt{a.Home, a.Dispatch})
	if err != nil {
		return s.failed(a, err), hub.EvStartFailed
	}
	defer release()
	budget, cancel := s.budget(ctx, a)
	defer cancel()
	if p.spec.Terminal != "" {
		if err := s.takeBaseline(budget, a); err != nil {
			return s.failed(a, err), hub.EvStartFailed
		}
		return s.takeOver(budget, a, p, what)
	}
	if err := s.makeWorktree(budget, &a, p); err != nil {
		s.afterFailure(ctx, &a, p)
		return s.failed(a, err), hub.EvStartFailed
	}
	waited, err := s.setUp(budget, &a, p)
	if errors.Is(err, errSetupRuns) {
		return s.unknown(a, err), hub.EvStartLost
	}
	if err != nil {
		return s.failed(a, errors.Join(err, s.withoutSetup(ctx, &a))), hub.EvStartFailed
	}
	if waited { // the setup's time is not the agent's
		fresh, cancel := s.budget(ctx, a)
		defer cancel()
		budget = fresh
	}
	if err := s.takeBaseline(budget, a); err != nil {
		return s.failed(a, err), hub.EvStartFailed
	}
	plan, err := s.attach(budget, &a, what)
	if err != nil {
		return s.failed(a, err), hub.EvStartFailed
	}
	return s.launch(budget, &a, plan)
}

// budget is a start's own time, counted from now.
func (s *Service) budget(ctx context.Context, a hub.Attachment) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(a.Receipt.TimeoutMS)*time.Millisecond)
}

func (s *Service) makeWorktree(ctx context.Context, a *hub.Attachment, p place) error {
	if !p.spec.New() {
		return s.stage(ctx, a, hub.StageAccepted, func(a *hub.Attachment) {
			if a.Worktree != "" {
				a.Receipt.Effects = []hub.Resource{s.resource("worktree", "reused", "", string(a.Worktree))}
			}
		})
	}
	attempted := s.attempted(p.newWorktree())
	if err := s.stage(ctx, a, hub.StageWorktreeCreating, func(a *hub.Attachment) { a.Receipt.Residuals = attempted }); err != nil {
		return err
	}
	w, err := s.Git.Create(ctx, p.newWorktree())
	if err != nil {
		return err
	}
	return s.keepWorktree(context.WithoutCancel(ctx), a, w)
}

// attempted is what a creation that is cut off may leave: the state of the
// worktree is its path.
func (s *Service) attempted(n NewWorktree) []hub.Resource {
	path, branch := s.Git.Where(n)
	folder := s.resource("worktree", "attempted", "", string(n.ID))
	folder.State = path
	return []hub.Resource{folder, s.resource("branch", "attempted", "", branch)}
}

// keepWorktree commits the worktree's row together with its stage.
func (s *Service) keepWorktree(ctx context.Context, a *hub.Attachment, made hub.Worktree) error {
	return s.stageTx(ctx, a, hub.StageWorktreeCreated, func(tx store.Tx, a *hub.Attachment) error {
		w, err := keepMade(tx, made)
		a.Dir = w.Path
		a.Receipt.Effects = s.madeResources(w)
		a.Receipt.Residuals = a.Receipt.Effects
		return err
	})
}

func (s *Service) resource(kind, action, role, id string) hub.Resource {
	r := hub.Resource{Kind: kind, Action: action, ID: id, Server: s.Name}
	if role != "" {
		r.Role = &role
	}
	return r
}

// attach puts the worker's authority and input in place, ready to launch.
func (s *Service) attach(ctx context.Context, a *hub.Attachment, what brief) (Planned, error) {
	if err := s.stage(ctx, a, hub.StageAuthority, nil); err != nil {
		return Planned{}, err
	}
	private, err := s.Authority.Private(a.Terminal)
	if err != nil {
		return Planned{}, err
	}
	token, _ := s.Authority.Capability(a.Home, a.Dispatch)
	file, err := s.Authority.WriteFile(*a, token)
	if err != nil {
		return Planned{}, err
	}
	l := s.briefing(*a, a.Spec.Agent, private, what)
	l.Mode, l.Resume, l.Session, l.Env = a.Spec.Mode, a.Agent.Session.ID, id.UUID(), s.workerEnv(*a, file)
	return s.Agents.Plan(l)
}

// workerEnv is ownEnv of a process that is made for a Dispatch.
func (s *Service) workerEnv(a hub.Attachment, file string) map[string]string {
	env := s.ownEnv(a.Terminal, file)
	if w := a.Spec.Wave; w != nil {
		env["WAVEHUB_WAVE_ID"], env["WAVEHUB_WAVE_TASK_ID"] = string(w.Wave), w.Token
	}
	return env
}

// launch starts the process; the supervisor's durable record is the proof that
// it has its input, unless that is pasted.
func (s *Service) launch(ctx context.Context, a *hub.Attachment, plan Planned) (hub.Receipt, hub.EventKind) {
	if err := s.announce(ctx, a, plan); err != nil {
		a.Receipt.Residuals = a.Receipt.Effects
		return s.failed(*a, err), hub.EvStartFailed
	}
	in, err := s.Terminals.Launch(ctx, plan.Spec)
	if hub.IsCode(err, hub.CodeOutcomeUnknown) {
		return s.unknown(*a, err), hub.EvStartLost
	}
	if err != nil {
		a.Receipt.Residuals = a.Receipt.Effects
		return s.failed(*a, err), hub.EvStartFailed
	}
	// The process runs: that is committed whatever has become of the budget.
	if err := s.launched(context.WithoutCancel(ctx), a, in); err != nil && !errors.Is(err, errFenced) {
		return s.unknown(*a, err), hub.EvStartLost
	}
	s.attend(in)
	if plan.Paste != nil && a.Fence == nil {
		return s.pasteFirst(ctx, a, in, string(plan.Paste))
	}
	return a.Receipt, hub.EvStarted
}

// announce commits what is about to be launched.
func (s *Service) announce(ctx context.Context, a *hub.Attachment, plan Planned) error {
	stage := hub.StageInputDelivering
	if plan.Paste != nil {
		stage = hub.StageAuthority // its input comes later
	}
	warned := append(slices.Clone(a.Receipt.Warnings), plan.Warnings...)
	err := s.stage(ctx, a, stage, func(a *hub.Attachment) { a.Agent, a.Receipt.Warnings = agentOf(plan), warned })
	if err != nil {
		return err
	}
	terminal := s.resource("terminal", "attempted", "agent", string(a.Terminal))
	terminal.Liveness = hub.Unverifiable
	return s.stageTx(ctx, a, hub.StageTerminalCreating, func(tx store.Tx, a *hub.Attachment) error {
		a.Receipt.Residuals = append(residuals(*a), terminal)
		return putTerminal(tx, *a, plan.Spec)
	})
}

// pasteFirst gives an agent that was launched without its prompt that prompt, once,
// when it is idle. Nothing is pasted again, whatever becomes of it.
func (s *Service) pasteFirst(ctx context.Context, a *hub.Attachment, in hub.Incarnation, text string) (hub.Receipt, hub.EventKind) {
	w := waiter{s: s, t: hub.Terminal{ID: a.Terminal}, in: in}
	ready, err := w.until(ctx, ctx, w.idle)
	if err == nil && !ready.Met {
		err = errors.New("the process ended before it was ready for its prompt")
	}
	if err == nil {
		err = s.stage(ctx, a, hub.StageInputDelivering, nil)
	}
	if err == nil {
		_, err = s.typeInto(ctx, in, text, keys["enter"], true)
	}
	if err == nil {
		err = s.handedOver(context.WithoutCancel(ctx), a, ready.Source)
	}
	if err != nil && !errors.Is(err, errFenced) {
		return s.unknown(*a, err), hub.EvStartLost
	}
	return a.Receipt, hub.EvStarted
}

// agentOf is what is known of an agent before it runs.
func agentOf(plan Planned) hub.AgentState {
	mode := hub.ModeHeadless
	if plan.Spec.PTY != nil {
		mode = hub.ModeTUI
	}
	return hub.AgentState{Mode: mode, Stream: plan.Stream, Paste: plan.Paste != nil, Session: plan.Session}
}

// residuals copies, for a closure may run twice.
func residuals(a hub.Attachment) []hub.Resource {
	return append([]hub.Resource{}, a.Receipt.Effects...)
}

// launched commits that the process runs and, unless that is pasted, has its input.
func (s *Service) launched(ctx context.Context, a *hub.Attachment, in hub.Incarnation) error {
	stage := hub.StageInputAccepted
	if a.Agent.Paste {
		stage = hub.StageTerminalCreated
	}
	return s.stageTx(ctx, a, stage, func(tx store.Tx, a *hub.Attachment) error {
		a.Process = &in
		terminal := s.resource("terminal", "created", "agent", string(a.Terminal))
		terminal.Liveness = hub.Live
		a.Receipt.Effects, a.Receipt.Residuals = append(residuals(*a), terminal), []hub.Resource{}
		if !a.Agent.Paste {
			s.accepted(a, "launch")
		}
		_, err := startedTerminal(tx, a.Terminal, in)
		return err
	})
}

// accepted completes the receipt of a start whose worker has its input.
func (s *Service) accepted(a *hub.Attachment, source string) {
	input := s.resource("dispatch_input", "delivered", string(hub.TerminalAgent), string(a.Terminal))
	input.State = "accepted"
	a.Receipt.Effects = append(residuals(*a), input)
	a.Receipt.State, a.Receipt.ReadinessSource = hub.StartReady, source
}

// putTerminal records the terminal that is about to be made for a worker.
func putTerminal(tx store.Tx, a hub.Attachment, spec hub.LaunchSpec) error {
	t := hub.Terminal{
		ID: a.Terminal, Role: hub.TerminalAgent, Worktree: a.Worktree, Dir: a.Dir, Agent: a.Spec.Agent, Name: a.Spec.DisplayName,
		Home: a.Home, Dispatch: a.Dispatch, CreatedAt: tx.Now(),
	}
	if spec.PTY != nil {
		t.Size = *spec.PTY
	}
	return tx.PutTerminal(t)
}

// endUnstarted records that nothing was started in the terminal of a start that
// failed. One that the start did not make goes on.
func endUnstarted(tx store.Tx, a hub.Attachment) error {
	t, err := tx.Terminal(a.Terminal)
	if hub.IsCode(err, hub.CodeTerminalNotFound) {
		return nil // it failed before
	}
	if err != nil || t.Process != nil || a.Spec.Terminal != "" {
		return err
	}
	_, err = endTerminal(tx, a.Terminal, hub.ProcessState{})
	return err
}

// failed completes the receipt of a start of which nothing runs.
func (s *Service) failed(a hub.Attachment, err error) hub.Receipt {
	r := a.Receipt
	r.State, r.FailedStage, r.LastError = hub.StartFailed, r.Stage, err.Error()
	r.NextCommands = [][]string{{"wavehub", "worker", "show", string(a.Dispatch)}}
	return r
}

// unknown completes the receipt of a start that may have had its effect.
func (s *Service) unknown(a hub.Attachment, err error) hub.Receipt {
	r := a.Receipt
	r.State, r.FailedStage, r.LastError = hub.StartOutcomeUnknown, r.Stage, err.Error()
	r.Residuals = mayBeLeft(r)
	r.NextCommands = inspectCommands(a.Dispatch)
	return r
}

// mayBeLeft is what a start may have left behind that nothing is proven of: all
// that it has made or begun to make. What a terminal was when it was made says
// nothing of now.
func mayBeLeft(r hub.Receipt) []hub.Resource {
	out := append([]hub.Resource{}, r.Residuals...)
	for _, e := range r.Effects {
		if e.Kind == "dispatch_input" || listed(out, e) {
			continue
		}
		if e.Kind == "terminal" {
			e.Liveness = hub.Unverifiable
		}
		out = append(out, e)
	}
	return out
}

func inspectCommands(id hub.DispatchID) [][]string {
	return [][]string{
		{"wavehub", "worker", "show", string(id)},
		{"wavehub", "worker", "stop", string(id)},
		{"wavehub", "worker", "abandon", string(id)},
	}
}

// endOwn records how the owner's start ended: on the attachment, and for a
// local Dispatch also in the home's record, in one transaction. answered says
// that a call returns the outcome.
func (s *Service) endOwn(ctx context.Context, home hub.PeerID, r hub.Receipt, ev hub.EventKind, answered bool) (hub.Receipt, error) {
	out := r
	err := s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		a, ok, err := tx.Attachment(home, r.Dispatch)
		if err != nil || !ok {
			return errors.Join(err, missing(r.Dispatch, ok))
		}
		r.NoteSetup(a.Receipt.Setup.Later(r.Setup)) // it may have ended meanwhile
		a.Receipt, out = r, r
		if ev == hub.EvStartFailed {
			a.Capability, a.ExitDone = hub.CapFenced, true
			if a.Spec.Terminal != "" {
				a.Process = nil // nothing was typed: it has no part in it
			}
			if err := endUnstarted(tx, a); err != nil {
				return err
			}
		}
		if err := tx.SaveAttachment(a); err != nil {
			return err
		}
		if home != "" {
			return closeFor(tx, a)
		}
		out, err = dispatch.EndStart(tx, r.Dispatch, dispatch.Start{Event: ev, Reason: startReason(r), Receipt: r, Answered: answered})
		return err
	})
	return out, err
}

// closeFor brings the record of a home's request at this hub up to date.
func closeFor(tx store.Tx, a hub.Attachment) error {
	home, err := tx.Peer(a.Home)
	if err != nil {
		return err
	}
	return dispatch.CloseStart(tx, hub.Principal{Kind: hub.PeerKey, ID: home.Lineage}, a.Request, a.Receipt)
}

// startReason is why a start did not become ready, for the Dispatch.
func startReason(r hub.Receipt) string {
	switch {
	case r.State == hub.StartReady:
		return ""
	case r.Cut && r.Stage == hub.StageAccepted && len(r.Residuals) == 0:
		return hub.ReasonNoEffect
	case r.Cut:
		return hub.ReasonStartCut
	}
	return "start:" + string(r.Stage)
}
