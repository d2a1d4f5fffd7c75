package intake

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// sequence derives what tasks depend on, as spec-kit has it: phases follow each
// other; within one, tasks marked [P] that stand together are parallel, and any
// other comes after all before it and before all after it. A task that says what it
// depends on depends on that alone. What is done is waited for by nobody.
func (r *spec) sequence() {
	index := map[string]int{}
	for i, t := range r.tasks {
		if _, twice := index[t.id]; !twice {
			index[t.id] = i
		}
	}
	var o order
	for i, t := range r.tasks {
		if t.done {
			continue
		}
		o.begin(t.parallel, t.phase)
		if len(t.goal) > hub.MaxSpecBytes {
			r.find(hub.FindValueInvalid, t.line, []string{t.id}, "its description has %d bytes, more than %d", len(t.goal), hub.MaxSpecBytes)
			continue
		}
		waits, explicit := r.said(i, index)
		if !explicit {
			waits = slices.Clone(o.base)
		}
		if r.unreadable || !r.derive(t.line, len(waits)) {
			return
		}
		o.put(t.id, waits, explicit)
		r.sheet.tasks = append(r.sheet.tasks, hub.WaveEntry{Token: t.id, Goal: t.goal, Dependencies: given(waits), WriteScope: pathsIn(firstLine(t.goal))})
		if r.full() {
			return
		}
	}
}

// order is how far a sequence of tasks has come: those of run are parallel and wait
// for base.
type order struct {
	base, run       []string
	waited          map[string]bool // what tasks of run that say it themselves depend on
	implied         bool            // one of run waits for all of base
	parallel, begun bool
	phase           int
}

// begin closes the run that a task does not belong to.
func (o *order) begin(parallel bool, phase int) {
	if o.begun && (!parallel || !o.parallel || phase != o.phase) {
		o.close()
	}
	o.begun, o.parallel, o.phase = true, parallel, phase
}

// close makes the run what the next tasks wait for, with those of base that no task
// of it waits for.
func (o *order) close() {
	next := o.run
	if !o.implied {
		for _, id := range o.base {
			if !o.waited[id] {
				next = append(next, id)
			}
		}
	}
	*o = order{base: next}
}

func (o *order) put(id string, waits []string, explicit bool) {
	o.run = append(o.run, id)
	if !explicit {
		o.implied = true
		return
	}
	if o.waited == nil {
		o.waited = map[string]bool{}
	}
	for _, w := range waits {
		o.waited[w] = true
	}
}

const specIDs = `T\d+[A-Za-z]?`

var (
	specAfter = regexp.MustCompile(`\b(?i:depends?\s+on|depending\s+on|blocked\s+by|requires|after):?\s*((?i:tasks?\s+)?` + specIDs +
		`(?:\s*(?:,?\s*(?:and|&)|,|-|–|—|\.\.|to|through)\s*` + specIDs + `)*)`)
	specOne   = regexp.MustCompile(specIDs)
	specRange = regexp.MustCompile(`^\s*(?:-|–|—|\.\.|to|through)\s*$`)
)

// said is what a task says that it depends on, without what is done.
func (r *spec) said(i int, index map[string]int) (waits []string, explicit bool) {
	for _, m := range specAfter.FindAllStringSubmatch(r.tasks[i].goal, -1) {
		list, end := m[1], 0
		for _, at := range specOne.FindAllStringIndex(list, -1) {
			id := list[at[0]:at[1]]
			if len(waits) > 0 && specRange.MatchString(list[end:at[0]]) {
				waits = append(waits, r.between(waits[len(waits)-1], id, r.tasks[i].line, index)...)
			}
			waits, end = append(waits, id), at[1]
		}
		explicit = true
	}
	return slices.DeleteFunc(waits, func(id string) bool {
		at, ok := index[id]
		return ok && r.tasks[at].done
	}), explicit
}

// between are the tasks that stand between two, none where one of them is unknown.
func (r *spec) between(first, last string, line int, index map[string]int) (ids []string) {
	from, known := index[first]
	to, too := index[last]
	if !known || !too || from+1 >= to || !r.derive(line, to-from) {
		return nil
	}
	for _, t := range r.tasks[from+1 : to] {
		ids = append(ids, t.id)
	}
	return ids
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// shown is a piece of text as it is quoted to people.
func shown(text string) string { return fmt.Sprintf("%.80q", text) }
