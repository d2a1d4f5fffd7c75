package wave

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

func TestCreate(t *testing.T) {
	w := newWorld(t)
	a, b := entry("a"), entry("b", "a")
	a.Goal, a.VerifyCmd, a.HandoffPath, a.TimeoutSecs = "\nBuild it.\nAll of it.", "true", "notes/a.md", 5
	a.WriteScope, b.WriteScope = []string{"src"}, nil
	in := w.input("w1", a, b)
	in.Metadata, in.Owner = json.RawMessage(`{"k":1}`), "me"
	in.Plan.Policy.Verify, in.Plan.Policy.Scope = hub.VerifyRequired, hub.ScopeEnforce
	b.VerifyCmd = "make test"
	in.Plan.Tasks[1] = b
	out := w.create(in)
	if n := w.store.updates.take(); n != 1 {
		t.Errorf("a small wave took %d transactions", n)
	}
	v := w.wave("w1")
	if v.UID == "" || v.CreatedAt == 0 || v.Version != 1 {
		t.Errorf("%+v", v)
	}
	want := hub.Wave{
		ID: "w1", UID: v.UID, Run: w.run, Goal: "all of it", Owner: "me", Status: hub.WavePending, Policy: in.Plan.Policy, Metadata: in.Metadata,
		Total: 2, Warnings: v.Warnings, CreatedAt: v.CreatedAt, Version: 1,
	}
	equal(t, want, v)
	if out.Wave != "w1" || out.Run != w.run || out.Mutation.Replayed || out.Mutation.RequestID == "" || !reflect.DeepEqual(out.Warnings, v.Warnings) {
		t.Errorf("%+v", out)
	}
	xs := w.tasks("w1")
	first, second := w.task(xs[0].Task), w.task(xs[1].Task)
	equal(t, hub.Task{
		ID: first.ID, Run: w.run, Title: "a: Build it.", Spec: a.Goal, State: hub.TaskReady, Dependencies: []hub.TaskID{}, VerifyCmd: "true",
		Verify: hub.VerifyRequired, WriteScope: []string{"src"}, Scope: hub.ScopeEnforce, TimeoutSecs: 5, HandoffPath: "notes/a.md",
		Origin: "wave:w1", Version: 1, CreatedAt: first.CreatedAt, UpdatedAt: first.CreatedAt,
	}, first)
	equal(t, []any{hub.TaskPending, []hub.TaskID{first.ID}, hub.ScopeAdvisory}, []any{second.State, second.Dependencies, second.Scope})
	equal(t, []int{1, 2, 0, 1}, []int{xs[0].Level, xs[1].Level, xs[0].Index, xs[1].Index})
}

func TestEmptyWave(t *testing.T) {
	w := newWorld(t)
	out := w.create(w.input(""))
	if !hub.ValidID(hub.PrefixWave, string(out.Wave)) {
		t.Errorf("%q was minted", out.Wave)
	}
	v := w.wave(out.Wave)
	if v.Total != 0 || v.Owner != operator.Name() || string(v.UID) == string(v.ID) {
		t.Errorf("%+v", v)
	}
}

func TestRefusedCreates(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		code   hub.Code
		change func(*CreateInput)
	}{
		"token a--b":    {hub.CodeInvalidArgument, func(in *CreateInput) { in.ID = "a--b" }},
		"token a.b":     {hub.CodeInvalidArgument, func(in *CreateInput) { in.ID = "a.b" }},
		"long token":    {hub.CodeInvalidArgument, func(in *CreateInput) { in.ID = hub.WaveID(long(129)) }},
		"long goal":     {hub.CodeTooLarge, func(in *CreateInput) { in.Goal = long(hub.MaxWaveGoalBytes + 1) }},
		"long owner":    {hub.CodeTooLarge, func(in *CreateInput) { in.Owner = long(maxOwnerBytes + 1) }},
		"long metadata": {hub.CodeTooLarge, func(in *CreateInput) { in.Metadata = json.RawMessage(`{"a":"` + long(hub.MaxWaveMetadata) + `"}`) }},
		"metadata list": {hub.CodeInvalidArgument, func(in *CreateInput) { in.Metadata = json.RawMessage("[1]") }},
		"metadata torn": {hub.CodeInvalidArgument, func(in *CreateInput) { in.Metadata = json.RawMessage("{") }},
		"metadata null": {hub.CodeInvalidArgument, func(in *CreateInput) { in.Metadata = json.RawMessage("null") }},
		"relative dir":  {hub.CodeInvalidArgument, func(in *CreateInput) { in.CheckpointDir = "x" }},
		"no run":        {hub.CodeRunNotFound, func(in *CreateInput) { in.Run = hub.NewRunID() }},
		"a finding":     {hub.CodePlanInvalid, func(in *CreateInput) { in.Plan.Tasks[0].Worker = "nobody" }},
		"too many":      {hub.CodeTooLarge, func(in *CreateInput) { in.Plan.Tasks = make([]hub.WaveEntry, hub.MaxWaveTasks+1) }},
	} {
		in := w.input("w1", entry("a"))
		c.change(&in)
		_, err := w.Create(t.Context(), w.request("wave_create", name), in)
		if !hub.IsCode(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if n := w.store.updates.take(); n > 0 {
			t.Errorf("%s: %d transactions", name, n)
		}
	}
	in := w.input("w1", entry("a"), entry("b", "nothing"))
	in.Plan.Tasks[0].Worker = "nobody"
	_, err := w.Create(t.Context(), w.request("wave_create", in), in)
	e, ok := errors.AsType[*hub.Error](err)
	if !ok {
		t.Fatal(err)
	}
	equal(t, []string{"worker_not_found a", "dependency_unknown b"}, codes(e.Findings))
}

