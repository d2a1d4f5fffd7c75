package wave

import "github.com/wavehub/wavehub/internal/hub"

// standing is what a task of a wave comes to now.
type standing struct {
	status hub.WaveStatus
	reason string
	// due says that a new attempt is to be made since the last one failed; pooled the
	// same without counting it, since nobody took it on. held: its latest
	// Dispatch was stopped or abandoned by somebody else than the engine, who has to
	// say how it goes on.
	due, pooled, held bool
}

// toStart reports whether an attempt is to be made once nothing holds it back.
func (s standing) toStart() bool { return s.status == hub.WavePending || s.due || s.pooled }

// pass is the iteration that a wave is in, or will be in first. One that was ended
// before it was spawned was in none: 0.
func pass(w hub.Wave) int {
	if w.Status == hub.WavePending {
		return w.Iteration + 1
	}
	return w.Iteration
}

// standingOf computes the status of a task from its Task (design page 6.3).
// failures are the attempts of this iteration that count as failed. What has ended
// stays so for its iteration, whatever becomes of its Task.
func standingOf(w hub.Wave, r hub.WaveRow, failures int) standing {
	switch {
	case r.Iteration == pass(w) && r.EndedAs != "":
		return standing{status: r.EndedAs, reason: r.EndedReason}
	case r.State == hub.TaskCompleted:
		return standing{status: hub.WaveCompleted}
	case r.Iteration != pass(w):
		return standing{status: hub.WavePending}
	case r.State == hub.TaskCancelled:
		return standing{status: hub.WaveCancelled, reason: hub.EndSetByOperator}
	case begun(r):
		return attempted(w, r, failures)
	case r.State == hub.TaskFailed:
		return standing{status: hub.WaveFailed, reason: hub.EndSetByOperator}
	}
	return standing{status: hub.WavePending}
}

// begun reports whether the task has a Dispatch of this iteration.
func begun(r hub.WaveRow) bool { return r.Dispatch != nil && r.Dispatch.ID != r.Base }

// attempted is the standing of a task by its latest Dispatch.
func attempted(w hub.Wave, r hub.WaveRow, failures int) standing {
	switch d := *r.Dispatch; d.State {
	case hub.Starting, hub.Ready, hub.StartUnknown:
		return standing{status: hub.WaveRunning}
	case hub.Failed:
		return failedBy(w, r, failures)
	case hub.Stopped:
		if d.Reason == hub.ReasonCancelledByWorker && r.State == hub.TaskBlocked {
			return standing{status: hub.WaveCancelled, reason: hub.EndByWorker}
		}
	case hub.Stopping, hub.StopUnknown, hub.Abandoned, hub.Succeeded:
	}
	return bySomebody(r)
}

// failedBy is the standing of a task whose latest Dispatch failed. One that only
// waits for its provider has not failed, also where its wave ends.
func failedBy(w hub.Wave, r hub.WaveRow, failures int) standing {
	d := *r.Dispatch
	switch {
	case r.State != hub.TaskFailed:
		return bySomebody(r)
	case uncounted(d):
		return standing{status: hub.WaveRunning, pooled: true}
	case w.Ending == nil && d.Reason != string(hub.ErrorAuthFailed) && failures <= w.Policy.Retry:
		return standing{status: hub.WaveRunning, due: true}
	}
	return standing{status: hub.WaveFailed, reason: d.Reason}
}

// bySomebody is the standing of a task that was stopped, or set to another state,
// by somebody else than the engine. One that was opened again is started again.
func bySomebody(r hub.WaveRow) standing {
	switch r.State {
	case hub.TaskFailed:
		return standing{status: hub.WaveFailed, reason: hub.EndSetByOperator}
	case hub.TaskReady, hub.TaskPending:
		return standing{status: hub.WaveRunning, due: true}
	case hub.TaskDispatched, hub.TaskBlocked, hub.TaskCompleted, hub.TaskCancelled:
	}
	return standing{status: hub.WaveRunning, held: true}
}

// uncounted reports whether an attempt ended since nobody took it on for now: its
// provider gave no work, its hub refused it, after it had been asked, for what may
// pass, or was restarted before it launched the worker. It counts neither as a failure
// nor as an attempt.
func uncounted(d hub.Dispatch) bool {
	if d.State != hub.Failed || d.Evidence != hub.EvidenceStart {
		return poolClosed(d)
	}
	_, passes := passing(hub.Code(d.Reason))
	return passes || d.Reason == hub.ReasonStartCut || d.Reason == hub.ReasonNoEffect || poolClosed(d)
}

// poolClosed reports whether an attempt ended since its provider gave no work.
func poolClosed(d hub.Dispatch) bool {
	return d.State == hub.Failed && (d.Reason == string(hub.ErrorRateLimited) || d.Reason == string(hub.ErrorQuotaExhausted))
}

// alive reports whether a Dispatch of a task may still do something that its wave
// has to wait for. What could not be proved stopped is no such thing.
func alive(s hub.DispatchState) bool {
	return s == hub.Starting || s == hub.Ready || s == hub.StartUnknown || s == hub.Stopping
}
