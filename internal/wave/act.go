package wave

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// Pauses between tries of what was refused but may pass.
const (
	minPause = 500 * time.Millisecond
	maxPause = 30 * time.Second
)

// landed is what a start call of the engine came to.
type landed struct {
	index int
	err   error
}

// act makes the calls that a decision asks for. Each runs on its own and ends with
// the hub: the state that asks for it is committed.
func (l *loop) act(d decision) {
	l.stopAgain()
	for _, i := range d.stops {
		l.stop(i)
	}
	for _, i := range d.repeats {
		l.repeat(i)
	}
	for _, i := range d.starts {
		t := &l.tasks[i]
		task := t.Task
		call, err := l.starting(t.WaveRow)
		if err != nil {
			l.s.Log.Error("preparing a start", "wave", l.id, "task", t.Entry.Token, "error", err)
			continue
		}
		t.flying = l.s.Config.Spawn(func(ctx context.Context) {
			err := call(ctx)
			l.poke(func() { l.came = append(l.came, landed{i, err}); l.dirty[task] = struct{}{} })
		})
	}
}

// repeat makes the request of a start again whose outcome is unknown: a peer that
// never got it gets the same bytes, anybody else is only asked.
func (l *loop) repeat(i int) {
	t := &l.tasks[i]
	id, task := t.Dispatch.ID, t.Task
	t.asking = l.s.Config.Spawn(func(ctx context.Context) {
		err := l.s.Work.RepeatStart(ctx, id)
		if err != nil && ctx.Err() == nil {
			l.s.Log.Warn("asking what became of a start", "wave", l.id, "dispatch_id", id, "error", err)
		}
		l.poke(func() { l.asked = append(l.asked, i); l.dirty[task] = struct{}{} })
	})
}

// stop asks the owner of a fenced Dispatch, once in the life of this loop: after
// that its order and its proof go over the relay.
func (l *loop) stop(i int) {
	if _, ok := l.ended[i]; ok {
		return
	}
	l.ended[i] = struct{}{}
	task := l.tasks[i].Task
	q, in, err := stopRequest(l.wave, l.tasks[i].WaveRow)
	if err != nil {
		l.s.Log.Error("preparing a stop", "wave", l.id, "error", err)
		return
	}
	l.s.Config.Spawn(func(ctx context.Context) {
		if err := l.askToStop(ctx, i, q, in); err != nil && ctx.Err() == nil {
			l.s.Log.Warn("stopping a wave's worker", "wave", l.id, "dispatch_id", in.Dispatch, "error", err)
		}
		l.poke(func() { l.sought = append(l.sought, i); l.dirty[task] = struct{}{} })
	})
}

// askToStop makes the call of a stop. One of which it is not even on record that its
// outcome is unknown came to nothing: it is to be made again.
func (l *loop) askToStop(ctx context.Context, i int, q receipt.Request, in work.StopInput) error {
	out, err := l.s.Work.Stop(ctx, q, in)
	if err != nil || out.State == hub.Stopping {
		l.poke(func() { l.uncut = append(l.uncut, i) })
	}
	return err
}

// paused is a stop that is to be asked for again.
type paused struct {
	index int
	until time.Duration
}

// stopAgain has stops asked for again that came to nothing, each after a pause.
func (l *loop) stopAgain() {
	l.mu.Lock()
	uncut := l.uncut
	l.uncut = nil
	l.mu.Unlock()
	for _, i := range uncut {
		l.again = append(l.again, paused{i, l.later("stop of "+l.tasks[i].Entry.Token, 0)})
	}
	l.again = slices.DeleteFunc(l.again, func(p paused) bool {
		if p.until > l.clock.now {
			return false
		}
		delete(l.ended, p.index)
		return true
	})
}

