package wave

import (
	"github.com/wavehub/wavehub/internal/hub"
)

// tree holds the entries of the scopes of one workspace by what they reach, a node
// for each beginning that several share and for each end: entries that differ in a
// part without wildcards are never compared.
type tree struct {
	root   node
	effort *effort
}

// effort counts what is done for comparing scopes, and what is kept of it. When it
// is over, answers are wrong and must be thrown away.
type effort struct {
	words       int // of a set of all ranks
	steps, most int64
	kept        int // words of answers that are kept
}

// maxKept bounds the answers that are kept, in words of 8 bytes.
const maxKept = 4 << 20

func (e *effort) over() bool { return e.steps > e.most }

// node is an end of an edge, which is a row of parts.
type node struct {
	edge  []string
	tasks crowd // with an entry that ends here
	below int   // entries that end here or below
	kids  []*node
	named map[string]*node // kids by the first part of their edge, once there are many
	wild  []*node          // kids whose first part has wildcards
	// all is who has an entry here or below, met by which trees whom an entry that
	// ends here meets: kept where they are asked for often.
	all ranks
	met map[*tree]ranks
}

// manyKids is from how many on kids are looked up by name.
const manyKids = 8

// put adds an entry of a task. Tasks come in the order of their ranks.
func (t *tree) put(r hub.Reach, task int32) {
	n, parts := &t.root, []string(r)
	for {
		n.below++
		if len(parts) == 0 {
			n.tasks.add(task, t.effort.words)
			return
		}
		kid := n.kid(parts[0])
		if kid == nil {
			kid = &node{edge: parts}
			n.adopt(kid)
		}
		k := common(kid.edge, parts)
		if k < len(kid.edge) {
			kid.split(k)
		}
		n, parts = kid, parts[k:]
	}
}

// kid is the child whose edge begins with the part, nil for none.
func (n *node) kid(part string) *node {
	if n.named != nil {
		return n.named[part]
	}
	for _, kid := range n.kids {
		if kid.edge[0] == part {
			return kid
		}
	}
	return nil
}

func (n *node) adopt(kid *node) {
	n.kids = append(n.kids, kid)
	if hub.Wild(kid.edge[0]) {
		n.wild = append(n.wild, kid)
	}
	switch {
	case n.named != nil:
		n.named[kid.edge[0]] = kid
	case len(n.kids) > manyKids:
		n.named = make(map[string]*node, 2*len(n.kids))
		for _, k := range n.kids {
			n.named[k.edge[0]] = k
		}
	}
}

// split puts a node between the first k parts of n's edge and the rest. n becomes
// the upper one, so that its parent keeps it: what ends below moves.
func (n *node) split(k int) {
	lower := *n
	lower.edge = n.edge[k:]
	*n = node{edge: n.edge[:k], below: n.below}
	n.adopt(&lower)
}

// common is how many parts both begin with.
func common(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// end is the node where an entry that was put ends.
func (t *tree) end(r hub.Reach) *node {
	n, parts := &t.root, []string(r)
	for len(parts) > 0 {
		n = n.kid(parts[0])
		parts = parts[len(n.edge):]
	}
	return n
}

// meet adds to who the tasks with an entry that meets r. at is where r ends in a
// tree of its own: what many ask for is kept there.
func (t *tree) meet(r hub.Reach, at *node, who ranks) {
	if kept, ok := at.met[t]; ok {
		who.join(kept)
		return
	}
	if at.tasks.n < 4 || t.effort.kept+len(who) > maxKept {
		t.descend(&t.root, r, who)
		return
	}
	answer := make(ranks, len(who))
	t.descend(&t.root, r, answer)
	if at.met == nil {
		at.met = map[*tree]ranks{}
	}
	at.met[t] = answer
	t.effort.kept += len(answer)
	who.join(answer)
}

// descend adds those below n that meet parts, and those at n, which all do.
func (t *tree) descend(n *node, parts []string, who ranks) {
	if t.effort.over() {
		return
	}
	if len(parts) == 0 {
		t.gather(n, who)
		return
	}
	n.tasks.into(who)
	if hub.Wild(parts[0]) {
		for _, kid := range n.kids {
			t.follow(kid, parts, who)
		}
		return
	}
	if kid := n.kid(parts[0]); kid != nil {
		t.follow(kid, parts, who)
	}
	for _, kid := range n.wild {
		t.follow(kid, parts, who)
	}
}

// follow goes down the edge of a kid as far as it meets parts.
func (t *tree) follow(kid *node, parts []string, who ranks) {
	for i := range min(len(kid.edge), len(parts)) {
		if !t.partsMeet(kid.edge[i], parts[i]) {
			return
		}
	}
	t.descend(kid, parts[min(len(kid.edge), len(parts)):], who)
}

func (t *tree) partsMeet(a, b string) bool {
	t.effort.steps++
	if a == b {
		return true
	}
	t.effort.steps += int64(len(a) * len(b) / 256)
	return hub.PartsMeet(a, b)
}

// gather adds all at and below n.
func (t *tree) gather(n *node, who ranks) {
	if n.all != nil || t.effort.over() {
		who.join(n.all)
		return
	}
	into := who
	if n.below > maxFew && t.effort.kept+len(who) <= maxKept {
		into = make(ranks, len(who))
	}
	t.effort.steps++
	n.tasks.into(into)
	for _, kid := range n.kids {
		t.gather(kid, into)
	}
	if len(into) > 0 && &into[0] != &who[0] {
		n.all, t.effort.kept = into, t.effort.kept+len(into)
		who.join(into)
	}
}
