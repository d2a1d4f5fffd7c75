package wave

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// graphFile is graph.json.
func (p *projected) graphFile(orders []hub.WaveOrder) folderFile {
	f := folderFile{path: graphName, key: sha256.Sum256(fmt.Appendln(nil, p.head, p.wave.Run, p.wave.Goal))}
	f.data = func() []byte {
		body := p.graphBody(orders)
		return encodeFile(graphFile{fileHead: p.head, TasksSum: tasksSum(body.Tasks), Run: p.wave.Run, Goal: p.wave.Goal, graphBody: body}, " ")
	}
	return f
}

func (p *projected) graphBody(orders []hub.WaveOrder) graphBody {
	body := graphBody{Policy: p.wave.Policy, Tasks: make([]hub.WaveEntry, len(p.rows)), Levels: []hub.PlanLevel{}, Orders: make([]fileOrder, len(orders))}
	for i, r := range p.rows {
		body.Tasks[i] = r.Entry
	}
	for i, level := range p.levels {
		body.Levels = append(body.Levels, p.subWaves(i+1, level)...)
	}
	for i, o := range orders {
		body.Orders[i] = fileOrder{p.rows[o.First].Entry.Token, p.rows[o.Second].Entry.Token, o.Path}
	}
	return body
}

// subWaves divides a level as it was planned.
func (p *projected) subWaves(level int, tasks []int) []hub.PlanLevel {
	var out []hub.PlanLevel
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, func(a, b int) int { return p.rows[a].Sub - p.rows[b].Sub })
	for _, i := range sorted {
		label := hub.SubLabel(p.rows[i].Sub)
		if len(out) == 0 || out[len(out)-1].Sub != label {
			out = append(out, hub.PlanLevel{Wave: level, Sub: label})
		}
		last := &out[len(out)-1]
		last.Tasks = append(last.Tasks, p.rows[i].Entry.Token)
	}
	return out
}

// graphMemo remembers the sum of a graph, which takes longer to make than to see
// that the graph is the same. Nil remembers nothing.
type graphMemo struct {
	policy hub.WavePolicy
	tasks  []hub.WaveTask
	orders []hub.WaveOrder
	made   string // "" before the first
}

// sum is the graph_sha256 of what p shows.
func (m *graphMemo) sum(p *projected, orders []hub.WaveOrder) string {
	if m == nil {
		return graphSum(p.graphBody(orders))
	}
	if m.made != "" && m.policy == p.wave.Policy && slices.Equal(m.orders, orders) && slices.EqualFunc(p.rows, m.tasks, plannedAs) {
		return m.made
	}
	*m = graphMemo{policy: p.wave.Policy, orders: orders, made: graphSum(p.graphBody(orders))}
	for _, r := range p.rows {
		m.tasks = append(m.tasks, r.WaveTask)
	}
	return m.made
}

func plannedAs(r hub.WaveRow, t hub.WaveTask) bool {
	return r.Level == t.Level && r.Sub == t.Sub && sameEntry(r.Entry, t.Entry)
}

// sameEntry reports whether two entries have the same JSON.
func sameEntry(a, b hub.WaveEntry) bool {
	return a.Token == b.Token && a.Goal == b.Goal && a.Worker == b.Worker && sameStart(a.Start, b.Start) &&
		slices.Equal(a.Dependencies, b.Dependencies) && slices.Equal(a.ReadScope, b.ReadScope) &&
		(a.WriteScope == nil) == (b.WriteScope == nil) && slices.Equal(a.WriteScope, b.WriteScope) &&
		a.Workspace == b.Workspace && a.HandoffPath == b.HandoffPath && a.VerifyCmd == b.VerifyCmd && a.TimeoutSecs == b.TimeoutSecs
}

func sameStart(a, b *hub.WaveStart) bool { return a == b || a != nil && b != nil && *a == *b }