// starting is the call that starts a task: worker start, or dispatch to an attached
// worker, under an id that follows from what the task is behind.
func (l *loop) starting(r hub.WaveRow) (func(context.Context) error, error) {
	w, behind := l.wave, latestID(r)
	on, worker := r.Entry.Target()
	quiet := w.Policy.Mail != hub.MailAll
	ref := &hub.WaveRef{Wave: w.ID, Token: r.Entry.Token}
	session := hub.WaveSession(w.ID, r.Entry.Token)
	if r.Entry.Start == nil {
		in := work.DispatchInput{
			Task: r.Task, To: "worker:" + r.Entry.Worker, RetryOf: behind, Quiet: quiet, NoWait: true, Session: session,
			LivenessSecs: w.Policy.LivenessSecs, Wave: ref, Admit: admitting(w, r.Task),
		}
		if worker == "" {
			return nil, errors.New("a task without a worker was stored")
		}
		q, err := request(w.UID, pass(w), r.Entry.Token, "start", behind, in)
		return func(ctx context.Context) error { return started(l.s.Work.Dispatch(ctx, q, in)) }, err
	}
	spec := hub.StartSpec{
		Worktree: r.Entry.Start.Worktree, Repo: r.Entry.Start.Repo, Name: r.Entry.Start.Name, Base: r.Entry.Start.Base, Parent: r.Entry.Start.Parent,
		Agent: r.Entry.Start.Agent, Setup: r.Entry.Start.Setup, Terminal: hub.TerminalID(r.Entry.Start.Terminal),
		DisplayName: r.Entry.Token, LivenessSecs: w.Policy.LivenessSecs, Session: session, Wave: ref,
	}
	if spec.New() && spec.Name == "" {
		spec.Name = worktreeName(w.ID, r.Entry.Token)
	}
	in := work.StartInput{Task: r.Task, On: on, Spec: spec, RetryOf: behind, Quiet: quiet, NoWait: true, Admit: admitting(w, r.Task)}
	return func(ctx context.Context) error {
		if err := l.s.goOn(ctx, &in, r); err != nil {
			return err
		}
		q, err := request(w.UID, pass(w), r.Entry.Token, "start", behind, in)
		if err != nil {
			return err
		}
		return started(l.s.Work.Start(ctx, q, in))
	}, nil
}

func started(_ hub.Receipt, err error) error { return err }

// admitting refuses, in the transaction that would begin a start, what its wave has
// no use for any more: it was decided on before the wave or the task was ended.
func admitting(decided hub.Wave, id hub.TaskID) func(store.Tx) error {
	return func(tx store.Tx) error {
		w, err := tx.Wave(decided.ID)
		if err != nil {
			return err
		}
		r, ok, err := tx.WaveRow(id)
		if err == nil && (!ok || !admits(decided, w, r)) {
			err = hub.Errorf(hub.CodeTaskNotStartable, "%s is not to be started in the wave %s any more", id, w.ID)
		}
		return err
	}
}

// admits reports whether a start that was decided on is wanted by the wave as it is.
func admits(decided, w hub.Wave, r hub.WaveRow) bool {
	return w.UID == decided.UID && w.Status == hub.WaveRunning && w.Ending == nil && w.Iteration == decided.Iteration &&
		r.Iteration == w.Iteration && r.EndedAs == ""
}

// goOn places a new attempt in the worktree that an attempt before it made: a second
// one of the same name is never made.
func (s *Service) goOn(ctx context.Context, in *work.StartInput, r hub.WaveRow) error {
	if r.Dispatch == nil || !in.Spec.New() {
		return nil
	}
	return s.Store.View(ctx, func(rx store.Rx) error {
		ds, _, err := rx.DispatchList(store.DispatchFilter{Task: r.Task}, store.Page{Limit: 50})
		if err != nil {
			return err
		}
		for _, d := range ds {
			if d.Server.PeerID != r.Dispatch.Server.PeerID {
				continue // somebody tried elsewhere
			}
			began, err := s.Work.Started(rx, d.ID)
			if err != nil {
				return err
			}
			if id := worktreeOf(began); id != "" {
				gone, err := removed(rx, d, id)
				if err == nil && !gone {
					in.Spec = there(in.Spec, id)
				}
				return err
			}
		}
		return nil
	})
}

// removed reports whether somebody has removed a worktree of this hub since. Of
// another hub's it is not known here.
func removed(rx store.RepoReader, d hub.Dispatch, id string) (bool, error) {
	if !d.Local() {
		return false, nil
	}
	_, err := rx.Worktree(hub.WorktreeID(id))
	if hub.IsCode(err, hub.CodeWorktreeNotFoundOnServer) {
		return true, nil
	}
	return false, err
}

// worktreeOf is the worktree that a start made or went on in, "" for none.
func worktreeOf(r hub.Receipt) string {
	for _, e := range slices.Concat(r.Effects, r.Residuals) {
		if e.Kind == "worktree" && (e.Action == "created" || e.Action == "reused") {
			return e.ID
		}
	}
	return ""
}

// there is a spec for the same work in a worktree that there is.
func there(s hub.StartSpec, id string) hub.StartSpec {
	s.Worktree, s.Repo, s.Name, s.Base, s.Parent, s.Setup = "id:"+id, "", "", "", "", ""
	return s
}

