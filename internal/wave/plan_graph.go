package wave

import (
	"github.com/wavehub/wavehub/internal/hub"
)

// link makes dependencies of tokens. An unknown one is found and left out.
func (p *planner) link() {
	for i, e := range p.entries {
		if p.index[e.Token] != int32(i) {
			continue // a token given twice: its first task stands for it
		}
		deps := make([]int32, 0, len(e.Dependencies))
		unknown := 0
		for _, token := range e.Dependencies {
			if d, ok := p.index[token]; ok {
				deps = append(deps, d)
			} else if unknown++; unknown <= maxShown {
				p.find(i, hub.FindDependencyUnknown, "depends on %.64q, which is no task of the wave", token)
			}
		}
		if unknown > maxShown {
			p.find(i, hub.FindDependencyUnknown, "%d more of its dependencies are no tasks of the wave", unknown-maxShown)
		}
		p.deps[i] = deps
	}
}

// place gives each task its level, 1 above its highest dependency. Tasks in and
// behind a cycle keep 0; the cycles are found.
func (p *planner) place() {
	open := make([]int32, len(p.entries)) // dependencies that are not placed
	ready := make([]int32, 0, len(p.entries))
	total := 0
	for i, e := range p.entries {
		if p.index[e.Token] != int32(i) {
			continue
		}
		total++
		if open[i] = int32(len(p.deps[i])); open[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	dependents := reversed(p.deps)
	for k := 0; k < len(ready); k++ {
		i := ready[k]
		p.level[i]++
		for _, d := range dependents.of(i) {
			p.level[d] = max(p.level[d], p.level[i])
			if open[d]--; open[d] == 0 {
				ready = append(ready, d)
			}
		}
	}
	if len(ready) < total {
		p.unplaced(open)
	}
}

// unplaced finds the cycles of what has open dependencies left.
func (p *planner) unplaced(open []int32) {
	var left []int32
	for i, n := range open {
		if n > 0 {
			p.level[i] = 0
			left = append(left, int32(i))
		}
	}
	p.foundCycles(left)
}

// edges are the ends of edges by their beginning, in one array.
type edges struct{ from, to []int32 }

func (e edges) of(i int32) []int32 { return e.to[e.from[i]:e.from[i+1]] }

// reversed turns the edges of a graph round.
func reversed(graph [][]int32) edges {
	from := make([]int32, len(graph)+1)
	for _, ends := range graph {
		for _, end := range ends {
			from[end+1]++
		}
	}
	for i := range graph {
		from[i+1] += from[i]
	}
	to, next := make([]int32, from[len(graph)]), append([]int32(nil), from...)
	for i, ends := range graph {
		for _, end := range ends {
			to[next[end]] = int32(i)
			next[end]++
		}
	}
	return edges{from, to}
}
