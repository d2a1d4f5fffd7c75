package wave

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// Bounds of the search for cycles: how many tasks of one are named, and how many
// steps are taken behind the first.
const (
	maxCycleShown = 64
	maxCycleSteps = 20_000_000
)

// foundCycles names each cycle of the tasks once, from its first declared task on.
// When there are too many to name or to look for, the last finding says so.
func (p *planner) foundCycles(left []int32) {
	s := newCycles(p.deps, p.bounds.cycles)
	s.search(left)
	for _, c := range s.cycles {
		names := make([]string, 0, min(len(c), maxCycleShown))
		for _, i := range c[:min(len(c), maxCycleShown)] {
			names = append(names, p.shown(int(i)))
		}
		path := strings.Join(names, " → ")
		if n := len(c) - len(names); n > 0 {
			path += fmt.Sprintf(" → … %d more …", n)
		}
		detail := path + " → " + names[0] + ": each depends on the next"
		p.found.add(int(c[0]), hub.Finding{Code: hub.FindDependencyCycle, Tasks: names, Detail: detail})
	}
	if s.cut {
		detail := fmt.Sprintf("there are more cycles than these %d; undo these and plan again", len(s.cycles))
		p.found.add(len(p.entries), hub.Finding{Code: hub.FindDependencyCycle, Detail: detail})
	}
}

// cycles lists the elementary cycles of a graph: for each strongly connected part,
// all through its least task, then those of what is left without that task. A task
// from which the least one cannot be reached without crossing the path is blocked
// until a task behind it comes free, so that no dead end is searched twice for one
// cycle.
type cycles struct {
	deps   [][]int32
	limit  int
	steps  int
	cycles [][]int32
	cut    bool

	part    []int32 // of each task, 0 for none
	parts   int32
	path    []int32
	blocked []bool
	behind  [][]int32
}

func newCycles(deps [][]int32, limit int) *cycles {
	return &cycles{deps: deps, limit: limit, part: make([]int32, len(deps)), blocked: make([]bool, len(deps)), behind: make([][]int32, len(deps))}
}

// search lists the cycles among the tasks, which are in declared order.
func (s *cycles) search(tasks []int32) {
	left := s.connected(tasks)
	for len(left) > 0 && !s.cut {
		part := left[0]
		left = left[1:]
		for _, i := range part {
			s.blocked[i], s.behind[i] = false, nil
		}
		s.parts++
		for _, i := range part {
			s.part[i] = s.parts
		}
		s.through(part[0], part[0])
		left = append(left, s.connected(part[1:])...)
	}
}

// through extends the path by v and lists the cycles back to least; it reports
// whether there was one.
func (s *cycles) through(least, v int32) bool {
	s.path = append(s.path, v)
	s.blocked[v] = true
	found := false
	for _, w := range s.deps[v] {
		if s.part[w] != s.parts || s.stop() {
			continue
		}
		if w == least {
			s.list()
			found = true
		} else if !s.blocked[w] && s.through(least, w) {
			found = true
		}
	}
	if found {
		s.free(v)
	} else {
		s.wait(v)
	}
	s.path = s.path[:len(s.path)-1]
	return found
}

// stop counts a step, and ends the search when enough is found or tried. The first
// cycle is always found.
func (s *cycles) stop() bool {
	s.steps++
	s.cut = s.cut || len(s.cycles) > 0 && s.steps > maxCycleSteps
	return s.cut
}

// list keeps the path as a cycle; one over the limit only ends the search.
func (s *cycles) list() {
	if s.cut = len(s.cycles) >= s.limit; !s.cut {
		s.cycles = append(s.cycles, slices.Clone(s.path))
	}
}

// wait keeps v blocked until a task that it depends on comes free.
func (s *cycles) wait(v int32) {
	for _, w := range s.deps[v] {
		if s.part[w] == s.parts {
			s.behind[w] = append(s.behind[w], v)
		}
	}
}

// free unblocks v and what waits for it.
func (s *cycles) free(v int32) {
	left := []int32{v}
	for len(left) > 0 {
		v, left = left[len(left)-1], left[:len(left)-1]
		if s.blocked[v] {
			s.blocked[v] = false
			left = append(left, s.behind[v]...)
			s.behind[v] = nil
		}
	}
}

// connected lists the strongly connected parts of the tasks that have a cycle, each
// in declared order, by their least task.
func (s *cycles) connected(tasks []int32) [][]int32 {
	c := connecting{cycles: s, seen: make(map[int32]int, len(tasks)), low: make(map[int32]int, len(tasks))}
	s.parts++
	for _, i := range tasks {
		s.part[i] = s.parts
	}
	for _, i := range tasks {
		if c.seen[i] == 0 {
			c.visit(i)
		}
	}
	slices.SortFunc(c.out, func(a, b []int32) int { return int(a[0] - b[0]) })
	return c.out
}

// connecting is a search for strongly connected parts: low is the earliest task of
// the open ones that can be reached, by the order in which they were seen, 0 for a
// task whose part is closed.
type connecting struct {
	*cycles
	seen, low map[int32]int
	open      []int32
	out       [][]int32
}

func (c *connecting) visit(v int32) {
	c.seen[v] = len(c.seen) + 1
	c.low[v] = c.seen[v]
	c.open = append(c.open, v)
	for _, w := range c.deps[v] {
		if c.part[w] != c.parts {
			continue
		}
		if c.seen[w] == 0 {
			c.visit(w)
		}
		if c.low[w] > 0 {
			c.low[v] = min(c.low[v], c.low[w])
		}
	}
	if c.low[v] == c.seen[v] {
		c.close(v)
	}
}

// close takes the part of v off the open tasks.
func (c *connecting) close(v int32) {
	at := len(c.open) - 1
	for c.open[at] != v {
		at--
	}
	part := slices.Clone(c.open[at:])
	c.open = c.open[:at]
	for _, w := range part {
		c.low[w] = 0
	}
	if len(part) > 1 || slices.Contains(c.deps[v], v) {
		slices.Sort(part)
		c.out = append(c.out, part)
	}
}