// A worker coordinates the Run that is its own, and creates no waves in others.
func TestOnlyOperatorsOfTheRunCreate(t *testing.T) {
	w := newWorld(t)
	w.update(func(tx store.Tx) error {
		return tx.PutCredential(store.Credential{Sum: "w", Kind: store.CredWorker, Subject: "x"})
	})
	in := w.input("w1", entry("a"))
	r := w.request("wave_create", in)
	r.Principal = hub.Principal{Kind: hub.AttachedWorker, ID: "x", Credential: "w"}
	_, err := w.Create(t.Context(), r, in)
	refused(t, hub.CodeOutOfScope, err)
	w.create(in)
	_, err = w.AddTask(t.Context(), r, "w1", entry("b"))
	refused(t, hub.CodeOutOfScope, err)
}

// large is a wave of several parts, with orders.
func (w *world) large(id hub.WaveID) CreateInput {
	in := w.input(id)
	in.Plan.Policy.Conflicts = hub.ConflictsSerialize
	for i := range 40 {
		e := entry(fmt.Sprintf("t%d", i))
		e.Goal, e.WriteScope = long(300<<10), []string{"a"}
		in.Plan.Tasks = append(in.Plan.Tasks, e)
	}
	return in
}

func TestLargeWaveIsStoredInParts(t *testing.T) {
	w := newWorld(t)
	in := w.large("w1")
	out := w.create(in)
	if n := w.store.updates.take(); n < 5 || n > 8 {
		t.Errorf("%d transactions", n)
	}
	xs := w.tasks("w1")
	if len(xs) != 40 || len(out.Serialized) < 39 {
		t.Fatalf("%d tasks, %d decisions", len(xs), len(out.Serialized))
	}
	for i, x := range xs {
		if got := w.task(x.Task); got.Spec != in.Plan.Tasks[i].Goal || x.Index != i || got.State != hub.TaskReady {
			t.Errorf("task %d: %d bytes, %s", i, len(got.Spec), got.State)
		}
	}
	equal(t, hub.Serialized{Path: "a", First: "t0", Second: "t1", MovedTo: "1b"}, out.Serialized[0])
}

// A create and its replay answer equal, and the replay stages nothing, also when
// the world would refuse it now.
func TestReplayedCreate(t *testing.T) {
	w := newWorld(t)
	in := w.large("w1")
	in.ID = ""
	in.Plan.Tasks[0].Worker = "w-1@windows"
	r := w.request("wave_create", in)
	first, err := w.Create(t.Context(), r, in)
	if err != nil {
		t.Fatal(err)
	}
	w.store.updates.take()
	w.peers.answering(nil)
	w.update(func(tx store.Tx) error {
		id, err := tx.WorkerByName("w-1")
		id.State = hub.WorkerDraining
		return errors.Join(err, tx.SaveWorker(id))
	})
	again, err := w.Create(t.Context(), r, in)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.store.updates.take(); n != 1 || len(w.peers.specs()) > 0 {
		t.Errorf("%d transactions, %d questions", n, len(w.peers.specs()))
	}
	if !again.Mutation.Replayed {
		t.Error("it was not a replay")
	}
	again.Mutation.Replayed = false
	equal(t, first, again)
	r.Payload = []byte("{}")
	_, err = w.Create(t.Context(), r, in)
	refused(t, hub.CodeRequestMismatch, err)
}

