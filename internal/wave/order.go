package wave

import (
	"cmp"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// shape is what does not change of a spawned wave: by index, what each task waits
// for. It is read once and never written.
type shape struct {
	deps   [][]int         // dependencies
	orders []hub.WaveOrder // as the plan has them
	inLine []int           // all tasks by (level, sub-wave, declared position)
	byTask map[hub.TaskID]int
}

func shapeOf(rows []hub.WaveRow, orders []hub.WaveOrder) *shape {
	p := &shape{deps: make([][]int, len(rows)), orders: orders, inLine: make([]int, len(rows)), byTask: make(map[hub.TaskID]int, len(rows))}
	byToken := make(map[string]int, len(rows))
	for i, r := range rows {
		byToken[r.Entry.Token], p.byTask[r.Task], p.inLine[i] = i, i, i
	}
	for i, r := range rows {
		for _, d := range r.Entry.Dependencies {
			if j, ok := byToken[d]; ok {
				p.deps[i] = append(p.deps[i], j)
			}
		}
	}
	slices.SortStableFunc(p.inLine, func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[a].Level, rows[b].Level), cmp.Compare(rows[a].Sub, rows[b].Sub), cmp.Compare(a, b))
	})
	return p
}
