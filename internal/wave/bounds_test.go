package wave

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// settles runs the loop of a wave until the wave is final. No start can be made.
func (w *world) settles(id hub.WaveID) {
	w.Helper()
	w.Service.Config.Spawn = func(func(context.Context)) bool { return false }
	l := newLoop(w.Service, id)
	_, done, err := l.reconcile(w.Context())
	if err != nil || !done {
		w.Fatalf("the wave does not come to its end: done %v, %v", done, err)
	}
}

// many are n tasks with nothing between them.
func manyTasks(n int, goal string) []hub.WaveEntry {
	es := make([]hub.WaveEntry, n)
	for i := range es {
		es[i] = entry(fmt.Sprintf("t%d", i))
		es[i].Goal = goal
	}
	return es
}

func (w *world) spawned(in CreateInput) {
	w.Helper()
	in.Spawn = true
	w.create(in)
}

func (w *world) cancel(id hub.WaveID) {
	w.Helper()
	if _, err := w.Cancel(w.Context(), w.request("wave_cancel", w.wave(id).Iteration), id, CancelInput{}); err != nil {
		w.Fatal(err)
	}
}

// What ends a wave is written down in as many transactions as its Tasks need,
// however large their texts and results are.
func TestAWaveOfLargeTasksEndsAndIsOpenedAgain(t *testing.T) {
	w := newWorld(t)
	w.spawned(w.input("w1", manyTasks(12, long(hub.MaxSpecBytes))...))
	w.cancel("w1")
	w.settles("w1")
	for _, x := range w.tasks("w1") {
		if got := w.task(x.Task).State; got != hub.TaskCancelled {
			t.Errorf("%s is %s", x.Entry.Token, got)
		}
	}
	w.spawned(w.input("w2", manyTasks(2*maxChanges/3, "do it")...))
	w.cancel("w2")
	w.settles("w2")
	for _, x := range w.tasks("w2") {
		w.update(func(tx store.Tx) error {
			task, err := tx.Task(x.Task)
			task.Result, task.ResultData = long(hub.MaxBodyBytes), []byte(`"`+long(hub.MaxResultBytes-2)+`"`)
			return errors.Join(err, tx.SaveTask(task))
		})
	}
	if _, err := w.Retry(t.Context(), w.request("wave_retry", 1), "w2", RetryInput{}); err != nil {
		t.Fatal(err)
	}
	w.cancel("w2") // it opens them before it ends them
	w.settles("w2")
}

// The notice of a wave's end is mail: whatever its tasks failed of, it fits.
func TestTheNoticeOfAnEndFitsInto(t *testing.T) {
	w := newWorld(t)
	in := w.input("w1", manyTasks(maxTold+10, "do it")...)
	in.Plan.Policy.OnFailure = hub.FailContinue
	w.spawned(in)
	for _, x := range w.tasks("w1") {
		update := TaskUpdate{Status: hub.WaveFailed, Reason: strings.Repeat(`"`, hub.MaxWaveReason)}
		if _, err := w.UpdateTask(t.Context(), w.request("wave_task_update", x.Entry.Token), "w1", x.Entry.Token, update); err != nil {
			t.Fatal(err)
		}
	}
	w.settles("w1")
	if got := w.wave("w1").Status; got != hub.WaveFailed {
		t.Errorf("the wave is %s", got)
	}
}

// A wave is spawned however many and long the decisions of its plan are.
func TestAWaveOfManyOrdersIsSpawned(t *testing.T) {
	w := newWorld(t)
	w.create(w.input("w1", manyTasks(110, "do it")...))
	uid, path := w.wave("w1").UID, long(2<<10)
	for second := range 110 {
		w.update(func(tx store.Tx) error {
			var os []hub.WaveOrder
			for first := range second {
				os = append(os, hub.WaveOrder{First: first, Second: second, Path: path})
			}
			return tx.StageWaveOrders(uid, os)
		})
	}
	if _, err := w.Spawn(t.Context(), w.request("wave_spawn", 1), "w1", nil); err != nil {
		t.Fatal(err)
	}
	var es []hub.WaveEvent
	w.view(func(rx store.Rx) (err error) {
		es, err = rx.Events(store.EventFilter{Wave: "w1"}, 0, 10_000)
		return err
	})
	last := es[len(es)-1]
	if len(es) < 100 || last.Type != hub.EventWarning || !strings.Contains(string(last.Data), "more decisions") {
		t.Errorf("%d events, the last is %s %s", len(es), last.Type, last.Data)
	}
}
