package storetest

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// appendEvents stores the events in one transaction and returns them as they are
// kept.
func appendEvents(f *fixture, es ...hub.WaveEvent) (kept []hub.WaveEvent) {
	f.Helper()
	var seqs []int64
	f.update(func(tx store.Tx) error {
		seqs = make([]int64, len(es))
		for i, e := range es {
			var err error
			if seqs[i], err = tx.AppendEvent(e); err != nil {
				return err
			}
		}
		return nil
	})
	f.view(func(rx store.Rx) (err error) {
		kept, err = rx.Events(store.EventFilter{}, seqs[0]-1, len(seqs))
		return err
	})
	for i, e := range kept {
		if e.Seq != seqs[i] || e.At == 0 {
			f.Errorf("event %d is %+v, its sequence was %d", i, e, seqs[i])
		}
	}
	return kept
}

// events: in order, by filter and behind a sequence; the place of a Task of a wave
// is filled in.
func events(f *fixture) {
	task := hub.NewTaskID()
	putWave(f, hub.Wave{ID: "w1", UID: "wave_u1", Run: "run_a", Status: hub.WaveRunning, Total: 2}, task)
	es := appendEvents(f,
		hub.WaveEvent{Run: "run_a", Wave: "w1", Type: hub.EventWaveStarted, Total: 2},
		hub.WaveEvent{Run: "run_a", Wave: "w10", Type: hub.EventWaveStarted, Total: 1},
		hub.WaveEvent{Run: "run_a", Task: task, Type: hub.EventMilestone, Data: json.RawMessage(`{"name":"half"}`)},
		hub.WaveEvent{Run: "run_b", Task: hub.NewTaskID(), Type: hub.EventMilestone},
	)
	if len(es) != 4 {
		f.Fatalf("kept are %+v", es)
	}
	if e := es[2]; e.Wave != "w1" || e.Token != "t0" || e.Index != 0 || e.Total != 2 || string(e.Data) != `{"name":"half"}` {
		f.Errorf("the milestone of a wave's Task is %+v", e)
	}
	if e := es[3]; e.Wave != "" || e.Token != "" || e.Index != -1 || string(e.Data) != "{}" {
		f.Errorf("the milestone of another Task is %+v", e)
	}
	f.view(func(rx store.Rx) error {
		gone, last, err := rx.EventRange()
		if gone != 0 || last != es[3].Seq {
			f.Errorf("the range is %d, %d", gone, last)
		}
		return first(err,
			same(f, []hub.WaveEvent{es[0], es[2]})(rx.Events(store.EventFilter{Wave: "w1"}, 0, 10)),
			same(f, []hub.WaveEvent{es[1]})(rx.Events(store.EventFilter{Wave: "w10"}, 0, 10)),
			same(f, es[:3])(rx.Events(store.EventFilter{Run: "run_a"}, 0, 10)),
			same(f, es[1:3])(rx.Events(store.EventFilter{}, es[0].Seq, 2)),
			same(f, []hub.WaveEvent(nil))(rx.Events(store.EventFilter{}, es[3].Seq, 10)))
	})
	f.refused(hub.CodeInternal, func(tx store.Tx) error {
		_, err := tx.AppendEvent(hub.WaveEvent{Type: "x", Data: json.RawMessage(`{`)})
		return err
	})
}

// sweptEvents: the old ones go, but none of a wave that has not ended and not the
// newest; the range tells how far that has come.
func sweptEvents(f *fixture) {
	putWave(f, hub.Wave{ID: "on", UID: "wave_u1", Run: "r", Status: hub.WaveRunning, Total: 1}, hub.NewTaskID())
	putWave(f, hub.Wave{ID: "over", UID: "wave_u2", Run: "r", Status: hub.WaveFailed, Total: 1}, hub.NewTaskID())
	es := appendEvents(f, hub.WaveEvent{Wave: "on"}, hub.WaveEvent{Wave: "over"}, hub.WaveEvent{}, hub.WaveEvent{Wave: "over"}, hub.WaveEvent{Wave: "over"})
	late := es[4].At + 1
	sweep := func(before hub.Micros, limit, want int, swept int64) {
		f.Helper()
		var n int
		f.update(func(tx store.Tx) (err error) { n, err = tx.SweepEvents(before, limit); return err })
		f.view(func(rx store.Rx) error {
			gone, last, err := rx.EventRange()
			if n != want || gone != swept || last != es[4].Seq {
				f.Errorf("%d are gone, up to %d of %d; want %d, %d", n, gone, last, want, swept)
			}
			return err
		})
	}
	sweep(es[0].At, 10, 0, 0)
	sweep(late, 2, 2, es[2].Seq)
	sweep(late, 10, 1, es[3].Seq)
	sweep(late, 10, 0, es[3].Seq)
	f.view(func(rx store.Rx) error {
		return same(f, []hub.WaveEvent{es[0], es[4]})(rx.Events(store.EventFilter{}, 0, 10))
	})
}

// putWave stores a wave with the Tasks, named t0, t1 and so on.
func putWave(f *fixture, w hub.Wave, tasks ...hub.TaskID) {
	f.Helper()
	ws, ts := make([]hub.WaveTask, len(tasks)), make([]hub.Task, len(tasks))
	for i, id := range tasks {
		ws[i] = hub.WaveTask{Wave: w.ID, Index: i, Level: 1, Task: id, Entry: hub.WaveEntry{Token: "t" + string(rune('0'+i))}}
		ts[i] = hub.Task{ID: id, Run: w.Run, State: hub.TaskReady}
	}
	f.update(func(tx store.Tx) error { return first(tx.StageWaveTasks(w.UID, ws, ts), tx.PutWave(w)) })
}
