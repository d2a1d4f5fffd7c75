package wave

import "github.com/wavehub/wavehub/internal/hub"

// metered sums what the settled Dispatches used, per Task and in all. A Dispatch
// that said nothing, or nothing that is understood, is unmetered.
func metered(rows []hub.WaveRow, us []hub.DispatchUsage) (by map[hub.TaskID]*Usage, all Usage) {
	by = map[hub.TaskID]*Usage{}
	told := map[hub.TaskID]int{}
	for _, u := range us {
		used := usageOf(u.Usage)
		if used.Unmetered > 0 {
			continue
		}
		if by[u.Task] == nil {
			by[u.Task] = &Usage{}
		}
		*by[u.Task] = by[u.Task].plus(used)
		told[u.Task]++
	}
	for _, r := range rows {
		left := r.Attempts - told[r.Task]
		all.Unmetered += left
		if u := by[r.Task]; u != nil {
			u.Unmetered = left
			all.CostUSD, all.Tokens = all.CostUSD+u.CostUSD, all.Tokens+u.Tokens
		}
	}
	return by, all
}
