//go:build unix

package e2e

import "testing"

// waveAdvice is printed of waves.
var waveAdvice = map[string]advice{
	"a pending wave": {sites: "cli.waveNext", provoke: pendingWave},
	"a running wave": {provoke: runningWave},
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
