package wave

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
)

// usageOf sums what the settled Dispatches used, per Task and in all. A Dispatch
// that said nothing, or nothing that is understood, is unmetered.
func usageOf(rows []hub.WaveRow, us []hub.DispatchUsage) (by map[hub.TaskID]*Usage, all Usage) {
	by = map[hub.TaskID]*Usage{}
	metered := map[hub.TaskID]int{}
	for _, u := range us {
		cost, tokens, ok := metering(u.Usage)
		if !ok {
			continue
		}
		if by[u.Task] == nil {
			by[u.Task] = &Usage{}
		}
		by[u.Task].CostUSD += cost
		by[u.Task].Tokens += tokens
		metered[u.Task]++
	}
	for _, r := range rows {
		left := r.Attempts - metered[r.Task]
		all.Unmetered += left
		if u := by[r.Task]; u != nil {
			u.Unmetered = left
			all.CostUSD, all.Tokens = all.CostUSD+u.CostUSD, all.Tokens+u.Tokens
		}
	}
	return by, all
}

// metering reads a usage in hub.Usage's shape: its cost, and its tokens without what
// was read from a cache. ok is false where no figure is known.
func metering(raw json.RawMessage) (cost float64, tokens int64, ok bool) {
	var u hub.Usage
	if json.Unmarshal(raw, &u) != nil {
		return 0, 0, false
	}
	in, out, cached := figure(u.InputTokens), figure(u.OutputTokens), figure(u.CachedInputTokens)
	if u.CostUSD != nil {
		cost = min(max(*u.CostUSD, 0), maxFigure)
	}
	return cost, max(in-cached, 0) + out, u.InputTokens != nil || u.OutputTokens != nil || u.CostUSD != nil
}

// maxFigure keeps sums of what workers say of themselves within their types.
const maxFigure = 1e12

func figure(n *int64) int64 {
	if n == nil {
		return 0
	}
	return min(max(*n, 0), maxFigure)
}
