//go:build unix

package e2e

import (
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// waveAdvice is printed of waves.
var waveAdvice = map[string]advice{
	"a pending wave": {sites: "cli.waveNext", provoke: pendingWave},
	"a running wave": {provoke: runningWave},

	"an ended wave":        {sites: "wave.waveFinal", provoke: by(consumer, spawnOfFailed)},
	"a wave that runs":     {sites: "wave.again", provoke: by(consumer, waveCodes["wave_running"])},
	"a wave's name":        {sites: "wave.exists", provoke: by(consumer, waveCodes["wave_exists"])},
	"an addition too late": {sites: "wave.pendingOnly", provoke: by(consumer, lateAddition)},
	"a goal too late":      {sites: "wave.ended", provoke: by(consumer, lateGoal)},
	"a task begun by hand": {sites: "run.Rewrite", provoke: by(consumer, editOfBegun)},
	"what is left over":    {sites: "wave.unproven", provoke: retryOfLeftOver},
}

func pendingWave(t *testing.T, s *stage) printed {
	run := s.solo().run
	r := run.CLI("wave", "create", "--goal", "pending")
	return printed{by: run.Caller, next: [][]string{printedAfter(t, r.Stdout, "next: ")}}
}

// runningWave ends by itself while it is watched.
func runningWave(t *testing.T, s *stage) printed {
	run, g := s.solo().run, newGate(t)
	w := run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", g.wait()+done+"fine")))
	r := run.CLI("wave", "spawn", w)
	return printed{
		by: run.Caller, next: [][]string{printedAfter(t, r.Stdout, "next: ")},
		during: func(t *testing.T) { g.open(t, 1) },
	}
}

func spawnOfFailed(t *testing.T, s *stage) Result {
	run := s.solo().run
	w := run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", "exit 3")), "--spawn")
	run.waveEnds(t, w, "failed")
	return run.json("wave", "spawn", w)
}

// heldWave runs: its task a is completed, b waits for an answer that does not come.
func (c Coordinator) heldWave(t *testing.T) string {
	w := c.newWave(t, "--tasks", taskFile(t, shTask(t, "a", done+"fine"), shTask(t, "b", newGate(t).wait())), "--spawn")
	c.becomes(t, w, "a", "completed", "")
	return w
}

func lateAddition(t *testing.T, s *stage) Result {
	run := s.solo().run
	return run.json("wave", "task", "add", run.heldWave(t), "c", "--goal", "x", "--worker", "w-1")
}

func lateGoal(t *testing.T, s *stage) Result {
	run := s.solo().run
	return run.json("wave", "task", "update", run.heldWave(t), "a", "--goal", "another")
}

// editOfBegun changes a task of a pending wave whose Task somebody has started.
func editOfBegun(t *testing.T, s *stage) Result {
	run := s.solo().run
	w := run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", "true")))
	run.Begin(run.waveNow(t, w).Tasks[0].HubTaskId)
	return run.json("wave", "task", "update", w, "a", "--goal", "another")
}

// leftOver is a cancelled wave whose worker may still be at work: it has been asked
// twice to end, the second time for as long as a stop takes at most.
func (c Coordinator) leftOver(t *testing.T) string { return c.leftOverOf(t, registered(t, c.hub, "")) }

func (c Coordinator) leftOverOf(t *testing.T, w attachedWorker) string {
	wave := c.newWave(t, "--tasks", taskFile(t, waveEntry{ID: "a", Goal: "x", Worker: w.Name, WriteScope: []string{}}), "--spawn")
	dispatch := *c.becomes(t, wave, "a", "running", "worker").DispatchId
	w.startOf(t, dispatch)
	unproven[api.StopResult](t, c.json("worker", "stop", dispatch, "--timeout", "100ms"))
	get[api.WaveSnapshot](t, c.Caller, "wave", "cancel", wave, "--timeout", "1s")
	eventually(t, "the wave has ended without its worker's word", 2*waveLimit, func() bool { return c.waveNow(t, wave).Wave.Status == "cancelled" })
	return wave
}

func retryOfLeftOver(t *testing.T, s *stage) printed {
	run := s.solo().run
	retry := []string{"wave", "retry", run.leftOver(t)}
	return printed{by: run.Caller, next: run.json(retry...).nextCommands(t), cured: retry}
}
