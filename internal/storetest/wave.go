package storetest

import (
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// someWave is a wave with tasks that a store has nothing of yet.
type someWave struct {
	hub.Wave
	tasks []hub.WaveTask
	work  []hub.Task
}

func newWave(n *int, tasks int) someWave {
	w := someWave{Wave: filled[hub.Wave](n)}
	w.Version = 1
	for i := range tasks {
		x, t := filled[hub.WaveTask](n), filled[hub.Task](n)
		x.Wave, x.Index, x.Task = w.ID, i, t.ID
		t.Latest = ""
		w.tasks, w.work = append(w.tasks, x), append(w.work, t)
	}
	return w
}

func (w someWave) put(tx store.Tx) error {
	return first(tx.StageWaveTasks(w.UID, w.tasks, w.work), tx.PutWave(w.Wave))
}

func waves(f *fixture) {
	n := 0
	w := newWave(&n, 0).Wave
	f.update(func(tx store.Tx) error { return tx.PutWave(w) })
	equal(f, []hub.Signal{{Topic: hub.TopicWave, Key: string(w.ID)}}, f.published())
	f.view(func(rx store.Rx) error { return same(f, w)(rx.Wave(w.ID)) })
	changed := filled[hub.Wave](&n)
	changed.ID, changed.UID, changed.Version = w.ID, w.UID, 1
	changed.Ending, changed.Metadata, changed.Warnings = nil, nil, nil
	f.update(func(tx store.Tx) error { return tx.SaveWave(changed) })
	equal(f, []hub.Signal{{Topic: hub.TopicWave, Key: string(w.ID)}}, f.published())
	changed.Version = 2
	f.view(func(rx store.Rx) error { return same(f, changed)(rx.Wave(w.ID)) })
	again := filled[hub.Wave](&n)
	again.ID = w.ID
	f.refused(hub.CodeWaveExists, func(tx store.Tx) error { return tx.PutWave(again) })
	f.refused(hub.CodeWaveNotFound, func(tx store.Tx) error { return tx.SaveWave(filled[hub.Wave](&n)) })
	f.refused(hub.CodeWaveNotFound, func(tx store.Tx) error { _, err := tx.Wave("other"); return err })
}

func wavePages(f *fixture) {
	n := 0
	var all, running, ofRun []hub.Wave
	var ids []hub.WaveID
	for i := range 7 {
		w := newWave(&n, 0).Wave
		w.Run, w.Status = "other", hub.WaveFailed
		if i%2 == 0 {
			w.Status = hub.WaveRunning
			running, ids = append([]hub.Wave{w}, running...), append(ids, w.ID)
		}
		if i%3 == 0 {
			w.Run = "run"
			ofRun = append([]hub.Wave{w}, ofRun...)
		}
		if i%2 == 0 {
			running[0] = w
		}
		all = append([]hub.Wave{w}, all...)
		f.update(func(tx store.Tx) error { return tx.PutWave(w) })
	}
	f.view(func(rx store.Rx) error {
		list := func(filter store.WaveFilter) []hub.Wave {
			return pages(f, 0, func(p store.Page) ([]hub.Wave, int64, error) { return rx.WaveList(filter, p) })
		}
		equal(f, all, list(store.WaveFilter{}))
		equal(f, running, list(store.WaveFilter{Status: hub.WaveRunning}))
		equal(f, ofRun, list(store.WaveFilter{Run: "run"}))
		equal(f, []hub.Wave{all[0], all[6]}, list(store.WaveFilter{Run: "run", Status: hub.WaveRunning}))
		return same(f, ids)(rx.RunningWaves())
	})
}

// unfiledWaves: a wave that has ended is behind until its folder shows its version.
func unfiledWaves(f *fixture) {
	n := 0
	open, bare, ended := newWave(&n, 1).Wave, newWave(&n, 1).Wave, newWave(&n, 1).Wave
	open.CheckpointDir, open.Status = "/c", hub.WaveRunning
	bare.Status, bare.CheckpointDir, ended.Status, ended.CheckpointDir = hub.WaveFailed, "", hub.WaveFailed, "/c"
	open.Filed, bare.Filed, ended.Filed = 0, 0, 0
	f.update(func(tx store.Tx) error { return first(tx.PutWave(open), tx.PutWave(bare), tx.PutWave(ended)) })
	behind := func(want ...hub.WaveID) {
		f.Helper()
		f.view(func(rx store.Rx) error { return same(f, want)(rx.UnfiledWaves()) })
	}
	behind(ended.ID)
	f.update(func(tx store.Tx) error { return tx.WaveFiled(ended.UID, 1) })
	behind()
	ended.Filed, ended.Version = 1, 1
	f.view(func(rx store.Rx) error { return same(f, ended)(rx.Wave(ended.ID)) })
	f.update(func(tx store.Tx) error { return tx.SaveWave(ended) })
	behind(ended.ID)
	f.update(func(tx store.Tx) error { return first(tx.WaveFiled(ended.UID, 2), tx.WaveFiled(ended.UID, 1)) })
	behind() // what it shows does not fall back
}

// stagedWaves: nobody sees a wave, a task or a Task of it before it is put.
func stagedWaves(f *fixture) {
	n := 0
	w := newWave(&n, 3)
	w.work[2].Dependencies = []hub.TaskID{w.work[0].ID, w.work[1].ID}
	f.update(func(tx store.Tx) error { return tx.StageWaveTasks(w.UID, w.tasks[:2], w.work[:2]) })
	unseen := func(rx store.Rx) error {
		_, there, err := rx.WaveRow(w.tasks[0].Task)
		if _, missing := rx.Task(w.work[0].ID); !hub.IsCode(missing, hub.CodeTaskNotFound) {
			f.Errorf("a staged Task: %v", missing)
		}
		return first(f.absent("a row of a staged wave", there, err), same(f, []hub.WaveTask(nil))(rx.WaveTasks(w.ID)),
			same(f, []hub.TaskID(nil))(rx.Dependents(w.work[0].ID)))
	}
	f.view(unseen)
	f.update(func(tx store.Tx) error { return tx.StageWaveTasks(w.UID, w.tasks[2:], w.work[2:]) })
	f.view(unseen)
	f.update(func(tx store.Tx) error { return tx.PutWave(w.Wave) })
	f.view(func(rx store.Rx) error {
		for _, t := range w.work {
			if err := same(f, t)(rx.Task(t.ID)); err != nil {
				return err
			}
		}
		return first(same(f, w.tasks)(rx.WaveTasks(w.ID)), same(f, []hub.TaskID{w.work[2].ID})(rx.Dependents(w.work[0].ID)),
			same(f, w.tasks[1])(rx.WaveTaskNamed(w.ID, w.tasks[1].Entry.Token)))
	})
	f.refused(hub.CodeTaskNotFound, func(tx store.Tx) error { _, err := tx.WaveTaskNamed(w.ID, "other"); return err })
	twice := newWave(&n, 1)
	twice.ID = w.ID
	f.refused(hub.CodeWaveExists, twice.put)
	f.view(func(rx store.Rx) error { return same(f, w.tasks)(rx.WaveTasks(w.ID)) })
}

// leftovers are dropped by their uid, or all; what is a wave's stays.
func leftovers(f *fixture) {
	n := 0
	kept, one, two := newWave(&n, 2), newWave(&n, 2), newWave(&n, 2)
	orders := []hub.WaveOrder{{First: 0, Second: 1, Path: "a"}}
	f.update(func(tx store.Tx) error {
		return first(kept.put(tx), tx.StageWaveOrders(kept.UID, orders), tx.StageWaveTasks(one.UID, one.tasks, one.work),
			tx.StageWaveOrders(one.UID, orders), tx.StageWaveTasks(two.UID, two.tasks, two.work))
	})
	f.update(func(tx store.Tx) error { return tx.DropStaged(one.UID) })
	f.update(func(tx store.Tx) error { return tx.PutWave(one.Wave) })
	f.update(func(tx store.Tx) error { return tx.DropLeftovers() })
	f.update(func(tx store.Tx) error { return tx.PutWave(two.Wave) })
	f.view(func(rx store.Rx) error {
		return first(same(f, kept.tasks)(rx.WaveTasks(kept.ID)), same(f, orders)(rx.WaveOrders(kept.ID)), same(f, kept.work[0])(rx.Task(kept.work[0].ID)),
			same(f, []hub.WaveTask(nil))(rx.WaveTasks(one.ID)), same(f, []hub.WaveOrder(nil))(rx.WaveOrders(one.ID)),
			same(f, []hub.WaveTask(nil))(rx.WaveTasks(two.ID)))
	})
	f.refused(hub.CodeTaskNotFound, func(tx store.Tx) error { _, err := tx.Task(two.work[0].ID); return err })
}

// replacedWaves: the Tasks of the former wave that nothing was begun with are
// cancelled, and it is gone.
func replacedWaves(f *fixture) {
	n := 0
	old, w := newWave(&n, 4), newWave(&n, 1)
	w.ID, w.tasks[0].Wave = old.ID, old.ID
	for i, st := range []hub.TaskState{hub.TaskPending, hub.TaskReady, hub.TaskCompleted, hub.TaskReady} {
		old.work[i].State = st
	}
	old.work[3].Latest = "begun"
	f.update(func(tx store.Tx) error {
		return first(old.put(tx), tx.StageWaveOrders(old.UID, []hub.WaveOrder{{First: 0, Second: 1, Path: "a"}}))
	})
	var now hub.Micros
	f.update(func(tx store.Tx) error {
		now = tx.Now()
		return first(tx.StageWaveTasks(w.UID, w.tasks, w.work), tx.ReplaceWave(old.UID, w.Wave))
	})
	for i := range 2 {
		old.work[i].State, old.work[i].UpdatedAt = hub.TaskCancelled, now
		old.work[i].Version++
	}
	f.view(func(rx store.Rx) error {
		for _, t := range old.work {
			if err := same(f, t)(rx.Task(t.ID)); err != nil {
				return err
			}
		}
		_, there, err := rx.WaveRow(old.tasks[0].Task)
		return first(same(f, w.Wave)(rx.Wave(w.ID)), same(f, w.tasks)(rx.WaveTasks(w.ID)), same(f, []hub.WaveOrder(nil))(rx.WaveOrders(w.ID)),
			f.absent("a row of the former wave", there, err))
	})
	f.refused(hub.CodeWaveNotFound, func(tx store.Tx) error { return tx.ReplaceWave(old.UID, newWave(&n, 0).Wave) })
}

// waveRows are tasks with what their Tasks and Dispatches are now.
func waveRows(f *fixture) {
	n := 0
	w := newWave(&n, 2)
	d, former, r := filled[hub.Dispatch](&n), filled[hub.Dispatch](&n), filled[hub.Receipt](&n)
	d.Task, former.Task = w.work[1].ID, w.work[1].ID
	w.work[1].Latest = d.ID
	w.work[0].Result = strings.Repeat("long ", hub.MaxWaveResult)
	f.update(func(tx store.Tx) error {
		return first(w.put(tx), tx.PutDispatch(former, r, nil), tx.PutDispatch(d, r, nil))
	})
	row := func(i int) hub.WaveRow {
		t := w.work[i]
		return hub.WaveRow{WaveTask: w.tasks[i], State: t.State, Result: t.Result, ResultData: t.ResultData}
	}
	clipped, latest := row(0), row(1)
	clipped.Result = clipped.Result[:hub.MaxWaveResult]
	latest.Dispatch, latest.Attempts = &d, 2
	f.view(func(rx store.Rx) error {
		_, there, err := rx.WaveRow("other")
		return first(same(f, []hub.WaveRow{clipped, latest})(rx.WaveRows(w.ID)), found(f, clipped)(rx.WaveRow(clipped.Task)),
			found(f, latest)(rx.WaveRow(latest.Task)), f.absent("a row of no wave", there, err), same(f, []hub.WaveRow{})(rx.WaveRows("other")))
	})
}

func waveEdits(f *fixture) {
	n := 0
	w := newWave(&n, 2)
	f.update(w.put)
	x := filled[hub.WaveTask](&n)
	x.Wave, x.Index, x.Task, x.Entry.Token = w.ID, 1, w.tasks[1].Task, w.tasks[1].Entry.Token
	want := w.tasks[1]
	for _, step := range []struct {
		save func(store.Tx, hub.WaveTask) error
		took func()
	}{
		{store.Tx.SaveWaveProgress, func() { want.WaveProgress = x.WaveProgress }},
		{store.Tx.SaveWaveEntry, func() { want.Entry = x.Entry }},
		{store.Tx.SaveWavePlace, func() { want.Level, want.Sub = x.Level, x.Sub }},
	} {
		f.update(func(tx store.Tx) error { return step.save(tx, x) })
		step.took()
		f.view(func(rx store.Rx) error { return same(f, []hub.WaveTask{w.tasks[0], want})(rx.WaveTasks(w.ID)) })
		f.refused(hub.CodeTaskNotFound, func(tx store.Tx) error { return step.save(tx, filled[hub.WaveTask](&n)) })
	}
	more, t := filled[hub.WaveTask](&n), filled[hub.Task](&n)
	more.Wave, more.Index, more.Task = w.ID, 2, t.ID
	f.update(func(tx store.Tx) error {
		return first(tx.StageWaveTasks(w.UID, []hub.WaveTask{more}, nil), tx.PutTask(t))
	})
	f.view(func(rx store.Rx) error { return same(f, []hub.WaveTask{w.tasks[0], want, more})(rx.WaveTasks(w.ID)) })
}

func waveOrders(f *fixture) {
	n := 0
	w, other := newWave(&n, 0), newWave(&n, 0)
	all := []hub.WaveOrder{{First: 3, Second: 4, Path: "b/ü"}, {First: 0, Second: 4, Path: "a"}, {First: 1, Second: 2, Path: "."}}
	later := []hub.WaveOrder{{First: 0, Second: 4, Path: "c"}}
	f.update(func(tx store.Tx) error {
		return first(tx.StageWaveOrders(w.UID, all[:1]), tx.StageWaveOrders(other.UID, later))
	})
	f.update(func(tx store.Tx) error {
		return first(tx.StageWaveOrders(w.UID, all[1:]), w.put(tx), other.put(tx))
	})
	f.view(func(rx store.Rx) error {
		return first(same(f, all)(rx.WaveOrders(w.ID)), same(f, later)(rx.WaveOrders(other.ID)))
	})
	f.update(func(tx store.Tx) error {
		return first(tx.StageWaveOrders("new", later), tx.MoveWaveOrders("new", w.UID))
	})
	f.update(func(tx store.Tx) error { return tx.MoveWaveOrders("none", other.UID) })
	f.view(func(rx store.Rx) error {
		return first(same(f, later)(rx.WaveOrders(w.ID)), same(f, []hub.WaveOrder(nil))(rx.WaveOrders(other.ID)))
	})
}

// waveUsages are in the order of the tasks, those of one in that of its Dispatches.
func waveUsages(f *fixture) {
	n := 0
	w, other := newWave(&n, 2), newWave(&n, 1)
	var want []hub.DispatchUsage
	dispatched := func(tx store.Tx, t hub.TaskID, known bool) error {
		d := filled[hub.Dispatch](&n)
		if d.Task = t; !known {
			d.Usage = nil
		}
		want = append(want, hub.DispatchUsage{Task: t, Dispatch: d.ID, Usage: d.Usage})
		return tx.PutDispatch(d, hub.Receipt{}, nil)
	}
	f.update(func(tx store.Tx) error {
		want = nil
		a, b := w.work[0].ID, w.work[1].ID
		return first(w.put(tx), other.put(tx), dispatched(tx, b, true), dispatched(tx, a, true), dispatched(tx, a, false), dispatched(tx, a, true),
			dispatched(tx, other.work[0].ID, true))
	})
	f.view(func(rx store.Rx) error {
		return first(same(f, []hub.DispatchUsage{want[1], want[3], want[0]})(rx.WaveUsages(w.ID)), same(f, want[4:])(rx.WaveUsages(other.ID)))
	})
}

func rewrittenTasks(f *fixture) {
	n := 0
	a, b := filled[hub.Task](&n), filled[hub.Task](&n)
	a.Dependencies = []hub.TaskID{b.ID, "gone"}
	f.update(func(tx store.Tx) error { return first(tx.PutTask(a), tx.PutTask(b)) })
	f.published()
	want := filled[hub.Task](&n)
	want.ID, want.Dependencies = a.ID, []hub.TaskID{b.ID, "new"}
	f.update(func(tx store.Tx) error { return tx.RewriteTask(want) })
	equal(f, []hub.Signal{{Topic: hub.TopicTask, Key: string(a.ID)}}, f.published())
	f.view(func(rx store.Rx) error {
		return first(same(f, want)(rx.Task(a.ID)), same(f, b)(rx.Task(b.ID)), same(f, []hub.TaskID{a.ID})(rx.Dependents("new")),
			same(f, []hub.TaskID{a.ID})(rx.Dependents(b.ID)), same(f, []hub.TaskID(nil))(rx.Dependents("gone")))
	})
	f.refused(hub.CodeTaskNotFound, func(tx store.Tx) error { return tx.RewriteTask(filled[hub.Task](&n)) })
}
