package wave

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

func (w *world) change(token string, in TaskUpdate) (Created, error) {
	return w.UpdateTask(w.Context(), w.request("wave_task_update", in), "w1", token, in)
}

func (w *world) changed(token string, in TaskUpdate) {
	w.Helper()
	if _, err := w.change(token, in); err != nil {
		w.Fatal(err)
	}
}

func (w *world) orders(id hub.WaveID) (os []hub.WaveOrder) {
	w.Helper()
	w.view(func(rx store.Rx) (err error) {
		os, err = rx.WaveOrders(id)
		return err
	})
	return os
}

func TestAddTask(t *testing.T) {
	w := newWorld(t)
	old := w.pending()
	before := w.wave("w1")
	d := entry("d", "c")
	r := w.request("wave_task_add", d)
	out, err := w.AddTask(t.Context(), r, "w1", d)
	if err != nil {
		t.Fatal(err)
	}
	xs := w.tasks("w1")
	equal(t, old, xs[:3])
	equal(t, hub.WaveTask{Wave: "w1", Index: 3, Level: 3, Task: xs[3].Task, Entry: d, WaveProgress: hub.WaveProgress{Iteration: 1}}, xs[3])
	got := w.task(xs[3].Task)
	equal(t, []any{hub.TaskPending, []hub.TaskID{old[2].Task}, "d: do d", "wave:w1"}, []any{got.State, got.Dependencies, got.Title, got.Origin})
	v := w.wave("w1")
	if v.Total != 4 || v.Version != before.Version+1 || v.UID != before.UID {
		t.Errorf("%+v", v)
	}
	again, err := w.AddTask(t.Context(), r, "w1", d)
	if err != nil || !again.Mutation.Replayed {
		t.Errorf("%+v: %v", again, err)
	}
	again.Mutation.Replayed = false
	equal(t, out, again)
	equal(t, 4, len(w.tasks("w1")))
}

// An edit that a plan has findings for changes nothing, of the wave or of Tasks.
func TestEditsWithFindingsChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.pending()
	before := w.content("w1")
	bad := entry("d", "nothing")
	_, err := w.AddTask(t.Context(), w.request("wave_task_add", bad), "w1", bad)
	refused(t, hub.CodePlanInvalid, err)
	if e, ok := errors.AsType[*hub.Error](err); !ok || len(e.Findings) != 1 {
		t.Errorf("%+v", err)
	}
	for _, in := range []TaskUpdate{{Worker: "nobody"}, {Dependencies: &[]string{"nothing"}}, {Goal: " "}, {Goal: "x", Dependencies: &[]string{"c"}}} {
		_, err := w.change("c", in)
		refused(t, hub.CodePlanInvalid, err)
	}
	for in, code := range map[*TaskUpdate]hub.Code{
		{}:                        hub.CodeInvalidArgument,
		{Status: hub.WaveRunning}: hub.CodeInvalidArgument,
		{Status: "odd"}:           hub.CodeInvalidArgument,
		{Reason: "x"}:             hub.CodeInvalidArgument,
		{Status: hub.WaveFailed, Reason: long(hub.MaxWaveReason + 1)}: hub.CodeTooLarge,
	} {
		_, err := w.change("a", *in)
		refused(t, code, err)
	}
	_, err = w.change("nothing", TaskUpdate{Goal: "x"})
	refused(t, hub.CodeTaskNotFound, err)
	_, err = w.change("nothing", TaskUpdate{Status: hub.WaveFailed})
	refused(t, hub.CodeTaskNotFound, err)
	equal(t, before, w.content("w1"))
	w.others("w1")
}

// An edit moves what it has to: the task with its Task, places and orders. Tasks keep
// their ids.
func TestUpdateTask(t *testing.T) {
	w := newWorld(t)
	old := w.pending()
	equal(t, []hub.WaveOrder{{First: 0, Second: 1, Path: "src"}}, w.orders("w1"))
	w.changed("b", TaskUpdate{Goal: "other", WriteScope: &[]string{}, Start: &hub.WaveStart{Agent: "sh", Worktree: "path:/x"}, VerifyCmd: new("true"), TimeoutSecs: new(int64(9))})
	xs := w.tasks("w1")
	want := old[1]
	want.Sub = 0
	want.Entry = hub.WaveEntry{
		Token: "b", Goal: "other", Start: &hub.WaveStart{Agent: "sh", Worktree: "path:/x"}, WriteScope: []string{}, VerifyCmd: "true", TimeoutSecs: 9,
	}
	equal(t, want, xs[1])
	equal(t, 0, xs[0].Sub)
	equal(t, 0, len(w.orders("w1")))
	got := w.task(old[1].Task)
	equal(t, []any{"b: other", "other", "true", int64(9), int64(2), hub.TaskReady}, []any{got.Title, got.Spec, got.VerifyCmd, got.TimeoutSecs, got.Version, got.State})
	untouched := w.task(old[0].Task)
	equal(t, int64(1), untouched.Version)

	w.changed("b", TaskUpdate{Dependencies: &[]string{"a"}, Worker: "w-1"})
	w.changed("c", TaskUpdate{Dependencies: &[]string{}})
	xs = w.tasks("w1")
	equal(t, []int{1, 2, 1}, []int{xs[0].Level, xs[1].Level, xs[2].Level})
	equal(t, []hub.TaskState{hub.TaskPending, hub.TaskReady}, []hub.TaskState{w.task(old[1].Task).State, w.task(old[2].Task).State})
	if xs[1].Entry.Start != nil || xs[1].Entry.Worker != "w-1" {
		t.Errorf("%+v", xs[1].Entry)
	}
	w.view(func(rx store.Rx) error {
		ids, err := rx.Dependents(old[0].Task)
		equal(t, []hub.TaskID{old[1].Task}, ids)
		return err
	})
	w.others("w1")
}