// Equal creates at once make one wave, and leave nothing of the others behind.
func TestEqualCreatesAtOnce(t *testing.T) {
	w := newWorld(t)
	in := w.large("w1")
	r := w.request("wave_create", in)
	var wg sync.WaitGroup
	outs, errs := make([]Created, 4), make([]error, 4)
	for i := range outs {
		wg.Go(func() { outs[i], errs[i] = w.Create(t.Context(), r, in) })
	}
	wg.Wait()
	fresh := 0
	for i, out := range outs {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if !out.Mutation.Replayed {
			fresh++
		}
		out.Mutation.Replayed, outs[0].Mutation.Replayed = false, false
		equal(t, outs[0], out)
	}
	if fresh != 1 {
		t.Errorf("%d waves were made", fresh)
	}
	w.others("w1")
	var n int
	w.view(func(rx store.Rx) error {
		c, err := rx.Counts()
		n = int(c.Tasks)
		return err
	})
	if n != 40 {
		t.Errorf("%d Tasks", n)
	}
}

// others: nothing is left of what was staged for other uids than the wave's.
func (w *world) others(id hub.WaveID) {
	w.Helper()
	own := w.wave(id).UID
	w.nothingStaged(slices.DeleteFunc(w.store.uids(), func(uid hub.WaveUID) bool { return uid == own })...)
}

// Whatever part fails, nothing of the wave is there, and the same request makes it
// later.
func TestFailedParts(t *testing.T) {
	broken := hub.Errorf(hub.CodeStorageFull, "full")
	for nth := 1; nth <= 5; nth++ {
		w := newWorld(t)
		in := w.large("w1")
		r := w.request("wave_create", in)
		before := w.content("w1")
		w.store.failing(func(n int) error {
			if n == nth {
				return broken
			}
			return nil
		})
		_, err := w.Create(t.Context(), r, in)
		refused(t, hub.CodeStorageFull, err)
		w.store.failing(nil)
		equal(t, before, w.content("w1"))
		w.nothingStaged(w.store.uids()...)
		if _, err = w.Create(t.Context(), r, in); err != nil {
			t.Errorf("part %d: %v", nth, err)
		}
		equal(t, 40, len(w.tasks("w1")))
	}
}

// A hub that dies between two parts, and cannot drop them any more, drops them at
// its next start.
func TestLeftoversAreDroppedAtTheNextStart(t *testing.T) {
	w := newWorld(t)
	in := w.large("w1")
	w.store.failing(func(n int) error {
		if n > 2 {
			return hub.Errorf(hub.CodeInternal, "dead")
		}
		return nil
	})
	_, err := w.Create(t.Context(), w.request("wave_create", in), in)
	refused(t, hub.CodeInternal, err)
	w.store.failing(nil)
	if err := w.over(w.store).Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.nothingStaged(w.store.uids()...)
}

func TestReplace(t *testing.T) {
	w := newWorld(t)
	w.create(w.input("w1", entry("a"), entry("b"), entry("c")))
	old := w.tasks("w1")
	w.update(func(tx store.Tx) error { // by hand
		_, err := run.Update(tx, run.UpdateInput{Task: old[1].Task, Change: hub.TaskChange{State: hub.TaskCompleted}})
		return err
	})
	in := w.input("w1", entry("z"))
	_, err := w.Create(t.Context(), w.request("wave_create", in), in)
	refused(t, hub.CodeWaveExists, err)
	in.Replace = true
	w.create(in)
	equal(t, []string{"z"}, []string{w.tasks("w1")[0].Entry.Token})
	for i, want := range []hub.TaskState{hub.TaskCancelled, hub.TaskCompleted, hub.TaskCancelled} {
		equal(t, want, w.task(old[i].Task).State)
	}
	other := in
	other.Run = hub.NewRunID()
	w.update(func(tx store.Tx) error {
		return errors.Join(tx.PutRun(hub.Run{ID: other.Run, Objective: "o"}), tx.PutMailbox(store.Mailbox{Box: other.Run.Box()}))
	})
	_, err = w.Create(t.Context(), w.request("wave_create", other), other)
	refused(t, hub.CodeWaveExists, err)
	for st, code := range map[hub.WaveStatus]hub.Code{
		hub.WaveRunning: hub.CodeWaveRunning, hub.WaveCompleted: hub.CodeWaveFinal, hub.WaveFailed: hub.CodeWaveFinal, hub.WaveCancelled: hub.CodeWaveFinal,
	} {
		w.become("w1", st)
		_, err = w.Create(t.Context(), w.request("wave_create", in), in)
		refused(t, code, err)
		in.Replace = false
		_, err = w.Create(t.Context(), w.request("wave_create", in), in)
		refused(t, hub.CodeWaveExists, err)
		in.Replace = true
	}
	equal(t, 1, len(w.tasks("w1")))
}

