//go:build unix

package e2e

import (
	"path/filepath"
	"testing"
)

// waveCodes are provoked by waves, on one hub.
var waveCodes = map[string]scenario{
	"wave_not_found": as(consumer, "wave status nothing"),
	"plan_invalid": func(t *testing.T, s *stage) Result {
		return s.solo().run.json("wave", "create", "--tasks", taskFile(t, waveEntry{ID: "a", Goal: "x", Dependencies: []string{"nobody"}}))
	},
	"wave_exists": func(t *testing.T, s *stage) Result {
		w := s.solo().run.newWave(t)
		return s.solo().run.json("wave", "create", "--goal", "g", "--id", w)
	},
	"wave_running": func(t *testing.T, s *stage) Result {
		return s.solo().run.json("wave", "retry", s.solo().run.newWave(t))
	},
	"wave_final": func(t *testing.T, s *stage) Result {
		w := s.solo().run.newWave(t, "--spawn")
		s.solo().run.waveEnds(t, w, "completed")
		return s.solo().run.json("wave", "retry", w)
	},
	"max_iterations_reached": func(t *testing.T, s *stage) Result {
		w := s.solo().run.newWave(t, "--tasks", taskFile(t, shTask(t, "a", "exit 3")), "--max-iterations", "1", "--spawn")
		s.solo().run.waveEnds(t, w, "failed")
		return s.solo().run.json("wave", "retry", w)
	},
	"wave_residuals": func(t *testing.T, s *stage) Result {
		run := s.solo().run
		return run.json("wave", "retry", run.leftOver(t))
	},
	"budget_exceeded": func(t *testing.T, s *stage) Result {
		w := s.solo().run.newWave(t, "--budget", "tokens=10", "--spawn", "--tasks", taskFile(t, shTask(t, "a",
			`"$WAVEHUB_BIN" send --type status --subject s --body b --usage '{"tokens":11}'`+"\n"+done+"fine")))
		s.solo().run.waveEnds(t, w, "failed")
		return s.solo().run.json("wave", "retry", w)
	},
	"checkpoint_mismatch": func(t *testing.T, s *stage) Result {
		run, dir, task := s.solo().run, t.TempDir(), shTask(t, "a", done+"fine")
		w := run.newWave(t, "--tasks", taskFile(t, task), "--checkpoint-dir", dir, "--spawn")
		run.waveEnds(t, w, "completed")
		eventually(t, "the checkpoint is there", waveLimit, func() bool { return exists(filepath.Join(dir, w, "waves", "1", "done.json")) })
		task.Goal = "another"
		return run.json("wave", "create", "--from-checkpoint", filepath.Join(dir, w), "--tasks", taskFile(t, task))
	},
}
