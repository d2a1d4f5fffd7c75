package wave

import (
	"slices"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// looked is a view of a wave of the rows.
func looked(w hub.Wave, rows ...hub.WaveRow) *view {
	v := &view{wave: w, written: -1, gates: map[string]hold{}, tasks: make([]task, len(rows))}
	for i := range rows {
		rows[i].Index, rows[i].Task = i, hub.TaskID(rune('a'+i))
		v.tasks[i].WaveRow = rows[i]
		if d := rows[i].Dispatch; d != nil && d.State == hub.Failed {
			v.tasks[i].failures = 1
		}
	}
	v.shape = shapeOf(rows, nil)
	return v
}

// atHand is a row whose Dispatch is in the log.
func atHand(r hub.WaveRow) hub.WaveRow {
	r.Noted, r.StartedAt = r.Dispatch.ID, 1
	return r
}

// only is the one change of a decision.
func only(t *testing.T, d decision) change {
	t.Helper()
	if len(d.changes) != 1 {
		t.Fatalf("decided: %+v", d)
	}
	return d.changes[0]
}

func kinds(c change) (out []string) {
	for _, e := range c.events {
		out = append(out, e.kind)
	}
	return out
}

func TestALiveDispatchIsAdopted(t *testing.T) {
	r := rowOf(hub.TaskDispatched, hub.Ready, "")
	r.Iteration, r.Dispatch.RetryOf = 0, "disp_0"
	c := only(t, decide(looked(runningWave(nil), r)))
	if c.progress.Base != "disp_0" || c.set != "" || c.fence {
		t.Fatalf("opened: %+v", c)
	}
	r.WaveProgress = c.progress
	c = only(t, decide(looked(runningWave(nil), r)))
	if c.progress.Noted != "disp_1" || !slices.Equal(kinds(c), []string{hub.EventTaskDispatched}) {
		t.Errorf("adopted: %+v", c)
	}
	r.WaveProgress = c.progress
	if d := decide(looked(runningWave(nil), r)); d.commits() || len(d.starts) > 0 {
		t.Errorf("then: %+v", d)
	}
}

func TestOpeningLeavesWhatIsCompleted(t *testing.T) {
	again := runningWave(func(w *hub.Wave) { w.Iteration = 2 })
	done := atHand(rowOf(hub.TaskCompleted, hub.Succeeded, ""))
	done.EndedAs, done.CompletedAt = hub.WaveCompleted, 5
	if c := opened(again, 0, done); c.progress.EndedAs != hub.WaveCompleted || c.progress.CompletedAt != 5 || c.progress.Iteration != 2 || c.set != "" {
		t.Errorf("completed: %+v", c)
	}
	done.EndedAs, done.EndedReason = hub.WaveFailed, "x"
	if c := opened(again, 0, done); c.progress.EndedAs != "" || c.progress.EndedReason != "" || c.progress.CompletedAt != 0 {
		t.Errorf("completed after it had failed: %+v", c)
	}
	for _, x := range []struct {
		task hub.TaskState
		d    hub.DispatchState
	}{{hub.TaskFailed, hub.Failed}, {hub.TaskBlocked, hub.Stopped}, {hub.TaskBlocked, hub.Abandoned}, {hub.TaskCancelled, ""}} {
		c := opened(again, 0, rowOf(x.task, x.d, ""))
		if c.set != hub.TaskReady || c.progress.EndedAs != "" || x.d != "" && c.progress.Base != "disp_1" {
			t.Errorf("%s, %s: %+v", x.task, x.d, c)
		}
	}
	if c := opened(again, 0, rowOf(hub.TaskPending, "", "")); c.set != "" {
		t.Errorf("pending: %+v", c)
	}
}

func TestAPersonsStopWaitsForItsOperator(t *testing.T) {
	next := rowOf(hub.TaskPending, "", "")
	next.Entry.Token, next.Entry.Dependencies, next.Level = "b", []string{"a"}, 2
	d := decide(looked(runningWave(nil), atHand(rowOf(hub.TaskBlocked, hub.Stopped, "")), next))
	if d.commits() || len(d.starts)+len(d.stops) > 0 || !slices.Equal(d.waits, []string{waitOperator, waitDependency}) {
		t.Errorf("decided: %+v", d)
	}
}

func TestAWorkersCancellationEndsItsTaskAlone(t *testing.T) {
	c := only(t, decide(looked(runningWave(nil), atHand(rowOf(hub.TaskBlocked, hub.Stopped, hub.ReasonCancelledByWorker)))))
	if c.progress.EndedAs != hub.WaveCancelled || c.progress.EndedReason != hub.EndByWorker || c.set != hub.TaskCancelled || c.fence {
		t.Errorf("decided: %+v", c)
	}
}

// A completion that commits before its fence counts: the end that was decided, and
// what follows from it, is not written.
func TestACompletionBeforeItsFence(t *testing.T) {
	next := rowOf(hub.TaskPending, "", "")
	next.Entry.Token, next.Entry.Dependencies, next.Level = "b", []string{"a"}, 2
	for _, how := range []string{hub.FailFast, hub.FailContinue} {
		v := looked(runningWave(func(w *hub.Wave) { w.Policy.OnFailure = how }), atHand(rowOf(hub.TaskDispatched, hub.Ready, "")), next)
		v.tasks[0].lost = true
		d := decide(v)
		if len(d.changes) != 2 || !d.changes[0].fence || (d.ending != nil) != (how == hub.FailFast) {
			t.Fatalf("%s: decided: %+v", how, d)
		}
		if e, cs := d.holding(func(int) bool { return true }); e != d.ending || len(cs) != 2 {
			t.Errorf("%s: of what is as it was holds %+v, %+v", how, e, cs)
		}
		if e, cs := d.holding(func(i int) bool { return i != 0 }); e != nil || len(cs) != 0 {
			t.Errorf("%s: of what has completed meanwhile holds %+v, %+v", how, e, cs)
		}
	}
}

func TestWhatIsRefusedForGoodFails(t *testing.T) {
	pooled := atHand(rowOf(hub.TaskFailed, hub.Failed, "rate_limited"))
	for name, r := range map[string]hub.WaveRow{"pending": rowOf(hub.TaskReady, "", ""), "pooled": pooled} {
		v := looked(runningWave(nil), r)
		v.tasks[0].refused = hub.CodeWorkerNotFound
		d := decide(v)
		if c := only(t, d); c.progress.EndedAs != hub.WaveFailed || c.progress.EndedReason != "worker_not_found" || d.ending == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// In a wave that is ended a retry does not come, and a closed pool is no failure.
func TestWhatWaitedWhenItsWaveWasEnded(t *testing.T) {
	for reason, want := range map[string]hub.WaveStatus{"x": hub.WaveFailed, "rate_limited": hub.WaveCancelled} {
		for _, when := range []string{"before", "now"} {
			w := runningWave(retries(2))
			if when == "before" {
				ending(&w)
			}
			v := looked(w, atHand(rowOf(hub.TaskFailed, hub.Failed, reason)))
			v.elapsed = 2 * time.Hour
			if c := only(t, decide(v)); c.progress.EndedAs != want {
				t.Errorf("%s, ended %s: %+v", reason, when, c)
			}
		}
	}
}

func TestPatienceAtStartUp(t *testing.T) {
	hour := time.Hour
	for name, x := range map[string]struct {
		elapsed, atStart time.Duration
		patient, ends    bool
	}{
		"in time":                              {elapsed: hour - 1},
		"over":                                 {elapsed: hour, ends: true},
		"over when the hub came up":            {elapsed: hour + time.Second, atStart: hour, patient: true},
		"over in the first minute":             {elapsed: hour, atStart: hour - time.Second, patient: true, ends: true},
		"over when it came up, a minute later": {elapsed: hour + time.Minute, atStart: hour, ends: true},
	} {
		v := looked(runningWave(nil), atHand(rowOf(hub.TaskDispatched, hub.Ready, "")))
		v.elapsed, v.atStart, v.patient = x.elapsed, x.atStart, x.patient
		d := decide(v)
		if got := d.ending != nil && d.ending.Reason == hub.EndTimeout; got != x.ends {
			t.Errorf("%s: %+v", name, d)
		}
		if x.ends && (!d.changes[0].fence || d.changes[0].progress.EndedAs != hub.WaveCancelled) {
			t.Errorf("%s: its worker: %+v", name, d.changes)
		}
	}
}

func TestATasksTimeRunsFromReady(t *testing.T) {
	r := rowOf(hub.TaskDispatched, hub.Starting, "")
	r.Entry.TimeoutSecs = 60
	v := looked(runningWave(nil), r)
	v.elapsed = 100 * time.Second
	c := only(t, decide(v))
	if c.progress.ReadyMS != 0 || c.progress.EndedAs != "" {
		t.Fatalf("starting: %+v", c)
	}
	r.WaveProgress, r.Dispatch = c.progress, &hub.Dispatch{ID: "disp_1", State: hub.Ready}
	if v = looked(runningWave(nil), r); decide(v).changes[0].progress.ReadyMS == 0 {
		t.Fatalf("ready: %+v", decide(v))
	}
	r.ReadyMS = 100_000
	for elapsed, ended := range map[time.Duration]hub.WaveStatus{159 * time.Second: "", 160 * time.Second: hub.WaveFailed} {
		v = looked(runningWave(nil), r)
		v.elapsed = elapsed
		if d := decide(v); ended == "" && d.commits() || ended != "" && (only(t, d).progress.EndedReason != hub.EndTimeout || !only(t, d).fence) {
			t.Errorf("after %v: %+v", elapsed, d)
		}
	}
	r.Dispatch = &hub.Dispatch{ID: "disp_2", State: hub.Starting, RetryOf: "disp_1"}
	v = looked(runningWave(nil), r)
	v.elapsed = time.Hour / 2
	if c := only(t, decide(v)); c.progress.Noted != "disp_2" || c.progress.ReadyMS != 0 || c.progress.EndedAs != "" {
		t.Errorf("the next attempt: %+v", c)
	}
}

func TestAnUnprovenStopHoldsItsSlotAndItsOrder(t *testing.T) {
	gone := atHand(rowOf(hub.TaskBlocked, hub.StopUnknown, ""))
	gone.EndedAs = hub.WaveFailed
	next := rowOf(hub.TaskReady, "", "")
	next.Entry.Token = "b"
	w := runningWave(func(w *hub.Wave) { w.Policy.Concurrency, w.Policy.OnFailure = 1, hub.FailContinue })
	d := decide(looked(w, gone, next))
	if len(d.starts) > 0 || d.waits[1] != waitConcurrency || !slices.Equal(d.stops, []int{0}) || d.final != "" {
		t.Errorf("its slot: %+v", d)
	}
	w.Policy.Concurrency = 0
	v := looked(w, gone, next)
	v.shape.orders = []hub.WaveOrder{{First: 0, Second: 1, Path: "p"}}
	if d = decide(v); len(d.starts) > 0 || d.waits[1] != waitOrdering {
		t.Errorf("its order: %+v", d)
	}
	v.tasks[0].Dispatch = &hub.Dispatch{ID: "disp_1", State: hub.Stopped}
	v.tasks[0].State = hub.TaskFailed
	if d = decide(v); !slices.Equal(d.starts, []int{1}) {
		t.Errorf("proven: %+v", d)
	}
}

// Final means that owners were asked: of what stays unknown then a residual tells.
func TestAWaveIsFinalOnceItsStopsAreAnswered(t *testing.T) {
	for state, pursued := range map[hub.DispatchState][]hub.WaveStatus{
		hub.StopUnknown: {"", hub.WaveFailed}, hub.Stopping: {"", ""}, hub.Ready: {"", ""}, hub.Abandoned: {hub.WaveFailed, hub.WaveFailed},
	} {
		for i, want := range pursued {
			r := atHand(rowOf(hub.TaskFailed, state, ""))
			r.EndedAs = hub.WaveFailed
			v := looked(runningWave(func(w *hub.Wave) { w.Ending = &hub.WaveEnding{As: hub.WaveFailed, Reason: hub.EndTaskFailed} }), r)
			v.tasks[0].pursued = i == 1
			if d := decide(v); d.final != want {
				t.Errorf("%s, answered %v: %q", state, i == 1, d.final)
			}
		}
	}
}

func TestAnEmptyWaveCompletes(t *testing.T) {
	if d := decide(looked(runningWave(nil))); d.final != hub.WaveCompleted {
		t.Errorf("decided: %+v", d)
	}
}

func TestALevelWaitsForItsCheckpoint(t *testing.T) {
	done := atHand(rowOf(hub.TaskCompleted, hub.Succeeded, ""))
	done.EndedAs = hub.WaveCompleted
	next := rowOf(hub.TaskReady, "", "")
	next.Entry.Token, next.Level = "b", 2
	for written, want := range map[int]string{-1: "", 0: waitCheckpoint, 1: ""} {
		v := looked(runningWave(func(w *hub.Wave) { w.Policy.Order = hub.OrderBarrier }), done, next)
		v.written = written
		if d := decide(v); d.waits[1] != want || (want == "") != slices.Equal(d.starts, []int{1}) {
			t.Errorf("written %d: %+v", written, d)
		}
	}
}

func TestIdlenessIsToldOncePerAttempt(t *testing.T) {
	v := looked(runningWave(nil), atHand(rowOf(hub.TaskDispatched, hub.Ready, "")))
	v.tasks[0].idle = true
	c := only(t, decide(v))
	if c.progress.Idle != "disp_1" || !slices.Equal(kinds(c), []string{hub.EventWarning}) || c.progress.EndedAs != "" {
		t.Fatalf("decided: %+v", c)
	}
	v.tasks[0].WaveProgress = c.progress
	if d := decide(v); d.commits() {
		t.Errorf("again: %+v", d)
	}
}

// What a person replaced before it was noted is in the log all the same.
func TestMissedAttemptsAreLogged(t *testing.T) {
	r := rowOf(hub.TaskDispatched, hub.Ready, "")
	r.Dispatch = &hub.Dispatch{ID: "disp_3", State: hub.Ready, RetryOf: "disp_2"}
	r.Attempts = 3
	v := looked(runningWave(nil), r)
	v.tasks[0].missed = []hub.Dispatch{{ID: "disp_1"}, {ID: "disp_2"}}
	c := only(t, decide(v))
	for i, e := range c.events {
		if d := e.data.(dispatched); d.Attempt != i+1 || d.Dispatch != hub.DispatchID([]string{"disp_1", "disp_2", "disp_3"}[i]) {
			t.Errorf("event %d: %+v", i, d)
		}
	}
	if len(c.events) != 3 {
		t.Errorf("logged: %q", kinds(c))
	}
}
