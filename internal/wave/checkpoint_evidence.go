package wave

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// sourceCheckpoint is the source of a task that was completed on another hub.
const sourceCheckpoint = "checkpoint"

// restoredData is the result of the Task of a task that a checkpoint completed.
type restoredData struct {
	Source   string   `json:"source"`
	Evidence evidence `json:"evidence"`
}

// taskResult is what the Task of a task that e completed is created with: words
// for people, and e itself, so that a checkpoint of the new wave repeats it.
func (e evidence) taskResult() (string, json.RawMessage) {
	return hub.Cut("source: checkpoint\n"+e.Result, hub.MaxWaveResult), encodeFile(restoredData{sourceCheckpoint, e}, "")
}

// evidenceOf is the evidence that a completed task is completed.
func evidenceOf(r hub.WaveRow) evidence {
	if e, ok := carriedEvidence(r); ok {
		return e
	}
	e := evidence{
		Token: r.Entry.Token, Task: r.Task, Status: hub.WaveCompleted, CompletedAt: completedAt(r), Attempts: r.Attempts,
		Result: hub.Cut(r.Result, maxEvidenceText),
	}
	if d := r.Dispatch; d != nil {
		e.Dispatch = d.ID
		// What was found out about an attempt that did not succeed says nothing of a
		// task that was set completed since.
		if f := d.Findings; f != nil && d.State == hub.Succeeded {
			e.VerifyResult, e.VerifiedBy, e.Handoff = f.VerifyResult, f.VerifiedBy, f.Handoff
			e.Verification = clippedVerification(f.Verification, maxEvidenceText)
		}
	}
	return e
}

// carriedEvidence is that of a task which was created completed. No worker of this
// hub can have written it, since none has had the task.
func carriedEvidence(r hub.WaveRow) (evidence, bool) {
	var data restoredData
	if r.Dispatch != nil || len(r.ResultData) == 0 || json.Unmarshal(r.ResultData, &data) != nil || data.Source != sourceCheckpoint {
		return evidence{}, false
	}
	e := data.Evidence
	e.Token, e.Task, e.Status, e.Source = r.Entry.Token, r.Task, hub.WaveCompleted, sourceCheckpoint
	return e, true
}

// completedAt is when a completed task was completed: 0 if nothing tells.
func completedAt(r hub.WaveRow) hub.Micros {
	if r.Dispatch != nil && r.Dispatch.State == hub.Succeeded {
		return r.Dispatch.SettledAt
	}
	return r.CompletedAt
}

// clippedVerification is v with the beginning of its command and the end of its
// output.
func clippedVerification(v *hub.Verification, limit int) *hub.Verification {
	if v == nil {
		return nil
	}
	short := *v
	short.Command, short.OutputTail = hub.Cut(v.Command, limit), lastOf(v.OutputTail, limit)
	return &short
}

// lastOf is the end of a text, with a mark where something is left out.
func lastOf(text string, limit int) string {
	const mark = "[…] "
	if len(text) <= limit {
		return text
	}
	start := len(text) - limit + len(mark)
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return mark + text[start:]
}
