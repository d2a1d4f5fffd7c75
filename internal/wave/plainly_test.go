package wave

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// What is said plainly is what standingOf says, of every kind of task.
func TestPlainlyIsStandingOf(t *testing.T) {
	w := hub.Wave{Status: hub.WaveRunning, Iteration: 2}
	said := 0
	for _, state := range []hub.TaskState{hub.TaskPending, hub.TaskReady, hub.TaskDispatched, hub.TaskBlocked, hub.TaskCompleted, hub.TaskFailed, hub.TaskCancelled} {
		for _, ended := range []hub.WaveStatus{"", hub.WaveCompleted, hub.WaveFailed, hub.WaveCancelled} {
			for _, iteration := range []int{1, 2} {
				for _, d := range []*hub.Dispatch{nil, {ID: "base", State: hub.Failed}, {ID: "d", State: hub.Ready}, {ID: "d", State: hub.Failed}, {ID: "d", State: hub.Stopped}} {
					x := task{WaveRow: hub.WaveRow{State: state, Dispatch: d}}
					x.WaveProgress = hub.WaveProgress{Iteration: iteration, EndedAs: ended, EndedReason: "r", Base: "base"}
					got, ok := x.plainly(pass(w))
					if want := standingOf(w, x.WaveRow, 0); ok && got != want {
						t.Errorf("%s, ended as %q in %d, %+v: %+v, want %+v", state, ended, iteration, d, got, want)
					}
					if ok {
						said++
					}
				}
			}
		}
	}
	if said == 0 {
		t.Error("nothing is said plainly")
	}
}
