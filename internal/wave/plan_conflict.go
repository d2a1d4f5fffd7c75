package wave

import (
	"fmt"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// compare finds the conflicts of scopes and, under serialize, solves them. When
// that takes too much, it is done again more coarsely, and a warning says so.
func (p *planner) compare() {
	for how := exactly; how < precisions; how++ {
		if !p.compared(how) {
			continue
		}
		if how > exactly {
			p.warned.add(len(p.entries), hub.Finding{Code: hub.WarnUnchecked, Detail: coarse[how]})
		}
		return
	}
}

// compared reports whether the bounds sufficed; if not, nothing is found.
func (p *planner) compared(how int) bool {
	if p.serializes() && !p.subdivided(how) {
		return false
	}
	c := newComparison(p, how)
	conflicts, overlaps := findings{limit: p.bounds.findings}, findings{limit: p.bounds.findings}
	solved := c.ordered
	if !p.serializes() {
		solved = func() bool { return c.conflicts(&conflicts) }
	}
	if !solved() || !c.overlaps(&overlaps) {
		return false
	}
	if p.options.Conflicts == hub.ConflictsAllow {
		p.warned.take(conflicts)
	} else {
		p.found.take(conflicts)
	}
	p.warned.take(overlaps)
	return true
}

// conflicts finds the tasks that write the same and of which neither depends on
// the other.
func (c *comparison) conflicts(into *findings) bool {
	code, remedy := hub.FindScopeConflict, "add a dependency, part their scopes, or plan with conflicts: serialize"
	if c.p.options.Conflicts == hub.ConflictsAllow {
		code, remedy = hub.WarnScopeOverlap, "they may run at the same time"
	}
	for r := range c.at {
		others := counted(c.unrelated(r, c.writers(r)), into, code)
		if c.effort.over() {
			return false
		}
		paths := c.writtenBy(r, others)
		for k, o := range others {
			c.pair(into, code, int(o), r, fmt.Sprintf("both write %s, and neither depends on the other: %s", paths[k], remedy))
		}
	}
	return !c.effort.over()
}

// overlaps finds what one task reads and another writes, of tasks that may run at
// the same time.
func (c *comparison) overlaps(into *findings) bool {
	if c.unread() {
		return true
	}
	for r := range c.at {
		some := c.unrelated(r, c.readers(r))
		if some.last(int32(r), nil) < 0 {
			continue
		}
		some.drop(c.unrelated(r, c.writers(r)))
		others := counted(some, into, hub.WarnReadOverlap)
		if c.effort.over() {
			return false
		}
		paths, reads := c.readBy(r, others)
		for k, o := range others {
			reader, writer := o, int32(r)
			if reads[k] {
				reader, writer = writer, reader
			}
			c.pair(into, hub.WarnReadOverlap, int(o), r, fmt.Sprintf("%s reads %s, which %s writes; neither depends on the other",
				c.p.shown(int(c.at[reader])), paths[k], c.p.shown(int(c.at[writer]))))
		}
	}
	return !c.effort.over()
}

// unread reports whether no task says what it reads.
func (c *comparison) unread() bool {
	return !slices.ContainsFunc(c.reads, func(s []spot) bool { return len(s) > 0 })
}

// counted counts a finding of the code for each of a set, and returns those of which
// it is listed.
func counted(who ranks, into *findings, code string) []int32 {
	var others []int32
	room := into.room(code)
	for o := range who.each {
		if len(others) == room {
			break
		}
		others = append(others, o)
	}
	into.more(code, who.count())
	return others
}

// pair adds a finding of two tasks, which are named as they are declared.
func (c *comparison) pair(into *findings, code string, o, r int, detail string) {
	a, b := int(c.at[o]), int(c.at[r])
	if a > b {
		a, b = b, a
	}
	into.put(a, hub.Finding{Code: code, Tasks: []string{c.p.shown(a), c.p.shown(b)}, Detail: detail})
}
