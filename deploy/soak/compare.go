//go:build unix

package main

// comparison is what one sender was told is accepted, against what came of it.
type comparison struct {
	missing   []note // accepted, and did not come
	doubled   []note // came once more
	reordered []note // came before one that was accepted earlier
	changed   []note // came with another body or type
	foreign   []note // came, and was never accepted
}

// compare looks for each accepted message among what came. got holds messages of
// this sender only.
func compare(sent, got []note) (c comparison) {
	position, came := make(map[string]int, len(sent)), make(map[string]bool, len(got))
	for at, n := range sent {
		position[n.id] = at
	}
	last := -1
	for _, n := range got {
		at, ok := position[n.id]
		switch {
		case came[n.id]:
			c.doubled = append(c.doubled, n)
			continue
		case !ok:
			c.foreign = append(c.foreign, n)
		case sent[at].body != n.body || sent[at].kind != n.kind:
			c.changed = append(c.changed, n)
		}
		if ok && at < last {
			c.reordered = append(c.reordered, n)
		}
		if ok {
			last = max(last, at)
		}
		came[n.id] = true
	}
	for _, n := range sent {
		if !came[n.id] {
			c.missing = append(c.missing, n)
		}
	}
	return c
}

func count(ns []note, kind string) (n int) {
	for _, x := range ns {
		if x.kind == kind {
			n++
		}
	}
	return n
}
