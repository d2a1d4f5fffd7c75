package wave

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// attempt gives a task a Dispatch, its Task the state of it.
func (w *world) attempt(x hub.WaveTask, d hub.Dispatch) hub.DispatchID {
	w.Helper()
	d.ID, d.Task, d.Run = hub.NewDispatchID(), x.Task, w.run
	w.update(func(tx store.Tx) error {
		t, err := tx.Task(x.Task)
		t.Latest, t.State = d.ID, hub.TaskStateFor(d.State)
		return errors.Join(err, tx.PutDispatch(d, hub.Receipt{}, nil), tx.SaveTask(t))
	})
	return d.ID
}

func (w *world) show(id hub.WaveID) Snapshot {
	w.Helper()
	s, err := w.Show(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func TestShowPending(t *testing.T) {
	w := newWorld(t)
	w.pending()
	s := w.show("w1")
	equal(t, Summary{
		Total: 3, Gate: hub.WaveRunning,
		ByStatus: map[hub.WaveStatus]int{hub.WavePending: 3, hub.WaveRunning: 0, hub.WaveCompleted: 0, hub.WaveFailed: 0, hub.WaveCancelled: 0},
		Levels: []LevelShown{
			{Level: 1, Sub: "a", Status: hub.WavePending, Total: 1}, {Level: 1, Sub: "b", Status: hub.WavePending, Total: 1},
			{Level: 2, Status: hub.WavePending, Total: 1},
		},
	}, s.Summary)
	equal(t, []Residual{}, s.Residuals)
	_, err := w.Show(t.Context(), "other")
	refused(t, hub.CodeWaveNotFound, err)
	_, err = w.Graph(t.Context(), "other")
	refused(t, hub.CodeWaveNotFound, err)
}

// What is used is summed over attempts; what says nothing that is understood is
// unmetered.
func TestShowSumsAndResiduals(t *testing.T) {
	w := newWorld(t)
	in := w.input("w1")
	for i := range 7 {
		in.Plan.Tasks = append(in.Plan.Tasks, entry("t"+strconv.Itoa(i)))
	}
	in.Plan.Policy.Retry = 1
	w.create(in)
	xs := w.tasks("w1")
	used := func(in, cached, out string, cost string) json.RawMessage {
		return json.RawMessage(`{"input_tokens":` + in + `,"cached_input_tokens":` + cached + `,"output_tokens":` + out + `,"cost_usd":` + cost + `}`)
	}
	w.attempt(xs[0], hub.Dispatch{State: hub.Failed, Reason: "x", Usage: used("100", "40", "5", "0.5")})
	w.attempt(xs[0], hub.Dispatch{State: hub.Succeeded, Usage: used("10", "null", "1", "null")})
	w.attempt(xs[1], hub.Dispatch{State: hub.Ready})
	w.attempt(xs[2], hub.Dispatch{State: hub.Failed, Reason: "x", Usage: json.RawMessage(`{"words":7}`)})
	w.attempt(xs[3], hub.Dispatch{State: hub.Failed, Reason: "y"})
	w.attempt(xs[3], hub.Dispatch{State: hub.Failed, Reason: "x"})
	unknown := w.attempt(xs[4], hub.Dispatch{State: hub.StopUnknown, Server: hub.Server{PeerID: "p", Name: "windows"}})
	gone := w.attempt(xs[5], hub.Dispatch{State: hub.Abandoned, Server: hub.Server{Name: "here"}})
	left := w.attempt(xs[6], hub.Dispatch{State: hub.Abandoned, Server: hub.Server{Name: "here"}})
	w.update(func(tx store.Tx) error {
		v, err := tx.Wave("w1")
		v.Status, v.Iteration = hub.WaveRunning, 1
		for i, x := range xs {
			if x.Iteration = 1; i > 3 {
				x.EndedAs, x.EndedReason = hub.WaveFailed, hub.EndTimeout
				x.Noted = []hub.DispatchID{unknown, gone, left}[i-4]
			}
			err = errors.Join(err, tx.SaveWaveProgress(x))
		}
		return errors.Join(err, tx.SaveWave(v), tx.PutAttachment(hub.Attachment{Dispatch: gone, ExitDone: true, Capability: hub.CapActive}),
			tx.PutAttachment(hub.Attachment{Dispatch: left, Capability: hub.CapActive}))
	})
	s := w.show("w1")
	var statuses []hub.WaveStatus
	for _, x := range s.Tasks {
		statuses = append(statuses, x.Status)
	}
	equal(t, []hub.WaveStatus{hub.WaveCompleted, hub.WaveRunning, hub.WaveRunning, hub.WaveFailed, hub.WaveFailed, hub.WaveFailed, hub.WaveFailed}, statuses)
	equal(t, []Residual{
		{Dispatch: unknown, Token: "t4", State: hub.StopUnknown, Server: "windows"}, {Dispatch: left, Token: "t6", State: hub.Abandoned, Server: "here"},
	}, s.Residuals)
	equal(t, Usage{CostUSD: 0.5, Tokens: 76, Unmetered: 7}, s.Usage)
	equal(t, &Usage{CostUSD: 0.5, Tokens: 76}, s.Tasks[0].Usage)
	if s.Tasks[1].Usage != nil || s.Tasks[2].Usage != nil {
		t.Error("a usage of nothing")
	}
	equal(t, []int{2, 1, 1, 2}, []int{s.Tasks[0].Attempts, s.Tasks[1].Attempts, s.Tasks[2].Attempts, s.Tasks[3].Attempts})
	equal(t, map[hub.WaveStatus]int{hub.WavePending: 0, hub.WaveRunning: 2, hub.WaveCompleted: 1, hub.WaveFailed: 4, hub.WaveCancelled: 0}, s.Summary.ByStatus)
	equal(t, []LevelShown{{Level: 1, Status: hub.WaveFailed, Total: 7, Completed: 1}}, s.Summary.Levels)
}

// Only failures of this iteration count, and closures of a pool do not.
func TestFailuresOfThisIteration(t *testing.T) {
	w := newWorld(t)
	in := w.input("w1", entry("a"))
	in.Plan.Policy.Retry = 2
	w.create(in)
	x := w.tasks("w1")[0]
	failed := hub.Dispatch{State: hub.Failed, Reason: "x"}
	for range 3 {
		w.attempt(x, failed)
	}
	x.Base = w.attempt(x, failed)
	w.update(func(tx store.Tx) error { return tx.SaveWaveProgress(x) })
	count := func() (n int) {
		t.Helper()
		w.view(func(rx store.Rx) error {
			l, err := lookAt(rx, "w1")
			n = l.failures[x.Task]
			return err
		})
		return n
	}
	equal(t, 0, count())
	for range 20 {
		w.attempt(x, hub.Dispatch{State: hub.Failed, Reason: string(hub.ErrorRateLimited)})
	}
	equal(t, 0, count())
	w.attempt(x, failed)
	w.attempt(x, hub.Dispatch{State: hub.Stopped})
	w.attempt(x, failed)
	equal(t, 2, count())
	for range 5 {
		w.attempt(x, failed)
	}
	equal(t, 7, count())
}

func TestGateAndLevels(t *testing.T) {
	const p, r, c, f, x = hub.WavePending, hub.WaveRunning, hub.WaveCompleted, hub.WaveFailed, hub.WaveCancelled
	for _, row := range []struct {
		wave        hub.WaveStatus
		tasks       []hub.WaveStatus
		gate, level hub.WaveStatus
	}{
		{p, nil, r, p}, {r, nil, c, p}, {c, nil, c, p},
		{p, []hub.WaveStatus{p, p}, r, p}, {p, []hub.WaveStatus{c}, r, c},
		{r, []hub.WaveStatus{p, c}, r, r}, {r, []hub.WaveStatus{r, p}, r, r}, {r, []hub.WaveStatus{f, p}, r, f}, {r, []hub.WaveStatus{x, r}, r, x},
		{r, []hub.WaveStatus{f, x, c}, f, f}, {r, []hub.WaveStatus{x, c}, x, x}, {r, []hub.WaveStatus{c, c}, c, c},
		{f, []hub.WaveStatus{f, p}, f, f}, {x, []hub.WaveStatus{p, c}, x, r}, {c, []hub.WaveStatus{c, c}, c, c},
	} {
		var ts []TaskShown
		for _, st := range row.tasks {
			ts = append(ts, TaskShown{Status: st})
		}
		n := countsOf(ts)
		if gate := gateOf(hub.Wave{Status: row.wave}, n); gate != row.gate {
			t.Errorf("%s of %v comes to %s, want %s", row.wave, row.tasks, gate, row.gate)
		}
		if level := levelStatus(n, len(ts)); level != row.level {
			t.Errorf("a level of %v is %s, want %s", row.tasks, level, row.level)
		}
	}
}

func TestGraph(t *testing.T) {
	w := newWorld(t)
	w.pending()
	w.changed("a", TaskUpdate{Status: hub.WaveCompleted})
	got, err := w.Graph(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, Graph{
		Wave:       "w1",
		Levels:     []hub.PlanLevel{{Wave: 1, Sub: "a", Tasks: []string{"a"}}, {Wave: 1, Sub: "b", Tasks: []string{"b"}}, {Wave: 2, Tasks: []string{"c"}}},
		Serialized: []hub.Serialized{{Path: "src", First: "a", Second: "b", MovedTo: "1b"}},
		Edges:      []Edge{{"a", "c", EdgeDependency}, {"b", "c", EdgeDependency}, {"a", "b", EdgeOrdering}},
		Status:     map[string]hub.WaveStatus{"a": hub.WaveCompleted, "b": hub.WavePending, "c": hub.WavePending},
	}, got)
	w.create(w.input("empty"))
	if got, err = w.Graph(t.Context(), "empty"); err != nil || got.Levels == nil || got.Edges == nil || got.Serialized == nil {
		t.Errorf("%+v: %v", got, err)
	}
}

// The cost of a large wave grows with its size: 10 000 tasks are shown in less than
// 12 times the time of 1000.
func BenchmarkShow(b *testing.B) {
	for _, tasks := range []int{1000, 10_000} {
		b.Run(strconv.Itoa(tasks), func(b *testing.B) {
			w := newWorld(b)
			in := w.input("w1")
			for i := range tasks {
				in.Plan.Tasks = append(in.Plan.Tasks, entry("t"+strconv.Itoa(i)))
			}
			w.create(in)
			w.halfDone()
			b.ResetTimer()
			for range b.N {
				if s := w.show("w1"); s.Summary.Total != tasks {
					b.Fatal(s.Summary)
				}
			}
		})
	}
}

// halfDone gives every other task of w1 an attempt that succeeded.
func (w *world) halfDone() {
	w.Helper()
	xs := w.tasks("w1")
	for len(xs) > 0 {
		part := xs[:min(1000, len(xs))]
		xs = xs[len(part):]
		w.update(func(tx store.Tx) error {
			for i, x := range part {
				if i%2 == 0 {
					continue
				}
				d := hub.Dispatch{ID: hub.NewDispatchID(), Task: x.Task, Run: w.run, State: hub.Succeeded, Usage: json.RawMessage(`{"input_tokens":5}`)}
				t, err := tx.Task(x.Task)
				t.Latest, t.State = d.ID, hub.TaskCompleted
				if err := errors.Join(err, tx.PutDispatch(d, hub.Receipt{}, nil), tx.SaveTask(t)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// A worker that is not known to wait is at work, and the word of an owner that is
// not heard any more says nothing about now.
func TestWhatIsKnownOfAWorkerSaysWhatItWaitsFor(t *testing.T) {
	for _, c := range []struct{ link, said, want string }{
		{"local", hub.WaitsForNone, ""}, {"local", hub.WaitsForUnknown, ""}, {"local", hub.WaitsForPermission, hub.WaitsForPermission},
		{"up", hub.WaitsForUnknown, ""}, {"up", hub.WaitsForVerification, hub.WaitsForVerification},
		{"down", hub.WaitsForNone, "peer"}, {"down", hub.WaitsForUnknown, "peer"}, {"down", hub.WaitsForPermission, "peer"},
	} {
		if got := waitsBy(hub.Observation{Link: c.link, WaitingFor: c.said}); got != c.want {
			t.Errorf("link %s, said %s: %q, want %q", c.link, c.said, got, c.want)
		}
	}
}