// The status of a task that nothing was begun with is set as task update does; an
// end stays as it is.
func TestStatusInAPendingWave(t *testing.T) {
	w := newWorld(t)
	xs := w.pending()
	w.changed("a", TaskUpdate{Status: hub.WaveCompleted, Reason: "by hand"})
	w.changed("b", TaskUpdate{Status: hub.WaveCompleted})
	equal(t, hub.TaskReady, w.task(xs[2].Task).State)
	s, err := w.Show(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []any{hub.WaveCompleted, "set_by_operator: by hand", hub.WaveCompleted, hub.EndSetByOperator, hub.WavePending},
		[]any{s.Tasks[0].Status, s.Tasks[0].Reason, s.Tasks[1].Status, s.Tasks[1].Reason, s.Tasks[2].Status})
	before := w.tasks("w1")
	w.changed("a", TaskUpdate{Status: hub.WaveCompleted, Reason: "again"})
	equal(t, before, w.tasks("w1"))
	_, err = w.change("a", TaskUpdate{Status: hub.WaveFailed})
	refused(t, hub.CodeTaskStateInvalid, err)
	_, err = w.change("a", TaskUpdate{Goal: "x"})
	refused(t, hub.CodeTaskStateInvalid, err)
	w.changed("c", TaskUpdate{Status: hub.WaveCancelled})
	_, err = w.change("c", TaskUpdate{Status: hub.WaveFailed})
	refused(t, hub.CodeTaskStateInvalid, err)
}

// A task that somebody has started by hand is not rewritten.
func TestStartedTasksAreNotRewritten(t *testing.T) {
	w := newWorld(t)
	xs := w.pending()
	w.update(func(tx store.Tx) error {
		task, err := tx.Task(xs[0].Task)
		task.Latest, task.State = hub.NewDispatchID(), hub.TaskDispatched
		return errors.Join(err, tx.PutDispatch(hub.Dispatch{ID: task.Latest, Task: task.ID, Run: task.Run, State: hub.Ready}, hub.Receipt{}, nil), tx.SaveTask(task))
	})
	before := w.content("w1")
	for _, in := range []TaskUpdate{{Goal: "x"}, {Status: hub.WaveFailed}} {
		_, err := w.change("a", in)
		refused(t, hub.CodeTaskStateInvalid, err)
	}
	equal(t, before, w.content("w1"))
}

