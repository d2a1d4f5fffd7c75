package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// ETag names a version of a Task.
func ETag(t hub.Task) string { return fmt.Sprintf("%q", fmt.Sprintf("v%d", t.Version)) }

// UpdateInput is the argument of UpdateTask. IfMatch is an ETag, "" for any
// version.
type UpdateInput struct {
	Task    hub.TaskID     `json:"task_id"`
	Change  hub.TaskChange `json:"change"`
	IfMatch string         `json:"if_match"`
}

type updateTx interface {
	store.Tasks
	Dispatch(hub.DispatchID) (hub.Dispatch, error)
	Now() hub.Micros
	Signal(hub.Signal)
}

// Update changes a Task's text or state and unlocks what waited for it.
func Update(tx updateTx, in UpdateInput) (hub.Task, error) {
	t, err := tx.Task(in.Task)
	if err != nil {
		return t, err
	}
	if !matches(in.IfMatch, t) {
		e := hub.Errorf(hub.CodePreconditionFailed, "%s is at %s now", t.ID, ETag(t))
		return t, e.WithNext("wavehub", "task", "show", string(t.ID))
	}
	changed, err := change(tx, t, in.Change)
	if err != nil {
		return t, err
	}
	if err := checkText(changed); err != nil {
		return t, err
	}
	changed.Version++
	changed.UpdatedAt = tx.Now()
	if err := saveChanged(tx, changed, in.Change); err != nil {
		return t, err
	}
	return changed, Unlock(tx, changed)
}

// saveChanged stores a Task, and its text only if that has changed.
func saveChanged(tx store.Tasks, t hub.Task, c hub.TaskChange) error {
	if c.Title == "" && c.Spec == "" {
		return tx.SaveTask(t)
	}
	return tx.SaveTaskText(t)
}

func change(tx updateTx, t hub.Task, c hub.TaskChange) (hub.Task, error) {
	var latest *hub.Dispatch
	if t.Latest != "" {
		d, err := tx.Dispatch(t.Latest)
		if err != nil {
			return t, err
		}
		latest = &d
	}
	deps, err := statesOf(tx, t.Dependencies)
	if err != nil {
		return t, err
	}
	changed, refused := hub.Change(t, latest, deps, c)
	if refused != nil {
		return t, refused
	}
	return changed, nil
}

func statesOf(tx store.TaskReader, ids []hub.TaskID) ([]hub.TaskState, error) {
	states := make([]hub.TaskState, 0, len(ids))
	for _, id := range ids {
		st, err := tx.TaskState(id)
		if err != nil {
			return nil, err
		}
		states = append(states, st)
	}
	return states, nil
}

// UpdateTask is the verb behind the gate. A replayed answer shows the Task as it
// was changed then; a spec that was too large to be recorded and that this
// change did not set is shown as it is now.
func (s *Service) UpdateTask(ctx context.Context, r receipt.Request, in UpdateInput) (Created, error) {
	var spec string
	out, err := receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Created, error) {
		if err := operatesTask(tx, r.Principal, in.Task); err != nil {
			return Created{}, err
		}
		t, err := Update(tx, in)
		spec = t.Spec
		return recorded(t), err
	})
	if err != nil || !out.Mutation.Replayed {
		out.Task.Spec = spec
		return out, err
	}
	err = s.Store.View(ctx, func(rx store.Rx) (err error) {
		out.Task, err = Recall(rx, out.Task, in.Change.Spec)
		return err
	})
	return out, err
}

// operatesTask is Operates for the Run of a Task.
func operatesTask(tx store.Tx, p hub.Principal, id hub.TaskID) error {
	if p.Kind != hub.DispatchCap {
		return nil
	}
	t, err := tx.Task(id)
	if err != nil {
		return err
	}
	return Operates(tx, p, t.Run)
}

// maxRecordedSpec is what a receipt keeps of a Task's text: a larger one is
// recorded by reference (design page 3.6).
const maxRecordedSpec = 4096

// recorded is the answer as the receipt keeps it.
func recorded(t hub.Task) Created {
	if len(t.Spec) > maxRecordedSpec {
		t.Spec = ""
	}
	return Created{Task: t}
}

// Recall completes a Task read from a receipt: given is the spec that its
// request set, "" if that is not known.
func Recall(rx store.TaskReader, t hub.Task, given string) (hub.Task, error) {
	if t.Spec != "" {
		return t, nil
	}
	if given != "" {
		t.Spec = given
		return t, nil
	}
	now, err := rx.Task(t.ID)
	t.Spec = now.Spec
	return t, err
}

// matches reports whether the If-Match condition allows a change of t: it is
// empty, *, or a list of entity tags with that of t (RFC 9110, 13.1.1). What is
// weak or malformed matches nothing.
func matches(condition string, t hub.Task) bool {
	if condition == "" || condition == "*" {
		return true
	}
	for tag := range strings.SplitSeq(condition, ",") {
		if strings.TrimSpace(tag) == ETag(t) {
			return true
		}
	}
	return false
}
