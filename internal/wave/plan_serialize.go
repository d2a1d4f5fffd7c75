package wave

import (
	"slices"
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
)

// subdivided gives each task the lowest sub-wave of its level in which it conflicts
// with nothing, in declared order; a level of one sub-wave is not divided.
func (p *planner) subdivided(how int) bool {
	clear(p.sub)
	c := newComparison(p, how)
	taken := make([]int32, len(c.at)+2) // by sub-wave: the last rank, from 1, that may not have it
	highest := make([]int32, len(c.at))
	for r, i := range c.at {
		who := c.writers(r)
		if c.effort.over() {
			return false
		}
		who.within(int(c.first[r]), r)
		who.each(func(o int32) bool {
			taken[p.sub[c.at[o]]] = int32(r + 1)
			return true
		})
		p.sub[i] = 1
		for taken[p.sub[i]] == int32(r+1) {
			p.sub[i]++
		}
		highest[c.first[r]] = max(highest[c.first[r]], p.sub[i])
	}
	for r, i := range c.at {
		if highest[c.first[r]] == 1 {
			p.sub[i] = 0
		}
	}
	return true
}

// ordered makes the orders between conflicting tasks: all of them while they are
// few, else those that others do not imply.
func (c *comparison) ordered() bool {
	if c.how == byLabel {
		return c.chained()
	}
	return c.orders(false) || !c.effort.over() && c.orders(true)
}

// orders makes an order from each task that another conflicts with and that comes
// before it, to that other. reduced leaves out what follows from the rest: the
// newest one before is taken first, and with it all that come before that one.
func (c *comparison) orders(reduced bool) bool {
	c.p.orders, c.p.serialized = nil, nil
	limit := c.p.bounds.full
	var before []ranks
	if reduced {
		limit, before = c.p.bounds.orders, triangle(len(c.at))
	}
	for r := range c.at {
		who := c.unrelated(r, c.writers(r))
		var others []int32
		if reduced {
			others = newest(who, r, before)
		} else if n := who.count(); len(c.p.orders)+n <= limit {
			others = slices.AppendSeq(make([]int32, 0, n), who.each)
		} else {
			return false
		}
		if c.effort.over() || len(c.p.orders)+len(others) > limit {
			return false
		}
		c.decide(r, others)
	}
	return true
}

// newest picks from who those that none of the others that it picks comes behind,
// and notes in before[r] all that now come before r.
func newest(who ranks, r int, before []ranks) []int32 {
	var picked []int32
	row := before[r]
	for o := who.last(int32(r), row); o >= 0; o = who.last(o, row) {
		picked = append(picked, o)
		row.join(before[o])
		row.add(o)
	}
	slices.Reverse(picked)
	return picked
}

// decide notes the orders from others to r, with the path of each.
func (c *comparison) decide(r int, others []int32) {
	if len(others) == 0 {
		return
	}
	i := c.at[r]
	moved := strconv.Itoa(int(c.p.level[i])) + hub.SubLabel(int(c.p.sub[i]))
	for k, path := range c.writtenBy(r, others) {
		first := c.at[others[k]]
		c.p.orders = append(c.p.orders, hub.WaveOrder{First: int(first), Second: int(i), Path: path})
		c.p.serialized = append(c.p.serialized, hub.Serialized{Path: path, First: c.p.token(first), Second: c.p.token(i), MovedTo: moved})
	}
}

// chained puts all writers of a workspace in a row, or with one that declares
// nothing all its tasks, also those that depend on each other: it is the coarsest
// way, and takes an order for each task.
func (c *comparison) chained() bool {
	c.p.orders, c.p.serialized = nil, nil
	last := map[*ground]int32{}
	for r, i := range c.at {
		g := c.ground(i)
		if len(c.writes[r]) == 0 && g.unknown.n == 0 {
			continue
		}
		if o, ok := last[g]; ok && !(c.p.barrier() && o < c.first[r]) {
			c.decide(r, []int32{o})
		}
		last[g] = int32(r)
	}
	return true
}

// held says which of a wave's tasks have to wait for one that the orders put
// before them. gone tells of a task, by its declared position, whether it is final
// and its worker proven gone. Orders are read through: a task waits for those that
// come before it in any number of steps, also over tasks that are final
// themselves, as one that was cancelled, or that completed in an earlier
// iteration. The orders are those of a Plan, in its order.
func held(total int, orders []hub.WaveOrder, gone func(int) bool) []bool {
	held := make([]bool, total)
	for _, o := range orders {
		held[o.Second] = held[o.Second] || held[o.First] || !gone(o.First)
	}
	return held
}
