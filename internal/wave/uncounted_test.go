package wave

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// TestWhatNobodyTookOnDoesNotCount: an attempt that its hub refused for what may pass,
// or was restarted in, or whose provider gave no work, is made again and does not count; what a worker says
// itself is no refusal.
func TestWhatNobodyTookOnDoesNotCount(t *testing.T) {
	for name, x := range map[string]struct {
		evidence hub.Evidence
		reason   string
		again    bool
	}{
		"no room there":      {hub.EvidenceStart, string(hub.CodeWorkerLimit), true},
		"gone before it":     {hub.EvidenceStart, string(hub.CodeRemoteRuntimeUnavailable), true},
		"no quota":           {hub.EvidenceExit, string(hub.ErrorQuotaExhausted), true},
		"cut by a restart":   {hub.EvidenceStart, hub.ReasonStartCut, true},
		"cut at its begin":   {hub.EvidenceStart, hub.ReasonNoEffect, true},
		"not granted":        {hub.EvidenceStart, string(hub.CodeRepoNotGranted), false},
		"failed on the way":  {hub.EvidenceStart, "start:terminal_creating", false},
		"the worker's words": {hub.EvidenceReport, string(hub.CodeWorkerLimit), false},
	} {
		r := hub.WaveRow{WaveTask: hub.WaveTask{WaveProgress: hub.WaveProgress{Iteration: 1}}, State: hub.TaskFailed}
		r.Dispatch = &hub.Dispatch{ID: "dispatch_1", State: hub.Failed, Evidence: x.evidence, Reason: x.reason}
		st := standingOf(hub.Wave{Iteration: 1}, r, 1)
		want := standing{status: hub.WaveFailed, reason: x.reason}
		if x.again {
			want = standing{status: hub.WaveRunning, pooled: true}
		}
		if st != want {
			t.Errorf("%s: it stands at %+v, want %+v", name, st, want)
		}
	}
}
