package wave

import (
	"maps"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

func summed(w hub.Wave, ts []TaskShown) Summary {
	out := Summary{Total: len(ts), ByStatus: countsOf(ts)}
	in := map[hub.Place]map[hub.WaveStatus]int{}
	for i := range ts {
		t := &ts[i]
		p := hub.Place{Level: t.Level, Sub: t.Sub}
		if in[p] == nil {
			in[p] = noCounts()
		}
		in[p][t.Status]++
	}
	out.Gate = gateOf(w, out.ByStatus)
	for _, p := range slices.SortedFunc(maps.Keys(in), byPlace) {
		n, total := in[p], 0
		for _, k := range n {
			total += k
		}
		out.Levels = append(out.Levels, LevelShown{
			Level: p.Level, Sub: hub.SubLabel(p.Sub), Status: levelStatus(n, total), Total: total, Completed: n[hub.WaveCompleted],
		})
	}
	return out
}

func countsOf(ts []TaskShown) map[hub.WaveStatus]int {
	n := noCounts()
	for i := range ts {
		n[ts[i].Status]++
	}
	return n
}

// noCounts has every status.
func noCounts() map[hub.WaveStatus]int {
	n := make(map[hub.WaveStatus]int, len(hub.WaveStatuses))
	for _, st := range hub.WaveStatuses {
		n[st] = 0
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
