package run

import (
	"context"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

type createTaskTx interface {
	store.Tasks
	Run(hub.RunID) (hub.Run, error)
	Now() hub.Micros
}

// CreateTasks stores Tasks of one Run together. Dependencies are ids of stored
// Tasks of that Run, or of others in ts. Nothing is stored if one is missing or
// if they form a cycle.
func CreateTasks(tx createTaskTx, id hub.RunID, ts []hub.Task) ([]hub.Task, error) {
	if _, err := tx.Run(id); err != nil {
		return nil, err
	}
	out, err := completed(tx, id, ts, nil)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Version, out[i].CreatedAt, out[i].UpdatedAt = 1, tx.Now(), tx.Now()
		if err := tx.PutTask(out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Drawn is ts as CreateTasks would store them in the Run, in the order of their
// dependencies and without versions and times. It reads nothing: all dependencies
// are among ts. done are completed from the beginning.
func Drawn(id hub.RunID, ts []hub.Task, done map[hub.TaskID]bool) ([]hub.Task, error) {
	return completed(nowhere{}, id, ts, done)
}

// nowhere is where no Task is stored.
type nowhere struct{ store.TaskReader }

func (nowhere) Task(id hub.TaskID) (hub.Task, error) {
	return hub.Task{}, hub.Errorf(hub.CodeTaskNotFound, "there is no Task %s", id)
}

// completed checks Tasks that are created together and fills in what they lack.
func completed(rx store.TaskReader, id hub.RunID, ts []hub.Task, done map[hub.TaskID]bool) ([]hub.Task, error) {
	sorted, err := inOrder(ts)
	if err != nil {
		return nil, err
	}
	states := make(map[hub.TaskID]hub.TaskState, len(sorted))
	for i, t := range sorted {
		t.Run = id
		if t, err = complete(rx, t, states); err != nil {
			return nil, err
		}
		if done[t.ID] {
			t.State = hub.TaskCompleted
		}
		states[t.ID], sorted[i] = t.State, t
	}
	return sorted, nil
}

type rewriteTx interface {
	store.Tasks
	Now() hub.Micros
}

// Rewrite replaces what a Task was created with, its checks and dependencies too.
// Only one that nothing was begun with, and that is pending or ready, is rewritten.
func Rewrite(tx rewriteTx, t hub.Task) (hub.Task, error) {
	old, err := tx.Task(t.ID)
	if err != nil {
		return t, err
	}
	if old.Latest != "" || old.State != hub.TaskPending && old.State != hub.TaskReady {
		e := hub.Errorf(hub.CodeTaskStateInvalid, "%s is %s; it is changed only before it is started", t.ID, old.State)
		return t, e.WithNext("wavehub", "task", "show", string(t.ID))
	}
	t.Run, t.Origin, t.Hat, t.CreatedAt = old.Run, old.Origin, old.Hat, old.CreatedAt
	t.Dependencies = dedupe(t.Dependencies)
	if t, err = complete(tx, t, nil); err != nil {
		return t, err
	}
	t.Version, t.UpdatedAt = old.Version+1, tx.Now()
	return t, tx.RewriteTask(t)
}

type newTaskRx interface {
	store.TaskReader
	Run(hub.RunID) (hub.Run, error)
}

// NewTask is t as CreateTasks would store it now in t.Run, without its times.
// The errors are those of CreateTasks.
func NewTask(rx newTaskRx, t hub.Task) (hub.Task, error) {
	if _, err := rx.Run(t.Run); err != nil {
		return t, err
	}
	t.Dependencies = dedupe(t.Dependencies)
	return complete(rx, t, nil)
}

// complete checks t and fills in its title and its state. states are those of
// Tasks that are created with it.
func complete(rx store.TaskReader, t hub.Task, states map[hub.TaskID]hub.TaskState) (hub.Task, error) {
	if err := checkTask(t); err != nil {
		return t, err
	}
	c, err := t.Checks().Clean()
	if err != nil {
		return t, err
	}
	t.WriteScope, t.HandoffPath = c.WriteScope, c.HandoffPath
	t.Title = TitleOf(t)
	deps := make([]hub.TaskState, 0, len(t.Dependencies))
	for _, d := range t.Dependencies {
		s, err := stateOf(rx, t.Run, d, states)
		if err != nil {
			return t, err
		}
		deps = append(deps, s)
	}
	t.State = hub.Readiness(deps)
	return t, nil
}

// TitleOf is the title of a Task, without one the first line of its spec that
// says something, clipped.
func TitleOf(t hub.Task) string {
	if t.Title != "" {
		return t.Title
	}
	for line := range strings.Lines(t.Spec) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) > maxDerivedTitle {
			line = strings.ToValidUTF8(line[:maxDerivedTitle], "") + "…"
		}
		return line
	}
	return ""
}

const maxDerivedTitle = 72

func stateOf(tx store.TaskReader, run hub.RunID, id hub.TaskID, known map[hub.TaskID]hub.TaskState) (hub.TaskState, error) {
	if s, ok := known[id]; ok {
		return s, nil
	}
	t, err := tx.Task(id)
	if err == nil && t.Run == run {
		return t.State, nil
	}
	if err != nil && !hub.IsCode(err, hub.CodeTaskNotFound) {
		return "", err
	}
	e := hub.Errorf(hub.CodeTaskNotFound, "dependency %q is no Task of %s", id, run)
	e.Field = "dependencies"
	return "", e
}

func checkTask(t hub.Task) error {
	switch {
	case strings.TrimSpace(t.Spec) == "":
		return hub.Invalid("spec", "say what is to be done")
	case len(t.Dependencies) > hub.MaxDependencies:
		return hub.Invalid("dependencies", "at most %d are taken", hub.MaxDependencies)
	}
	return checkText(t)
}

func checkText(t hub.Task) error {
	if err := hub.CheckText("spec", t.Spec, hub.MaxSpecBytes); err != nil {
		return err
	}
	return hub.CheckText("title", t.Title, hub.MaxTitleBytes)
}

// inOrder dedupes dependencies and sorts ts so that each comes behind those
// among ts that it depends on; a cycle is refused by name.
func inOrder(ts []hub.Task) ([]hub.Task, error) {
	index := make(map[hub.TaskID]int, len(ts))
	for i := range ts {
		index[ts[i].ID] = i
	}
	s := sorter{tasks: ts, index: index, mark: make([]mark, len(ts))}
	for i := range ts {
		if err := s.visit(i); err != nil {
			return nil, err
		}
	}
	return s.out, nil
}

type mark uint8

const (
	unseen mark = iota
	onPath
	placed
)

type sorter struct {
	tasks []hub.Task
	index map[hub.TaskID]int
	mark  []mark
	path  []hub.TaskID
	out   []hub.Task
}

func (s *sorter) visit(i int) error {
	t := s.tasks[i]
	switch s.mark[i] {
	case placed:
		return nil
	case onPath:
		return cycle(append(s.path[slices.Index(s.path, t.ID):], t.ID))
	case unseen:
	}
	s.mark[i], s.path = onPath, append(s.path, t.ID)
	t.Dependencies = dedupe(t.Dependencies)
	for _, d := range t.Dependencies {
		if j, ok := s.index[d]; ok {
			if err := s.visit(j); err != nil {
				return err
			}
		}
	}
	s.mark[i], s.path = placed, s.path[:len(s.path)-1]
	s.out = append(s.out, t)
	return nil
}

func cycle(path []hub.TaskID) error {
	names := make([]string, len(path))
	for i, p := range path {
		names[i] = string(p)
	}
	e := hub.Errorf(hub.CodeInvalidArgument, "dependencies form a cycle: %s", strings.Join(names, " → "))
	e.Field = "dependencies"
	return e
}

func dedupe(ids []hub.TaskID) []hub.TaskID {
	out, seen := make([]hub.TaskID, 0, len(ids)), make(map[hub.TaskID]bool, len(ids))
	for _, d := range ids {
		if !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}

type unlockTx interface {
	store.Tasks
	Now() hub.Micros
}

// Unlock makes the pending Tasks ready whose last open dependency done was.
func Unlock(tx unlockTx, done hub.Task) error {
	if done.State != hub.TaskCompleted {
		return nil
	}
	ids, err := tx.Dependents(done.ID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := refresh(tx, id); err != nil {
			return err
		}
	}
	return nil
}

func refresh(tx unlockTx, id hub.TaskID) error {
	t, err := tx.Task(id)
	if err != nil || t.State != hub.TaskPending {
		return err
	}
	deps, err := statesOf(tx, t.Dependencies)
	if err != nil {
		return err
	}
	if t.State = hub.Readiness(deps); t.State == hub.TaskPending {
		return nil
	}
	t.Version++
	t.UpdatedAt = tx.Now()
	return tx.SaveTask(t)
}

// Created is a stored Task. A large spec is left out of the receipt and read
// again for each answer.
type Created struct {
	Task     hub.Task     `json:"task"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (c *Created) Mut() *hub.Mutation { return &c.Mutation }

// Subject is the Task.
func (c *Created) Subject() (hub.RunID, string) { return c.Task.Run, string(c.Task.ID) }

// CreateTask is the verb behind the gate.
func (s *Service) CreateTask(ctx context.Context, r receipt.Request, id hub.RunID, t hub.Task) (Created, error) {
	out, err := receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Created, error) {
		if err := Operates(tx, r.Principal, id); err != nil {
			return Created{}, err
		}
		t := t
		t.ID = hub.NewTaskID()
		ts, err := CreateTasks(tx, id, []hub.Task{t})
		if err != nil {
			return Created{}, err
		}
		return recorded(ts[0]), nil
	})
	out.Task.Spec = t.Spec // the payload is equal, or the gate has refused
	return out, err
}