// passing tells of a refusal that may pass what the task waits for meanwhile.
func passing(code hub.Code) (reason string, ok bool) {
	switch code {
	case hub.CodeRemoteRuntimeUnavailable, hub.CodeHubDraining:
		return waitPeer, true
	case hub.CodeRateLimited:
		return waitAgent, true
	case hub.CodeWorkerLimit, hub.CodeStorageFull, hub.CodeReceiptsFull:
		return waitLimit, true
	case hub.CodeTerminalBusy:
		return hub.WaitsForWorker, true
	case hub.CodeInternal:
		return waitUnknown, true
	default:
		return "", false
	}
}

// land takes what a start call came to. What it made is read of the store.
func (l *loop) land(c landed) {
	t := &l.tasks[c.index]
	t.flying = false
	e, coded := errors.AsType[*hub.Error](c.err)
	switch to := target(t.Entry); {
	case c.err == nil:
		l.open(to)
	case errors.Is(c.err, context.Canceled): // the hub stops
	case !coded:
		l.s.Log.Warn("starting a wave's task", "wave", l.id, "task", t.Entry.Token, "error", c.err)
		t.hold = hold{waitUnknown, l.later(t.Entry.Token, 0)}
	case e.Code == hub.CodeTaskNotStartable || e.Code == hub.CodeOutcomeUnknown || e.Code == hub.CodeRequestMismatch || e.Code == hub.CodeTaskStateInvalid:
		// somebody was faster, or it is on record: the store says how it stands
		t.hold = hold{waitUnknown, l.later(t.Entry.Token, 0)}
	default:
		l.refused(t, to, e)
	}
}

// refused takes a refusal: one that may pass holds back everything that goes the
// same way, any other ends the task.
func (l *loop) refused(t *task, to string, e *hub.Error) {
	reason, ok := passing(e.Code)
	switch {
	case !ok:
		t.refused, t.told = e.Code, hub.Cut(e.Message, hub.MaxWaveResult)
	case e.Code == hub.CodeTerminalBusy:
		t.hold = hold{reason, l.later(t.Entry.Token, 0)}
	case l.gates[to].until <= l.clock.now:
		l.gates[to] = hold{reason, l.later(to, time.Duration(e.AfterMS)*time.Millisecond)}
	}
}

// later is when to try again: after a pause that doubles, and not before what the
// refusal said.
func (l *loop) later(what string, atLeast time.Duration) time.Duration {
	p := min(max(2*l.pause[what], minPause), maxPause)
	l.pause[what] = p
	return l.clock.now + max(p, min(atLeast, maxPause))
}

// shut holds back what goes the way of an attempt that nobody took on.
func (l *loop) shut(to string, d hub.Dispatch) {
	reason, ok := passing(hub.Code(d.Reason))
	if !ok {
		reason = waitAgent
	}
	if l.gates[to].until <= l.clock.now {
		l.gates[to] = hold{reason, l.later(to, 0)}
	}
}

// open lets starts go to a target again.
func (l *loop) open(to string) { delete(l.gates, to) }

// release tries at once what waited for peers that are reached again.
func (l *loop) release(up map[hub.PeerID]struct{}) {
	for to, h := range l.gates {
		if h.reason == waitPeer {
			delete(l.gates, to)
			delete(l.pause, to)
		}
	}
	for i := range l.tasks {
		t := &l.tasks[i]
		if t.Dispatch == nil {
			continue
		}
		if _, ok := up[t.Dispatch.Server.PeerID]; ok && !t.Dispatch.State.Final() {
			delete(l.ended, i) // an owner that was away is asked again
			t.hold = hold{}
		}
	}
}

// worker is how events name who does a task.
func worker(e hub.WaveEntry) string {
	if e.Start == nil {
		return e.Worker
	}
	if e.Start.On == "" {
		return e.Start.Agent
	}
	return e.Start.Agent + "@" + e.Start.On
}

// worktreeName is the name of the new worktree of a task that does not say one: of
// the wave and the task, in the letters that such names have.
func worktreeName(w hub.WaveID, token string) string {
	plain := slug(string(w) + "-" + token)
	if plain == strings.ToLower(string(w)+"-"+token) && len(plain) <= maxWorktreeName {
		return plain
	}
	mark := "-" + string(receipt.DerivedKey(string(w), token))[len(hub.PrefixRequest):][:6]
	return strings.TrimRight(plain[:min(len(plain), maxWorktreeName-len(mark))], "-._") + mark
}

const maxWorktreeName = 63

// slug is text in the letters of a worktree's name.
func slug(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	return strings.TrimRight(b.String(), "-_")
}
