package hub

import "encoding/json"

// EventKind is what can happen to a Dispatch.
type EventKind string

// The events.
const (
	EvStarted     EventKind = "started"      // proof of start
	EvStartFailed EventKind = "start_failed" // proof that nothing runs
	EvStartLost   EventKind = "start_lost"   // the start's answer is lost
	EvReport      EventKind = "report"       // an authentic report or terminal result
	EvExit        EventKind = "exit"         // proven exit of the worker
	EvStop        EventKind = "stop"         // the stop fence
	EvStopProved  EventKind = "stop_proved"
	EvStopLost    EventKind = "stop_lost"
	EvAbandon     EventKind = "abandon"
)

// Event is one thing that happened, with its evidence.
type Event struct {
	Kind     EventKind
	Outcome  Outcome  // EvReport
	Evidence Evidence // EvReport: report or result
	Sum      string   // EvReport: hash of the report
	Reason   string
	ExitCode *int
	At       Micros
	Findings *Findings       // EvReport
	Usage    json.RawMessage // of an end, nil unknown
}

// Verdict is what the home made of a report.
type Verdict string

// The verdicts; VerdictNone is for events that are no reports.
const (
	VerdictNone      Verdict = ""
	VerdictAccepted  Verdict = "accepted"
	VerdictDuplicate Verdict = "duplicate"
	VerdictStale     Verdict = "stale"
	VerdictRejected  Verdict = "rejected"
)

// transitions is the table of page "contract", 3.5. A pair that is missing
// changes nothing. Reports are resolved to their outcome first.
var transitions = map[DispatchState]map[EventKind]DispatchState{
	Starting: {
		EvStarted: Ready, EvStartFailed: Failed, EvStartLost: StartUnknown,
		evSucceeded: Succeeded, evFailed: Failed, evCancelled: Stopped, EvExit: Failed,
		EvStop: Stopping, EvAbandon: Abandoned,
	},
	Ready: {
		evSucceeded: Succeeded, evFailed: Failed, evCancelled: Stopped, EvExit: Failed,
		EvStop: Stopping, EvAbandon: Abandoned,
	},
	StartUnknown: {
		EvStarted: Ready, EvStartFailed: Failed, EvStopProved: Stopped,
		evSucceeded: Succeeded, evFailed: Failed, evCancelled: Stopped, EvExit: Failed,
		EvStop: Stopping, EvAbandon: Abandoned,
	},
	Stopping: {
		EvStopProved: Stopped, EvStopLost: StopUnknown, EvExit: Stopped, evCancelled: Stopped,
		EvStartFailed: Stopped, EvAbandon: Abandoned,
	},
	StopUnknown: {
		EvStopProved: Stopped, EvExit: Stopped, evCancelled: Stopped,
		EvStartFailed: Stopped, EvAbandon: Abandoned,
	},
}

// The rows of a report, by its outcome.
const (
	evSucceeded EventKind = "report:succeeded"
	evFailed    EventKind = "report:failed"
	evCancelled EventKind = "report:cancelled"
)

func (e Event) row() EventKind {
	if e.Kind != EvReport {
		return e.Kind
	}
	return EventKind("report:" + string(e.Outcome))
}

// Apply returns d after e, whether anything changed, and the verdict if e is a
// report. It is the only place where a Dispatch changes its state.
func Apply(d Dispatch, e Event) (Dispatch, bool, Verdict) {
	to, ok := transitions[d.State][e.row()]
	if !ok {
		return d, false, verdictOfUnchanged(d, e)
	}
	d.State, d.Reason = to, reasonFor(d.State, to, e)
	if to.Final() {
		d = settled(d, e)
	}
	if e.Kind == EvReport {
		return d, true, VerdictAccepted
	}
	return d, true, VerdictNone
}

func verdictOfUnchanged(d Dispatch, e Event) Verdict {
	switch {
	case e.Kind != EvReport:
		return VerdictNone
	case d.ReportSum != "" && d.ReportSum == e.Sum:
		return VerdictDuplicate
	default:
		return VerdictStale
	}
}

func settled(d Dispatch, e Event) Dispatch {
	d.SettledAt = e.At
	d.ExitCode, d.Usage = e.ExitCode, e.Usage
	switch e.Kind {
	case EvReport:
		d.Outcome, d.Evidence, d.ReportSum, d.Findings = e.Outcome, e.Evidence, e.Sum, e.Findings
	case EvExit:
		d.Outcome, d.Evidence = outcomeOf(d.State), EvidenceExit
		if d.State == Stopped {
			d.Evidence = EvidenceStop
		}
	case EvStartFailed, EvStopProved:
		d.Outcome, d.Evidence = outcomeOf(d.State), EvidenceStart
		if d.State == Stopped {
			d.Evidence = EvidenceStop
		}
	case EvAbandon, EvStarted, EvStartLost, EvStop, EvStopLost:
	}
	return d
}

func outcomeOf(s DispatchState) Outcome {
	if s == Stopped {
		return OutcomeCancelled
	}
	return OutcomeFailed
}

// reasonFor is why a Dispatch comes to its next state. A fenced one was stopped: that
// its worker says so too is the proof, and not the cause.
func reasonFor(from, to DispatchState, e Event) string {
	switch {
	case from.Fenced() && e.Kind == EvReport:
		return ""
	case e.Kind == EvExit && to == Failed:
		return ReasonExitedWithoutReport
	case e.Kind == EvReport && e.Outcome == OutcomeCancelled:
		return ReasonCancelledByWorker
	default:
		return e.Reason
	}
}

// Reasons that programs may compare with.
const (
	ReasonExitedWithoutReport = "exited_without_report"
	ReasonCancelledByWorker   = "cancelled_by_worker"
	ReasonNoEffect            = "no_effect" // cut by a restart behind its first commit
	ReasonStartCut            = "start_cut" // cut by a restart before the launch
	ReasonNeverAttached       = "never_attached"
)
