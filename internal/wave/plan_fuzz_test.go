package wave

import (
	"reflect"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// FuzzPlan reads tasks from text, one a line: token, dependencies, write scope,
// read scope and workspace, parted by semicolons and commas; a write scope of - is
// unknown. The plan is the same each time, and a valid one keeps its promises.
func FuzzPlan(f *testing.F) {
	for _, s := range []string{
		"A\nB\nC;A,B;src/auth/login.ts,src/auth/types.ts\nD;B;src/db\nE;A;src/auth/login.ts", "a;a\nb;c\nc;b\nb;;;x", "a;;-\nb;;-\nc;;;src;w\nd;;**/x?*",
		"a;b;src\nb;;SRC/*\nc;;..,/x,\\\\h", "a;;x;y;l\nb;;y;x;l\nc;a;*/b,?",
	} {
		f.Add(s, byte(0))
		f.Add(s, byte(7))
	}
	f.Fuzz(func(t *testing.T, text string, how byte) {
		entries, o := fuzzed(text, how)
		b := planBounds
		if how&16 != 0 {
			b.full, b.work = -1, int64(how)
		}
		p := buildPlan(entries, o, b)
		if again := buildPlan(entries, o, b); !reflect.DeepEqual(p, again) {
			t.Fatalf("two plans: %+v and %+v", p, again)
		}
		if p.Valid {
			checkPlan(t, entries, o, p)
		} else if p.Places != nil || p.Orders != nil || len(p.Findings) == 0 {
			t.Fatalf("%+v", p)
		}
	})
}

func fuzzed(text string, how byte) ([]hub.WaveEntry, PlanOptions) {
	var entries []hub.WaveEntry
	for line := range strings.Lines(text) {
		if len(entries) == 60 {
			break
		}
		cells := strings.SplitN(strings.TrimSuffix(line, "\n")+";;;;", ";", 6)
		list := func(i int) []string { return strings.FieldsFunc(cells[i], func(r rune) bool { return r == ',' }) }
		e := declared(cells[0], list(1), append([]string{}, list(2)...))
		if e.ReadScope, e.Workspace = list(3), cells[4]; cells[2] == "-" {
			e.WriteScope = nil
		}
		entries = append(entries, e)
	}
	o := PlanOptions{Order: hub.OrderDAG, Conflicts: []string{hub.ConflictsReject, hub.ConflictsSerialize, hub.ConflictsAllow, hub.ConflictsSerialize}[how%4]}
	if how&8 != 0 {
		o.Order = hub.OrderBarrier
	}
	return entries, o
}

// checkPlan looks at a valid plan: levels lie above dependencies, no two tasks of
// one sub-wave conflict under serialize, none at all under reject, and orders go
// forward.
func checkPlan(t *testing.T, entries []hub.WaveEntry, o PlanOptions, p hub.Plan) {
	m := model{entries: Clean(entries), o: o, at: map[string]int{}}
	for i, e := range m.entries {
		m.at[e.Token] = i
	}
	listed := 0
	for _, l := range p.Levels {
		listed += len(l.Tasks)
	}
	if listed != len(entries) || len(p.Places) != len(entries) {
		t.Fatalf("%d tasks are listed and %d placed of %d", listed, len(p.Places), len(entries))
	}
	for i, e := range m.entries {
		for _, d := range e.Dependencies {
			if p.Places[m.at[d]].Level >= p.Places[i].Level {
				t.Fatalf("%s is not above %s", e.Token, d)
			}
		}
	}
	below := depths(m.entries, m.at, p.Places)
	for i := range m.entries {
		for j := range i {
			conflict := m.overlap(i, j) && !below[i][j] && !below[j][i] && (o.Order == hub.OrderDAG || p.Places[i].Level == p.Places[j].Level)
			if conflict && (o.Conflicts == hub.ConflictsReject || o.Conflicts == hub.ConflictsSerialize && p.Places[i] == p.Places[j]) {
				t.Fatalf("%s and %s conflict: %+v", m.entries[i].Token, m.entries[j].Token, p)
			}
		}
	}
	for _, order := range p.Orders {
		a, b := p.Places[order.First], p.Places[order.Second]
		if a.Level > b.Level || a.Level == b.Level && a.Sub >= b.Sub || order.Path == "" {
			t.Fatalf("%+v is no order of %+v and %+v", order, a, b)
		}
	}
}

// depths says of each task on which others it depends, by going up the levels.
func depths(entries []hub.WaveEntry, at map[string]int, places []hub.Place) [][]bool {
	on := make([][]bool, len(entries))
	for level := 1; level <= len(entries); level++ {
		for i, e := range entries {
			if places[i].Level != level {
				continue
			}
			on[i] = make([]bool, len(entries))
			for _, d := range e.Dependencies {
				on[i][at[d]] = true
				for k, is := range on[at[d]] {
					on[i][k] = on[i][k] || is
				}
			}
		}
	}
	return on
}
