package wave

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

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
