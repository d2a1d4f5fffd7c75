package work

import (
	"encoding/json"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// record is what the store says of a live Dispatch's worker.
type record struct {
	terminal hub.TerminalID // of its process, "" while there is none
	worker   hub.WorkerID   // an attached one, "" for one that this hub started
	takenUp  bool           // an attached worker has begun
	unknown  bool           // it is not known whether the start came to a process
	liveness time.Duration  // how long it may be silent, 0 for ever
	waiting  string         // what its agent's hooks said
	held     bool           // a report of its is looked into
	reportAt hub.Micros
	usage    json.RawMessage
}

// liveRecord reads an attachment; false when there is no live worker to speak of.
func liveRecord(a hub.Attachment, held bool) (record, bool, error) {
	failed := a.Process == nil && a.Receipt.State == hub.StartFailed
	if a.Tombstone || a.ExitDone || failed || a.Capability == hub.CapSettled {
		return record{}, false, nil
	}
	r := record{
		worker: a.Worker, takenUp: a.TakenUp, unknown: openStart(a.Receipt), liveness: time.Duration(a.Spec.LivenessSecs) * time.Second,
		waiting: a.Agent.Waiting, held: held, reportAt: a.LastReportAt,
	}
	if a.Process != nil {
		r.terminal = a.Process.Terminal
	}
	if a.Home != "" && (held || a.Capability == hub.CapReported) {
		return r, true, nil // the report brings its usage home, and is not overtaken by it
	}
	usage, err := a.Used()
	r.usage = usage
	return r, true, err
}

// signs is what is known of a worker that is not in the store.
type signs struct {
	process  hub.Liveness // of its terminal, "" unknown
	outputAt hub.Micros
	beat     beat // zero: none came
	seen     seen // of an attached worker; zero: it was not heard of
	there    bool // an attached worker listens, or said so of late
}

// judge is the owner's word on a worker but for its being lost.
func judge(d hub.DispatchID, r record, x signs) hub.Presence {
	p := hub.Presence{Dispatch: d, Process: hub.Unverifiable, LastReportAt: r.reportAt, WaitingFor: hub.WaitsForUnknown, Usage: r.usage}
	if r.worker != "" {
		return judgeAttached(p, r, x)
	}
	if x.process != "" {
		p.Process = x.process
	}
	p.LastOutputAt, p.LastReportAt = x.outputAt, max(r.reportAt, x.beat.at)
	switch {
	case r.held:
		p.WaitingFor = hub.WaitsForVerification
	case x.beat.WaitingFor != "":
		p.WaitingFor = x.beat.WaitingFor
	case p.Process == hub.Exited:
		p.WaitingFor = hub.WaitsForNone
	case p.Process == hub.Live && r.waiting != "":
		p.WaitingFor = r.waiting
	}
	return p
}

// judgeAttached: no hub can verify the process of an attached worker.
func judgeAttached(p hub.Presence, r record, x signs) hub.Presence {
	switch {
	case !r.takenUp:
		p.WaitingFor = hub.WaitsForWorker
		return p
	case x.there:
		p.WaitingFor = hub.WaitsForNone
	}
	if !x.seen.at.IsZero() {
		p.LastReportAt = max(p.LastReportAt, hub.MicrosOf(x.seen.at))
	}
	return p
}

// silences reports whether a worker in this state is silent until it is heard:
// one that this hub started while its process cannot be verified, an attached one
// always once it has begun.
func (r record) silences(process hub.Liveness) bool {
	if r.worker != "" {
		return r.takenUp
	}
	return process == hub.Unverifiable && (r.terminal != "" || r.unknown)
}
