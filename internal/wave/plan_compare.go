package wave

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// How exactly scopes are compared. What is over its bounds is planned again, more
// coarsely: more counts as an overlap then, never less.
const (
	exactly    = iota
	byFolder   // a path with wildcards counts as all of its folder
	byLabel    // each path counts as all of its workspace
	precisions // how many there are
)

var coarse = [precisions]string{
	byFolder: "there are too many paths with wildcards to compare them one by one; each counts as everything in its folder",
	byLabel:  "there are too many overlapping paths to compare them one by one; each counts as the whole workspace",
}

// spot is an entry of a scope, in one form, with the node where it ends.
type spot struct {
	path  string
	reach hub.Reach
	end   *node
}

// ground is a workspace: the entries of its tasks.
type ground struct {
	writes, reads tree
	everyone      crowd // tasks of the workspace
	unknown       crowd // those that declare no write scope
}

// comparison finds which tasks have overlapping scopes. Tasks are named by rank.
type comparison struct {
	p             *planner
	how           int
	rank, at      []int32 // of a task; of a rank, the task
	first         []int32 // of a rank, the first rank of its level
	grounds       map[string]*ground
	writes, reads [][]spot
	related       ancestry
	effort        effort
	who, some     ranks // scratch, as is met
	met           ranks
}

// newComparison ranks the placed tasks as they are placed now.
func newComparison(p *planner, how int) *comparison {
	c := &comparison{p: p, how: how, at: p.ranked(), rank: make([]int32, len(p.entries)), grounds: map[string]*ground{}}
	c.effort = effort{words: wordsOf(len(c.at)), most: p.bounds.work}
	if how == byLabel {
		c.effort.most = math.MaxInt64 // there is no coarser way
	}
	c.who, c.some, c.met = newRanks(len(c.at)), newRanks(len(c.at)), newRanks(len(c.at))
	c.first = make([]int32, len(c.at))
	for r, i := range c.at {
		c.rank[i] = int32(r)
		if c.first[r] = int32(r); r > 0 && p.level[c.at[r-1]] == p.level[i] {
			c.first[r] = c.first[r-1]
		}
	}
	c.related = ancestry{deps: p.deps, rank: c.rank, at: c.at}
	c.settle()
	return c
}

// settle puts the entries of all tasks into their workspaces.
func (c *comparison) settle() {
	c.writes, c.reads = make([][]spot, len(c.at)), make([][]spot, len(c.at))
	for r, i := range c.at {
		g := c.ground(i)
		g.everyone.add(int32(r), c.effort.words)
		if c.p.entries[i].WriteScope == nil {
			g.unknown.add(int32(r), c.effort.words)
		}
		c.writes[r] = c.spots(&g.writes, c.p.writes[i], int32(r))
		c.reads[r] = c.spots(&g.reads, c.p.reads[i], int32(r))
	}
	for r, i := range c.at {
		g := c.ground(i)
		ends(&g.writes, c.writes[r])
		ends(&g.reads, c.reads[r])
	}
}

func (c *comparison) ground(i int32) *ground {
	label := c.p.entries[i].Workspace
	g := c.grounds[label]
	if g == nil {
		g = &ground{writes: tree{effort: &c.effort}, reads: tree{effort: &c.effort}}
		c.grounds[label] = g
	}
	return g
}

func (c *comparison) spots(t *tree, paths []string, r int32) []spot {
	if len(paths) == 0 {
		return nil
	}
	out := make([]spot, 0, len(paths))
	for _, path := range paths {
		path = c.coarsen(path)
		for _, reach := range hub.Reaches(path) {
			t.put(reach, r)
			out = append(out, spot{path: path, reach: reach})
		}
	}
	return out
}

// coarsen returns what counts for a path.
func (c *comparison) coarsen(path string) string {
	switch c.how {
	case byLabel:
		return "."
	case byFolder:
		if i := strings.IndexAny(path, "*?"); i >= 0 {
			return cmp.Or(path[:max(strings.LastIndexByte(path[:i], '/'), 0)], ".")
		}
	}
	return path
}

