package wave

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// rowOf is a task of the first iteration with a latest Dispatch, "" for none.
func rowOf(task hub.TaskState, d hub.DispatchState, reason string) hub.WaveRow {
	r := hub.WaveRow{State: task}
	r.Iteration, r.Task, r.Level = 1, "task_1", 1
	r.Entry = hub.WaveEntry{Token: "a", Worker: "w"}
	if d != "" {
		r.Dispatch, r.Attempts = &hub.Dispatch{ID: "disp_1", Task: "task_1", State: d, Reason: reason, Version: 1}, 1
	}
	return r
}

func runningWave(change func(*hub.Wave)) hub.Wave {
	w := hub.Wave{ID: "w", UID: "u", Status: hub.WaveRunning, Iteration: 1, Version: 1, Total: 1, Policy: hub.DefaultWavePolicy(90)}
	if change != nil {
		change(&w)
	}
	return w
}

func ending(w *hub.Wave) { w.Ending = &hub.WaveEnding{As: hub.WaveCancelled, Reason: hub.EndCancelled} }

func retries(n int) func(*hub.Wave) { return func(w *hub.Wave) { w.Policy.Retry = n } }

// TestStatusTable is the table of design page 6.3, row by row.
func TestStatusTable(t *testing.T) {
	ended := func(r hub.WaveRow, as hub.WaveStatus, reason string) hub.WaveRow {
		r.EndedAs, r.EndedReason = as, reason
		return r
	}
	of := func(r hub.WaveRow, iteration int) hub.WaveRow {
		r.Iteration = iteration
		return r
	}
	behind := func(r hub.WaveRow) hub.WaveRow {
		r.Base = r.Dispatch.ID
		return r
	}
	for name, x := range map[string]struct {
		row      hub.WaveRow
		wave     func(*hub.Wave)
		failures int
		want     standing
	}{
		"nothing started":                  {row: rowOf(hub.TaskReady, "", ""), want: standing{status: hub.WavePending}},
		"a dependency is open":             {row: rowOf(hub.TaskPending, "", ""), want: standing{status: hub.WavePending}},
		"nothing in this iteration":        {row: behind(rowOf(hub.TaskReady, hub.Failed, "x")), want: standing{status: hub.WavePending}},
		"not opened yet":                   {row: of(ended(rowOf(hub.TaskFailed, hub.Failed, "x"), hub.WaveFailed, "x"), 0), want: standing{status: hub.WavePending}},
		"starting":                         {row: rowOf(hub.TaskDispatched, hub.Starting, ""), want: standing{status: hub.WaveRunning}},
		"ready":                            {row: rowOf(hub.TaskDispatched, hub.Ready, ""), want: standing{status: hub.WaveRunning}},
		"start unknown":                    {row: rowOf(hub.TaskBlocked, hub.StartUnknown, ""), want: standing{status: hub.WaveRunning}},
		"completed":                        {row: rowOf(hub.TaskCompleted, hub.Succeeded, ""), want: standing{status: hub.WaveCompleted}},
		"completed by hand":                {row: rowOf(hub.TaskCompleted, "", ""), want: standing{status: hub.WaveCompleted}},
		"completed before its iteration":   {row: of(rowOf(hub.TaskCompleted, hub.Succeeded, ""), 0), want: standing{status: hub.WaveCompleted}},
		"completed after it was ended":     {row: ended(rowOf(hub.TaskCompleted, hub.Failed, "x"), hub.WaveFailed, "x"), want: standing{status: hub.WaveFailed, reason: "x"}},
		"failed, no retry":                 {row: rowOf(hub.TaskFailed, hub.Failed, "x"), failures: 1, want: standing{status: hub.WaveFailed, reason: "x"}},
		"failed, a retry is due":           {row: rowOf(hub.TaskFailed, hub.Failed, "x"), wave: retries(1), failures: 1, want: standing{status: hub.WaveRunning, due: true}},
		"failed, the retries are used up":  {row: rowOf(hub.TaskFailed, hub.Failed, "x"), wave: retries(1), failures: 2, want: standing{status: hub.WaveFailed, reason: "x"}},
		"failed in a wave that is ended":   {row: rowOf(hub.TaskFailed, hub.Failed, "x"), wave: func(w *hub.Wave) { retries(3)(w); ending(w) }, failures: 1, want: standing{status: hub.WaveFailed, reason: "x"}},
		"not authenticated":                {row: rowOf(hub.TaskFailed, hub.Failed, "auth_failed"), wave: retries(3), failures: 1, want: standing{status: hub.WaveFailed, reason: "auth_failed"}},
		"the pool is closed":               {row: rowOf(hub.TaskFailed, hub.Failed, "rate_limited"), want: standing{status: hub.WaveRunning, pooled: true}},
		"the quota is used up":             {row: rowOf(hub.TaskFailed, hub.Failed, "quota_exhausted"), want: standing{status: hub.WaveRunning, pooled: true}},
		"the pool of an ended wave":        {row: rowOf(hub.TaskFailed, hub.Failed, "rate_limited"), wave: ending, want: standing{status: hub.WaveRunning, pooled: true}},
		"stopped by a person":              {row: rowOf(hub.TaskBlocked, hub.Stopped, ""), want: standing{status: hub.WaveRunning, held: true}},
		"being stopped by a person":        {row: rowOf(hub.TaskBlocked, hub.Stopping, ""), want: standing{status: hub.WaveRunning, held: true}},
		"a person's stop is unknown":       {row: rowOf(hub.TaskBlocked, hub.StopUnknown, ""), want: standing{status: hub.WaveRunning, held: true}},
		"abandoned by a person":            {row: rowOf(hub.TaskBlocked, hub.Abandoned, ""), want: standing{status: hub.WaveRunning, held: true}},
		"cancelled by its worker":          {row: rowOf(hub.TaskBlocked, hub.Stopped, hub.ReasonCancelledByWorker), want: standing{status: hub.WaveCancelled, reason: hub.EndByWorker}},
		"opened again after a stop":        {row: rowOf(hub.TaskReady, hub.Stopped, ""), want: standing{status: hub.WaveRunning, due: true}},
		"opened again after a failure":     {row: rowOf(hub.TaskReady, hub.Failed, "x"), failures: 1, want: standing{status: hub.WaveRunning, due: true}},
		"set failed after a stop":          {row: rowOf(hub.TaskFailed, hub.Stopped, ""), want: standing{status: hub.WaveFailed, reason: hub.EndSetByOperator}},
		"set failed before a start":        {row: rowOf(hub.TaskFailed, "", ""), want: standing{status: hub.WaveFailed, reason: hub.EndSetByOperator}},
		"set cancelled":                    {row: rowOf(hub.TaskCancelled, hub.Stopped, ""), want: standing{status: hub.WaveCancelled, reason: hub.EndSetByOperator}},
		"ended, its worker is not gone":    {row: ended(rowOf(hub.TaskBlocked, hub.StopUnknown, ""), hub.WaveFailed, hub.EndLiveness), want: standing{status: hub.WaveFailed, reason: hub.EndLiveness}},
		"ended before it was ever spawned": {row: of(ended(rowOf(hub.TaskCancelled, "", ""), hub.WaveCancelled, "cancelled"), 0), wave: func(w *hub.Wave) { w.Iteration = 0 }, want: standing{status: hub.WaveCancelled, reason: "cancelled"}},
	} {
		if got := standingOf(runningWave(x.wave), x.row, x.failures); got != x.want {
			t.Errorf("%s: %+v, not %+v", name, got, x.want)
		}
	}
	if got := standingOf(runningWave(func(w *hub.Wave) { w.Status, w.Iteration = hub.WavePending, 0 }), of(rowOf(hub.TaskReady, "", ""), 0), 0); got.status != hub.WavePending {
		t.Errorf("of a pending wave: %+v", got)
	}
}

func TestTheMergeGate(t *testing.T) {
	for _, x := range []struct {
		total int
		of    map[hub.WaveStatus]int
		want  hub.WaveStatus
	}{
		{0, nil, hub.WaveCompleted},
		{2, map[hub.WaveStatus]int{hub.WaveCompleted: 2}, hub.WaveCompleted},
		{2, map[hub.WaveStatus]int{hub.WaveCompleted: 1, hub.WaveCancelled: 1}, hub.WaveCancelled},
		{3, map[hub.WaveStatus]int{hub.WaveCompleted: 1, hub.WaveCancelled: 1, hub.WaveFailed: 1}, hub.WaveFailed},
		{2, map[hub.WaveStatus]int{hub.WaveFailed: 1, hub.WaveRunning: 1}, hub.WaveRunning},
		{1, map[hub.WaveStatus]int{hub.WavePending: 1}, hub.WaveRunning},
	} {
		if got := gate(x.total, x.of); got != x.want {
			t.Errorf("%v of %d: %s, not %s", x.of, x.total, got, x.want)
		}
	}
}
