package work

import (
	"context"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// newTask is a Task that exists when its start has begun, and not before.
type newTask struct {
	hub.Task
	defaults []hub.Default // what was chosen for the start on its behalf
}

// StartNew creates the Task in the Run and starts a worker for it: both are
// committed by the start's first transaction, so that a refused start leaves no
// Task. A new worktree without a name gets one from the Task's title or text.
func (s *Service) StartNew(ctx context.Context, r receipt.Request, id hub.RunID, t hub.Task, in StartInput) (hub.Receipt, error) {
	if in.RetryOf != "" {
		return hub.Receipt{}, hub.Invalid("retry_of", "a Task that is made by its start has no Dispatch to replace")
	}
	t.ID, t.Run = hub.NewTaskID(), id
	in.Task, in.fresh = t.ID, &newTask{Task: t}
	s.nameWorktree(&in)
	return s.Start(ctx, r, in)
}

// nameWorktree fills in the name of a new worktree. It is not made unique: two
// worktrees whose names differ by a number only are mistaken for each other.
func (s *Service) nameWorktree(in *StartInput) {
	if !in.Spec.New() || in.Spec.Name != "" {
		return
	}
	t, source := in.fresh, "title"
	if t.Title == "" {
		source = "spec"
	}
	name := worktreeName(run.TitleOf(t.Task))
	if s.Git.Check(name, "") != nil { // a name of a device
		name = "task-" + name
	}
	in.Spec.Name = name
	t.defaults = []hub.Default{{Field: "name", Value: name, Source: source}}
}

// maxDerivedName bounds a derived name, in bytes.
const maxDerivedName = 40

// worktreeName is text as the name of a worktree: its words in small letters and digits,
// as many whole ones as there is room for, "task" if it has none.
func worktreeName(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	name := "task"
	for i, word := range words {
		switch {
		case i == 0:
			name = word[:min(len(word), maxDerivedName)]
		case len(name)+1+len(word) > maxDerivedName:
			return name
		default:
			name += "-" + word
		}
	}
	return name
}

// task is the Task to start; one that the start creates is shown as it will be,
// if it can be created and started now.
func (in StartInput) task(rx taskRx) (hub.Task, error) {
	if in.fresh == nil {
		return rx.Task(in.Task)
	}
	t, err := run.NewTask(rx, in.fresh.Task)
	if err == nil && t.State != hub.TaskReady {
		err = waits(t)
	}
	return t, err
}

type taskRx interface {
	store.TaskReader
	Run(hub.RunID) (hub.Run, error)
}

// create is task, with the new Task stored.
func (in StartInput) create(tx store.Tx) (hub.Task, error) {
	t, err := in.task(tx)
	if err != nil || in.fresh == nil {
		return t, err
	}
	ts, err := run.CreateTasks(tx, t.Run, []hub.Task{in.fresh.Task})
	if err != nil {
		return t, err
	}
	return ts[0], nil
}

func waits(t hub.Task) error {
	e := hub.Errorf(hub.CodeTaskNotStartable, "the Task would wait for one that is not completed; it was not created")
	e.Hint = "create it by itself, and start it when it is ready"
	return e.WithNext("wavehub", "task", "list", "--run", string(t.Run))
}

// defaults are those of the new Task's start, before the others.
func (in StartInput) defaults(others []hub.Default) []hub.Default {
	if in.fresh == nil {
		return chosen(nil, others)
	}
	return chosen(in.fresh.defaults, others)
}

// chosen joins two lists of defaults; what both have counts as the second has it.
func chosen(first, second []hub.Default) []hub.Default {
	out := make([]hub.Default, 0, len(first)+len(second))
	for _, d := range first {
		if !slices.ContainsFunc(second, func(e hub.Default) bool { return e.Field == d.Field }) {
			out = append(out, d)
		}
	}
	return append(out, second...)
}
