package wave

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// findings collects what is found, at most limit of a code; more are counted.
type findings struct {
	limit int
	list  []placed
	count map[string]int
}

// placed is a finding with the declared position that it is sorted by.
type placed struct {
	at int
	hub.Finding
}

func (f *findings) add(at int, one hub.Finding) {
	room := f.room(one.Code)
	f.more(one.Code, 1)
	if room > 0 {
		f.put(at, one)
	}
}

// put lists a finding that was counted.
func (f *findings) put(at int, one hub.Finding) {
	if one.Tasks == nil {
		one.Tasks = []string{}
	}
	f.list = append(f.list, placed{at, one})
}

// room is how many more findings of a code are listed.
func (f *findings) room(code string) int { return max(f.limit-f.count[code], 0) }

// more counts n findings.
func (f *findings) more(code string, n int) {
	if f.count == nil {
		f.count = map[string]int{}
	}
	f.count[code] += n
}

// take adds what was collected of other codes.
func (f *findings) take(o findings) {
	if f.count == nil {
		f.count = map[string]int{}
	}
	f.list = append(f.list, o.list...)
	for code, n := range o.count {
		f.count[code] += n
	}
}

// sorted lists them in declared order, then by code; last comes how many more of a
// code there are.
func (f *findings) sorted() []hub.Finding {
	slices.SortStableFunc(f.list, func(a, b placed) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Code, b.Code)) })
	out := make([]hub.Finding, 0, len(f.list))
	for _, one := range f.list {
		out = append(out, one.Finding)
	}
	for _, code := range slices.Sorted(maps.Keys(f.count)) {
		if n := f.count[code] - f.limit; n > 0 {
			out = append(out, hub.Finding{Code: code, Tasks: []string{}, Detail: fmt.Sprintf("%d more of these are not listed", n)})
		}
	}
	return out
}

// find notes what is wrong with a task.
func (p *planner) find(i int, code, format string, args ...any) {
	p.found.add(i, hub.Finding{Code: code, Tasks: []string{p.shown(i)}, Detail: fmt.Sprintf(format, args...)})
}

// warnAll makes one warning of several tasks; none of no task.
func (p *planner) warnAll(tasks []int32, code, detail string) {
	if len(tasks) == 0 {
		return
	}
	names := make([]string, len(tasks))
	for k, i := range tasks {
		names[k] = p.shown(int(i))
	}
	p.warned.add(int(tasks[0]), hub.Finding{Code: code, Tasks: names, Detail: detail})
}

// shown is a task's token as a finding names it: clipped where it is none.
func (p *planner) shown(i int) string {
	return hub.Cut(hub.PlainText([]byte(p.entries[i].Token)), hub.MaxWaveToken)
}

// positionOf is where the caller's finding belongs: to its first task, or behind
// all.
func (p *planner) positionOf(f hub.Finding) int {
	if len(f.Tasks) > 0 {
		if i, ok := p.index[f.Tasks[0]]; ok {
			return int(i)
		}
	}
	return len(p.entries)
}

// maxShown is how many of many things a finding names.
const maxShown = 16

// positions lists declared positions, from 1, each once.
func positions(at []int) string {
	slices.Sort(at)
	at = slices.Compact(at)
	names := make([]string, 0, maxShown)
	for _, i := range at[:min(len(at), maxShown)] {
		names = append(names, fmt.Sprint(i+1))
	}
	text := "the tasks " + strings.Join(names, ", ")
	if n := len(at) - len(names); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