// What a checkpoint shows completed is created completed, and unlocks what depends
// on it.
func TestCompletedFromTheBeginning(t *testing.T) {
	v := hub.Wave{ID: "w1", UID: "u", Run: hub.NewRunID(), Policy: hub.DefaultWavePolicy(90), Iteration: 2}
	es := []hub.WaveEntry{entry("a"), entry("b", "a"), entry("c", "b")}
	j := judged{entries: es, plan: hub.Plan{Valid: true, Places: []hub.Place{{Level: 1}, {Level: 2}, {Level: 3}}}}
	d, err := drawn(v, j, map[string]evidence{"a": {CompletedAt: 7}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []hub.TaskState{hub.TaskCompleted, hub.TaskReady, hub.TaskPending}, []hub.TaskState{d.work[0].State, d.work[1].State, d.work[2].State})
	equal(t, hub.WaveProgress{Iteration: 3, EndedAs: hub.WaveCompleted, EndedReason: "checkpoint", CompletedAt: 7}, d.tasks[0].WaveProgress)
	equal(t, hub.WaveProgress{Iteration: 3}, d.tasks[1].WaveProgress)
	if !strings.HasPrefix(d.work[0].Result, "source: checkpoint") || d.work[1].Result != "" {
		t.Errorf("results %q and %q", d.work[0].Result, d.work[1].Result)
	}
}

// Who did what is completed need not be known to the hub that goes on; who does the
// rest does.
func TestCompletedTasksNeedNoPlace(t *testing.T) {
	w, x := newWorld(t), finishedWave()
	for i := range x.rows {
		x.rows[i].Entry.Worker, x.rows[i].Entry.WriteScope = "elsewhere", []string{}
	}
	c := x.checkpoint()
	in := w.input("w1")
	in.Plan, in.Checkpoint = PlanInput{}, &c
	w.create(in)
	if _, err := w.AddTask(t.Context(), w.request("wave_task_add", "more"), "w1", entry("more")); err != nil {
		t.Errorf("adding a task: %v", err)
	}
	delete(c.Done, 3)
	in.ID = "w2"
	_, err := w.Create(t.Context(), w.request("wave_create", "w2"), in)
	e, ok := errors.AsType[*hub.Error](err)
	if !ok || len(e.Findings) == 0 {
		t.Fatalf("the third level is nobody's: %v", err)
	}
	for _, f := range e.Findings {
		if f.Code != hub.FindWorkerNotFound || len(f.Tasks) == len(x.rows) {
			t.Errorf("%s of %v", f.Code, f.Tasks)
		}
	}
}

func TestPartsAreBounded(t *testing.T) {
	var xs []hub.WaveTask
	var ts []hub.Task
	for i := range 30 {
		e := entry("t", "u")
		e.Goal = long(i * 100 << 10)
		xs, ts = append(xs, hub.WaveTask{Index: i, Entry: e}), append(ts, hub.Task{Spec: e.Goal})
	}
	orders := make([]hub.WaveOrder, 1000)
	for i := range orders {
		orders[i] = hub.WaveOrder{First: i, Second: i + 1, Path: long(20 << 10)}
	}
	ps, err := parts(xs, ts, orders)
	if err != nil {
		t.Fatal(err)
	}
	var tasks []hub.WaveTask
	var all []hub.WaveOrder
	for i, p := range ps {
		size := 0
		for j, x := range p.tasks {
			n, err := weight(x, p.work[j])
			if err != nil {
				t.Fatal(err)
			}
			size += n
		}
		for _, o := range p.orders {
			size += len(o.Path)
		}
		if size > maxPart && len(p.tasks)+len(p.orders) > 1 || len(p.tasks) != len(p.work) || size == 0 {
			t.Errorf("part %d has %d bytes in %d tasks", i, size, len(p.tasks))
		}
		tasks, all = append(tasks, p.tasks...), append(all, p.orders...)
	}
	equal(t, xs, tasks)
	equal(t, orders, all)
	if ps, err = parts(nil, nil, nil); err != nil || len(ps) != 1 {
		t.Errorf("an empty wave has %d parts: %v", len(ps), err)
	}
}

// What is kept of many warnings is bounded, and says how many more there are.
func TestWarningsAreBounded(t *testing.T) {
	fs := make([]hub.Finding, maxWarnings+7)
	for i := range fs {
		fs[i] = hub.Finding{Code: "c", Tasks: make([]string, maxWarningTasks+3), Detail: long(2 * maxWarningBytes)}
	}
	out := bounded(fs)
	last := out[len(out)-1]
	if len(out) != maxWarnings || len(last.Tasks) != maxWarningTasks || !strings.Contains(out[0].Detail, "3 more tasks") ||
		!strings.HasSuffix(last.Detail, "(and 7 more warnings)") || len(last.Detail) > maxWarningBytes+100 {
		t.Errorf("%d warnings, the last: %d tasks, %q", len(out), len(last.Tasks), last.Detail)
	}
	if len(fs[0].Tasks) != maxWarningTasks+3 {
		t.Error("the plan was changed")
	}
	if out := bounded(nil); out == nil || len(out) > 0 {
		t.Errorf("%v", out)
	}
}