// Once a wave runs only text is changed here, and nothing once it has ended.
func TestEditsOfARunningWave(t *testing.T) {
	w := newWorld(t)
	xs := w.pending()
	w.become("w1", hub.WaveRunning)
	for _, in := range []TaskUpdate{
		{Worker: "w-1"}, {Start: &hub.WaveStart{}}, {Dependencies: &[]string{}}, {WriteScope: &[]string{}}, {ReadScope: &[]string{}},
		{Workspace: new("x")}, {HandoffPath: new("x")}, {VerifyCmd: new("x")}, {TimeoutSecs: new(int64(1))}, {Status: hub.WaveFailed, Worker: "w-1"},
	} {
		_, err := w.change("a", in)
		refused(t, hub.CodeWaveRunning, err)
	}
	_, err := w.AddTask(t.Context(), w.request("wave_task_add", 1), "w1", entry("d"))
	refused(t, hub.CodeWaveRunning, err)
	in := TaskUpdate{Goal: "another"}
	r := w.request("wave_task_update", in)
	if _, err := w.UpdateTask(t.Context(), r, "w1", "a", in); err != nil {
		t.Fatal(err)
	}
	got := w.task(xs[0].Task)
	equal(t, []string{"another", "a: another", "another"}, []string{got.Spec, got.Title, w.tasks("w1")[0].Entry.Goal})
	for _, bad := range []string{" ", "a\x00b"} {
		_, err := w.change("a", TaskUpdate{Goal: bad})
		refused(t, hub.CodeInvalidArgument, err)
	}
	w.update(func(tx store.Tx) error {
		task, err := tx.Task(xs[0].Task)
		task.State = hub.TaskCompleted
		return errors.Join(err, tx.SaveTask(task))
	})
	_, err = w.change("a", in)
	refused(t, hub.CodeTaskStateInvalid, err)
	for _, st := range []hub.WaveStatus{hub.WaveCompleted, hub.WaveFailed, hub.WaveCancelled} {
		w.become("w1", st)
		before := w.content("w1")
		for _, in := range []TaskUpdate{in, {Worker: "w-1"}, {Status: hub.WaveFailed}} {
			_, err := w.change("a", in)
			refused(t, hub.CodeWaveFinal, err)
		}
		_, err = w.AddTask(t.Context(), w.request("wave_task_add", 2), "w1", entry("d"))
		refused(t, hub.CodeWaveFinal, err)
		if out, err := w.UpdateTask(t.Context(), r, "w1", "a", in); err != nil || !out.Mutation.Replayed {
			t.Errorf("%+v: %v", out, err)
		}
		equal(t, before, w.content("w1"))
	}
	_, err = w.UpdateTask(t.Context(), w.request("wave_task_update", 3), "other", "a", in)
	refused(t, hub.CodeWaveNotFound, err)
}

// Edits at once all take effect, one behind the other.
func TestEditsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.pending()
	const adders = 8
	requests := make([]receipt.Request, adders)
	for i := range requests {
		requests[i] = w.request("wave_task_add", i)
	}
	var wg sync.WaitGroup
	errs := make([]error, adders)
	for i := range adders {
		wg.Go(func() {
			e := entry("new"+strconv.Itoa(i), "a")
			e.WriteScope = []string{"one"}
			_, errs[i] = w.AddTask(t.Context(), requests[i], "w1", e)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	xs := w.tasks("w1")
	equal(t, 3+adders, len(xs))
	policy := w.wave("w1").Policy
	plan := BuildPlan(entriesOf(xs), PlanOptions{Order: policy.Order, Conflicts: policy.Conflicts, Verify: policy.Verify, Scope: policy.Scope})
	equal(t, plan.Orders, w.orders("w1"))
	if len(plan.Orders) < adders {
		t.Errorf("%d orders", len(plan.Orders))
	}
	for i, x := range xs {
		if x.Index != i {
			t.Errorf("task %d has index %d", i, x.Index)
		}
	}
	w.others("w1")
}

// An edit that was judged before the wave was spawned is not made of a running one.
func TestEditOverSpawn(t *testing.T) {
	w := newWorld(t)
	w.pending()
	before := w.content("w1")
	v := revision{editing: TaskUpdate{Worker: "w-1"}.editing("w1", "a")}
	if err := w.revise(t.Context(), "w1", &v); err != nil {
		t.Fatal(err)
	}
	w.become("w1", hub.WaveRunning)
	err := w.store.Update(t.Context(), store.New, func(tx store.Tx) error {
		_, err := v.enter(tx, operator)
		return err
	})
	if !errors.Is(err, errMoved) {
		t.Errorf("%v", err)
	}
	if err := w.revise(t.Context(), "w1", &v); !errors.Is(err, errMoved) {
		t.Errorf("%v", err)
	}
	w.become("w1", hub.WavePending)
	if before == w.content("w1") {
		t.Error("nothing tells that the wave was another meanwhile")
	}
	_, err = w.insisting(t.Context(), "w1", func() (Created, error) { return Created{}, errMoved })
	refused(t, hub.CodePreconditionFailed, err)
}

// What cannot be edited is refused with a way out that this wave has.
func TestRefusedEditsSayWhatToDoNext(t *testing.T) {
	w := newWorld(t)
	w.pending()
	_, unknown := w.change("nothing", TaskUpdate{Goal: "x"})
	w.changed("a", TaskUpdate{Status: hub.WaveFailed})
	_, ended := w.change("a", TaskUpdate{Status: hub.WaveCompleted})
	w.update(func(tx store.Tx) error {
		x, err := tx.Wave("w1")
		x.Status = hub.WaveFailed
		return errors.Join(err, tx.SaveWave(x))
	})
	_, final := w.change("b", TaskUpdate{Goal: "x"})
	for want, err := range map[string]error{"wave status": unknown, "wave create --replace": ended, "wave retry": final} {
		if e, ok := errors.AsType[*hub.Error](err); !ok || !strings.Contains(e.Hint, want) {
			t.Errorf("%v has no hint of %s", err, want)
		}
	}
}
