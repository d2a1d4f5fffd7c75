package wave

import (
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// standing is what a task of a wave comes to now.
type standing struct {
	status hub.WaveStatus
	reason string
	// held: its latest Dispatch was stopped or abandoned by somebody else than the
	// engine; retry: a new attempt is due; pooled: one is due that does not count.
	held, retry, pooled bool
}

// standingOf computes the status of a task from its Task (design page 6.3).
// failures are the attempts of this iteration that count as failed. A completion
// goes before what the engine decided: one that was committed before its fence
// counts.
func standingOf(w hub.Wave, r hub.WaveRow, failures int) standing {
	current := r.Iteration == w.Iteration
	switch {
	case r.State == hub.TaskCompleted:
		return standing{status: hub.WaveCompleted, reason: r.EndedReason}
	case current && r.EndedAs != "":
		return standing{status: r.EndedAs, reason: r.EndedReason}
	case !current || w.Status == hub.WavePending && r.State != hub.TaskFailed && r.State != hub.TaskCancelled && !begun(r):
		return standing{status: hub.WavePending}
	case r.State == hub.TaskCancelled:
		return standing{status: hub.WaveCancelled, reason: hub.EndSetByOperator}
	case !begun(r):
		return unstarted(r)
	}
	return attempted(w, r, failures)
}

// begun reports whether the task has a Dispatch of this iteration.
func begun(r hub.WaveRow) bool { return r.Dispatch != nil && r.Dispatch.ID != r.Base }

func unstarted(r hub.WaveRow) standing {
	if r.State == hub.TaskFailed {
		return standing{status: hub.WaveFailed, reason: hub.EndSetByOperator}
	}
	return standing{status: hub.WavePending}
}

// attempted is the standing of a task by its latest Dispatch.
func attempted(w hub.Wave, r hub.WaveRow, failures int) standing {
	d := *r.Dispatch
	switch d.State {
	case hub.Starting, hub.Ready, hub.StartUnknown:
		return standing{status: hub.WaveRunning}
	case hub.Succeeded: // its Task was set to something else since
		return standing{status: hub.WaveFailed, reason: hub.EndSetByOperator}
	case hub.Failed:
		return failedBy(w, r, d, failures)
	case hub.Stopped:
		if d.Reason == hub.ReasonCancelledByWorker {
			return standing{status: hub.WaveCancelled, reason: hub.EndByWorker}
		}
	case hub.Stopping, hub.StopUnknown, hub.Abandoned:
	}
	if r.State == hub.TaskFailed {
		return standing{status: hub.WaveFailed, reason: hub.EndSetByOperator}
	}
	return standing{status: hub.WaveRunning, held: true}
}

func failedBy(w hub.Wave, r hub.WaveRow, d hub.Dispatch, failures int) standing {
	switch {
	case w.Ending != nil || r.State == hub.TaskReady || r.State == hub.TaskPending: // reopened by its operator
		if w.Ending == nil {
			return standing{status: hub.WaveRunning, held: true}
		}
	case poolClosed(d):
		return standing{status: hub.WaveRunning, pooled: true}
	case mayRetry(d) && failures <= w.Policy.Retry && w.Policy.Retry > 0:
		return standing{status: hub.WaveRunning, retry: true}
	}
	return standing{status: hub.WaveFailed, reason: d.Reason}
}

// poolClosed reports whether an attempt ended since its provider gave no work: it
// counts neither as a failure nor as an attempt.
func poolClosed(d hub.Dispatch) bool {
	return d.State == hub.Failed && slices.Contains([]string{string(hub.ErrorRateLimited), string(hub.ErrorQuotaExhausted)}, d.Reason)
}

// mayRetry reports whether a failed attempt is one that retry covers.
func mayRetry(d hub.Dispatch) bool {
	return d.State == hub.Failed && d.Reason != string(hub.ErrorAuthFailed)
}
