package wave

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// AddTask adds a task to a pending wave. The whole is judged again: if anything is
// wrong with it, it is plan_invalid and nothing is changed.
func (s *Service) AddTask(ctx context.Context, r receipt.Request, id hub.WaveID, e hub.WaveEntry) (Created, error) {
	add := editing{token: e.Token, declare: func(es []hub.WaveEntry) ([]hub.WaveEntry, error) {
		return append(slices.Clone(es), e), roomFor(len(es) + 1)
	}}
	return s.insisting(ctx, id, func() (Created, error) {
		known, w, err := s.found(ctx, r, id)
		if err == nil && !known {
			err = pendingOnly(w)
		}
		if err != nil {
			return Created{}, err
		}
		return s.edit(ctx, r, id, known, add)
	})
}

// UpdateTask changes a task. Of a pending wave everything may be changed, and the
// whole is judged again; of a running one the status, and the goal for attempts that
// are still to come. A task that has ended stays as it ended.
func (s *Service) UpdateTask(ctx context.Context, r receipt.Request, id hub.WaveID, token string, in TaskUpdate) (Created, error) {
	if err := in.check(); err != nil {
		return Created{}, err
	}
	return s.insisting(ctx, id, func() (Created, error) {
		known, w, err := s.found(ctx, r, id)
		switch {
		case err != nil:
			return Created{}, err
		case known && in.Status == "", w.Status == hub.WavePending:
			return s.edit(ctx, r, id, known, in.editing(id, token))
		case !known && (in.declares() || w.Status.Final()):
			return Created{}, pendingOnly(w)
		case in.Status != "":
			return s.updateRunning(ctx, r, id, token, in)
		}
		return s.rephrase(ctx, r, id, token, in)
	})
}

func (in TaskUpdate) check() error {
	switch {
	case in.Status != "" && !in.Status.Final():
		return hub.Invalid("status", "must be completed, failed or cancelled")
	case in.Status == "" && in.Goal == "" && !in.declares():
		return hub.Invalid("status", "say what to change: a status, or what is declared of the task")
	case in.Status == "" && in.Reason != "":
		return hub.Invalid("reason", "is that of a status, and none is given")
	}
	return hub.CheckText("reason", in.Reason, hub.MaxWaveReason)
}

// declares reports whether in changes more than text: what a running wave keeps.
func (in TaskUpdate) declares() bool {
	return in.Worker != "" || in.Start != nil || in.Dependencies != nil || in.WriteScope != nil || in.ReadScope != nil ||
		in.Workspace != nil || in.HandoffPath != nil || in.VerifyCmd != nil || in.TimeoutSecs != nil
}

// editing is one change of a pending wave: of what is declared, nil for nothing,
// and of the status of a task.
type editing struct {
	token   string
	declare func([]hub.WaveEntry) ([]hub.WaveEntry, error)
	status  hub.WaveStatus
	reason  string
}

func (in TaskUpdate) editing(id hub.WaveID, token string) editing {
	ed := editing{token: token, status: in.Status, reason: in.Reason}
	if in.Goal != "" || in.declares() {
		ed.declare = func(es []hub.WaveEntry) ([]hub.WaveEntry, error) {
			i := slices.IndexFunc(es, func(e hub.WaveEntry) bool { return e.Token == token })
			if i < 0 {
				return nil, hub.NoWaveTask(id, token)
			}
			es = slices.Clone(es)
			es[i] = in.applied(es[i])
			return es, nil
		}
	}
	return ed
}

// applied is e with what in says. A worker takes the place of a start and a start
// that of a worker.
func (in TaskUpdate) applied(e hub.WaveEntry) hub.WaveEntry {
	e.Goal = cmp.Or(in.Goal, e.Goal)
	if in.Worker != "" || in.Start != nil {
		e.Worker, e.Start = in.Worker, in.Start
	}
	set(&e.Dependencies, in.Dependencies)
	set(&e.ReadScope, in.ReadScope)
	set(&e.Workspace, in.Workspace)
	set(&e.HandoffPath, in.HandoffPath)
	set(&e.VerifyCmd, in.VerifyCmd)
	set(&e.TimeoutSecs, in.TimeoutSecs)
	if in.WriteScope != nil {
		e.WriteScope = append([]string{}, *in.WriteScope...) // empty says that it writes nothing
	}
	return e
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// errMoved says that the wave was changed between the look and the transaction.
var errMoved = errors.New("the wave has been changed meanwhile")

// maxTries bounds how often an edit looks again. Each time somebody else's change
// has been made.
const maxTries = 100

// insisting does fn again for as long as others are faster, and completes its
// answer.
func (s *Service) insisting(ctx context.Context, id hub.WaveID, fn func() (Created, error)) (Created, error) {
	for range maxTries {
		out, err := fn()
		if err == nil {
			return s.recalled(ctx, out)
		}
		if !errors.Is(err, errMoved) {
			return Created{}, err
		}
	}
	e := hub.Errorf(hub.CodePreconditionFailed, "the wave %s is being changed all the time", id)
	e.Hint = "repeat the request once the others have ended"
	return Created{}, e
}

// found is one look at whether r is on record, and at the wave.
func (s *Service) found(ctx context.Context, r receipt.Request, id hub.WaveID) (known bool, w hub.Wave, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if _, known, err = receipt.Find(rx, r); err != nil {
			return err
		}
		if w, err = rx.Wave(id); err != nil || known {
			return err
		}
		return run.Operates(rx, r.Principal, w.Run)
	})
	return known, w, err
}

// rephrase changes the goal of a task of a running wave: attempts that begin later
// are given it.
func (s *Service) rephrase(ctx context.Context, r receipt.Request, id hub.WaveID, token string, in TaskUpdate) (Created, error) {
	return receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Created, error) {
		w, err := tx.Wave(id)
		if err != nil {
			return Created{}, err
		}
		if w.Status != hub.WaveRunning {
			return Created{}, errMoved
		}
		if err := run.Operates(tx, r.Principal, w.Run); err != nil {
			return Created{}, err
		}
		if err := editText(tx, w, token, in.Goal); err != nil {
			return Created{}, err
		}
		return Created{Wave: w.ID, Run: w.Run}, tx.SaveWave(w)
	})
}

// editText gives a task and its Task another goal.
func editText(tx store.Tx, w hub.Wave, token, goal string) error {
	x, err := tx.WaveTaskNamed(w.ID, token)
	if err != nil {
		return err
	}
	if strings.TrimSpace(goal) == "" {
		return hub.Invalid("goal", "say what is to be done")
	}
	if err := hub.CheckText("goal", goal, hub.MaxSpecBytes); err != nil {
		return err
	}
	change := hub.TaskChange{Title: titleOf(token, goal), Spec: goal}
	t, err := run.Update(tx, run.UpdateInput{Task: x.Task, Change: change})
	if err != nil {
		return err
	}
	if t.State == hub.TaskCompleted {
		return ended(x, t.State)
	}
	x.Entry.Goal = goal
	return tx.SaveWaveEntry(x)
}