// ends is taken when all are put: putting moves them.
func ends(t *tree, spots []spot) {
	for k := range spots {
		spots[k].end = t.end(spots[k].reach)
	}
}

// writers returns those ranked before r that write what it writes. Under serialize
// one that declares nothing does so with each of its workspace. The answer is valid
// until the next question.
func (c *comparison) writers(r int) ranks {
	clear(c.who)
	i := c.at[r]
	g := c.ground(i)
	for _, s := range c.writes[r] {
		g.writes.meet(s.reach, s.end, c.who)
	}
	if c.p.serializes() {
		g.unknown.into(c.who)
		if c.p.entries[i].WriteScope == nil || c.how == byLabel && g.unknown.n > 0 {
			g.everyone.into(c.who)
		}
	}
	return c.who
}

// readers returns those ranked before r that read what it writes, or write what it
// reads.
func (c *comparison) readers(r int) ranks {
	clear(c.some)
	g := c.ground(c.at[r])
	for _, s := range c.reads[r] {
		g.writes.meet(s.reach, s.end, c.some)
	}
	for _, s := range c.writes[r] {
		g.reads.meet(s.reach, s.end, c.some)
	}
	return c.some
}

// unrelated leaves those of who that come before r and that it does not depend on;
// under barrier, of its own level only.
func (c *comparison) unrelated(r int, who ranks) ranks {
	low := 0
	if c.p.barrier() {
		low = int(c.first[r])
	}
	who.within(low, r)
	if who.last(c.first[r], nil) >= 0 {
		who.drop(c.related.of(r))
	}
	return who
}

// undeclared stands for the path where one of two tasks declares no write scope.
const undeclared = "(undeclared)"

// writtenBy finds a path that both write, for each of others: of the first entry of
// r in its order, and the first of the other that meets it. It is the narrower of
// the two as it was declared.
func (c *comparison) writtenBy(r int, others []int32) []string {
	paths := make([]string, len(others))
	c.shared(&c.ground(c.at[r]).writes, c.writes[r], others, c.writes, paths)
	for k := range paths {
		paths[k] = cmp.Or(paths[k], undeclared)
	}
	return paths
}

// readBy finds a path that r reads and the other writes, or the reverse, for each of
// others, and says whether it is r that reads.
func (c *comparison) readBy(r int, others []int32) (paths []string, reads []bool) {
	paths, reads = make([]string, len(others)), make([]bool, len(others))
	g := c.ground(c.at[r])
	c.shared(&g.writes, c.reads[r], others, c.writes, paths)
	for k, path := range paths {
		reads[k] = path != ""
	}
	c.shared(&g.reads, c.writes[r], others, c.reads, paths)
	return paths, reads
}

// shared fills the paths that are missing: what mine meets of theirs, which are in
// the tree.
func (c *comparison) shared(t *tree, mine []spot, others []int32, theirs [][]spot, paths []string) {
	for _, s := range mine {
		if !slices.Contains(paths, "") {
			return
		}
		clear(c.met)
		t.meet(s.reach, s.end, c.met)
		for k, o := range others {
			if paths[k] != "" || !c.met.has(o) {
				continue
			}
			if m := slices.IndexFunc(theirs[o], func(their spot) bool { return s.reach.Meets(their.reach) }); m >= 0 {
				paths[k] = narrower(theirs[o][m].path, s.path)
			}
		}
	}
}

// narrower is the deeper of two paths that meet, or the one without wildcards, or
// the first.
func narrower(a, b string) string {
	switch deepA, deepB := depth(a), depth(b); {
	case deepA != deepB && deepA > deepB, deepA == deepB && !hub.Wild(a):
		return a
	case deepA != deepB, !hub.Wild(b):
		return b
	}
	return a
}

func depth(path string) int {
	if path == "." {
		return 0
	}
	return 1 + strings.Count(path, "/")
}
