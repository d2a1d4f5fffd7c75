package wave

import (
	"github.com/wavehub/wavehub/internal/hub"
)

func summed(w hub.Wave, ts []TaskShown) Summary {
	out := Summary{Total: len(ts), ByStatus: countsOf(ts)}
	out.Gate = gateOf(w, out.ByStatus)
	xs := make([]hub.WaveTask, len(ts))
	in := map[hub.Place][]TaskShown{}
	for i, t := range ts {
		p := placeOf(t.WaveTask)
		xs[i], in[p] = t.WaveTask, append(in[p], t)
	}
	for _, p := range placesOf(xs) {
		n := countsOf(in[p])
		out.Levels = append(out.Levels, LevelShown{
			Level: p.Level, Sub: hub.SubLabel(p.Sub), Status: levelStatus(n, len(in[p])), Total: len(in[p]), Completed: n[hub.WaveCompleted],
		})
	}
	return out
}

func countsOf(ts []TaskShown) map[hub.WaveStatus]int {
	n := make(map[hub.WaveStatus]int, len(hub.WaveStatuses))
	for _, st := range hub.WaveStatuses {
		n[st] = 0
	}
	for _, t := range ts {
		n[t.Status]++
	}
	return n
}

// gateOf is what a wave comes to by its tasks.
func gateOf(w hub.Wave, n map[hub.WaveStatus]int) hub.WaveStatus {
	switch {
	case !w.Status.Final() && (w.Status == hub.WavePending || n[hub.WavePending]+n[hub.WaveRunning] > 0):
		return hub.WaveRunning
	case n[hub.WaveFailed] > 0:
		return hub.WaveFailed
	case n[hub.WavePending]+n[hub.WaveRunning]+n[hub.WaveCancelled] == 0:
		return hub.WaveCompleted
	}
	return hub.WaveCancelled
}

// levelStatus is that of a level by its tasks: what went wrong shows at once.
func levelStatus(n map[hub.WaveStatus]int, total int) hub.WaveStatus {
	switch {
	case n[hub.WaveFailed] > 0:
		return hub.WaveFailed
	case n[hub.WaveCancelled] > 0:
		return hub.WaveCancelled
	case n[hub.WavePending] == total:
		return hub.WavePending
	case n[hub.WaveCompleted] == total:
		return hub.WaveCompleted
	}
	return hub.WaveRunning
}
