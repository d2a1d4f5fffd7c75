package wave

import (
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// outcome is what the log says of the end of a task.
func (s *step) outcome(t *task, st standing) []event {
	out := verification(t.WaveRow)
	d := latest(t.WaveRow)
	switch st.status {
	case hub.WaveCompleted:
		return append(out, event{hub.EventTaskCompleted, completed{t.Result, smallJSON(t.ResultData), d}})
	case hub.WaveFailed:
		f := failure{Error: st.reason, Dispatch: d}
		if begun(t.WaveRow) && t.Dispatch.State == hub.Failed {
			f.Output = t.Result
		} else if st.reason == string(t.refused) {
			f.Output = t.told
		}
		return append(out, event{hub.EventTaskFailed, f})
	case hub.WaveCancelled, hub.WavePending, hub.WaveRunning:
	}
	return append(out, event{hub.EventTaskCancelled, cancellation{st.reason, d}})
}

// latest is the task's Dispatch of this iteration, "" for none.
func latest(r hub.WaveRow) hub.DispatchID {
	if !begun(r) {
		return ""
	}
	return r.Dispatch.ID
}

// verification is what the log says of what was looked at before the end counted.
func verification(r hub.WaveRow) []event {
	if !begun(r) || r.Dispatch.Findings == nil || r.Dispatch.Findings.VerifyResult == "" {
		return nil
	}
	f := r.Dispatch.Findings
	v := verified{By: f.VerifiedBy, Result: f.VerifyResult, Dispatch: r.Dispatch.ID, Details: f.Verification}
	if f.VerifyResult == hub.VerifyPassed {
		return []event{{hub.EventVerifyPassed, v}}
	}
	return []event{{hub.EventVerifyFailed, v}}
}

// smallJSON leaves away what is too large for an event.
func smallJSON(raw []byte) []byte {
	if len(raw) > hub.MaxWaveResult {
		return nil
	}
	return raw
}

func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }
