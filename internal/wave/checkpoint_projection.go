package wave

import (
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// file is what a file of a wave's folder has to contain.
type file struct {
	path string // below the folder, with slashes
	data []byte // nil: there must be none
	// level is that of a done.json and failures.json, else 0; iteration that of a
	// failures.json. One of another iteration is kept under another name.
	level, iteration int
}

// isFailures says that a file is kept when it is not there to be any more.
func (f file) isFailures() bool { return f.level > 0 && f.path == failuresName(f.level) }

// isDone says that a file shows that its level is done.
func (f file) isDone() bool { return f.level > 0 && f.path == doneName(f.level) }

// projection is all files of the folder of a wave in its present state. They are
// to be written in their order, then what must not be there is to go: what a file
// speaks of is there before it and goes after it, and state.json speaks of all.
// Equal states make equal bytes. rows are all tasks as declared, orders those of
// the wave; statuses tells what a task comes to.
func projection(w hub.Wave, rows []hub.WaveRow, orders []hub.WaveOrder, statuses func(hub.WaveRow) standing) []file {
	p := viewOf(w, rows, statuses)
	body := p.graph(orders)
	p.head = headOf(w, graphSum(body))
	files := []file{{path: graphName, data: encodeFile(p.graphFile(body), " ")}}
	for i := range p.levels {
		files = append(files, p.done(i+1), p.failures(i+1))
	}
	return append(files, p.marker(), file{path: stateName, data: encodeFile(p.state(), " ")})
}

// view is a wave at one moment. levels are the indexes of its tasks by level.
type view struct {
	wave      hub.Wave
	head      fileHead
	rows      []hub.WaveRow
	levels    [][]int
	standings []standing
	doneThere []bool           // by level, from 0
	current   int              // the lowest level that is not done, from 1
	after     map[string][]int // tasks by the token of a dependency; see followers
}

func viewOf(w hub.Wave, rows []hub.WaveRow, statuses func(hub.WaveRow) standing) *view {
	p := &view{wave: w, rows: rows, levels: levelsOf(rows), standings: make([]standing, len(rows))}
	for i, r := range rows {
		p.standings[i] = statuses(r)
	}
	p.doneThere = make([]bool, len(p.levels))
	for i, level := range p.levels {
		p.doneThere[i] = !slices.ContainsFunc(level, func(i int) bool { return p.standings[i].status != hub.WaveCompleted })
	}
	p.current = slices.Index(append(p.doneThere, false), false) + 1
	return p
}

func levelsOf(rows []hub.WaveRow) [][]int {
	var levels [][]int
	for i, r := range rows {
		for len(levels) < r.Level {
			levels = append(levels, nil)
		}
		levels[r.Level-1] = append(levels[r.Level-1], i)
	}
	return levels
}

func (p *view) graph(orders []hub.WaveOrder) graphBody {
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
func (p *view) subWaves(level int, tasks []int) []hub.PlanLevel {
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

func (p *view) graphFile(body graphBody) graphFile {
	return graphFile{fileHead: p.head, TasksSum: tasksSum(body.Tasks), Run: p.wave.Run, Goal: p.wave.Goal, graphBody: body}
}

func (p *view) done(level int) file {
	f := file{path: doneName(level), level: level}
	if !p.doneThere[level-1] {
		return f
	}
	d := doneFile{fileHead: p.head, Level: level}
	for _, i := range p.levels[level-1] {
		e := evidenceOf(p.rows[i])
		d.Tasks, d.CompletedAt = append(d.Tasks, e), max(d.CompletedAt, e.CompletedAt)
	}
	f.data = encodeFile(d, " ")
	return f
}

// updatedAt is when what state.json says came about, as far as the store knows.
func (p *view) updatedAt() hub.Micros {
	at := max(p.wave.CreatedAt, p.wave.StartedAt, p.wave.CompletedAt)
	if p.wave.Ending != nil {
		at = max(at, p.wave.Ending.At)
	}
	for level := 1; level < p.current; level++ {
		for _, i := range p.levels[level-1] {
			at = max(at, completedAt(p.rows[i]))
		}
	}
	return at
}

func (p *view) state() stateFile {
	s := stateFile{
		fileHead: p.head, Run: p.wave.Run, Goal: p.wave.Goal, Status: p.wave.Status, Current: p.current, Total: len(p.levels),
		Iteration: p.wave.Iteration, MaxIterations: p.wave.Policy.MaxIterations, UpdatedAt: p.updatedAt(),
	}
	if p.wave.Ending != nil {
		s.Reason = p.wave.Ending.Reason
	}
	return s
}
