package wave

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

// model is a planner by the words of page 6.2 alone: each pair is looked at.
type model struct {
	entries []hub.WaveEntry
	o       PlanOptions
	at      map[string]int
	places  []hub.Place
	orders  []hub.WaveOrder // all of them, without paths
	clashes [][2]int
}

func (m *model) level(i int) int {
	level := 0
	for _, d := range m.entries[i].Dependencies {
		level = max(level, m.level(m.at[d]))
	}
	return level + 1
}

func (m *model) dependsOn(i, on int) bool {
	return slices.ContainsFunc(m.entries[i].Dependencies, func(d string) bool { return m.at[d] == on || m.dependsOn(m.at[d], on) })
}

// overlap reports whether two tasks write the same.
func (m *model) overlap(i, j int) bool {
	a, b := m.entries[i], m.entries[j]
	if a.Workspace != b.Workspace {
		return false
	}
	if a.WriteScope == nil || b.WriteScope == nil {
		return m.o.Conflicts == hub.ConflictsSerialize
	}
	return slices.ContainsFunc(a.WriteScope, func(p string) bool {
		return slices.ContainsFunc(b.WriteScope, func(q string) bool { return hub.ScopesOverlap(p, q) })
	})
}

func (m *model) conflict(i, j int) bool {
	if m.o.Order == hub.OrderBarrier && m.level(i) != m.level(j) {
		return false
	}
	return m.overlap(i, j) && !m.dependsOn(i, j) && !m.dependsOn(j, i)
}

func (m *model) plan() {
	m.at = map[string]int{}
	for i, e := range m.entries {
		m.at[e.Token] = i
	}
	m.places = make([]hub.Place, len(m.entries))
	divided := map[int]bool{}
	for i := range m.entries {
		at := hub.Place{Level: m.level(i), Sub: 1}
		for m.o.Conflicts == hub.ConflictsSerialize && m.taken(i, at) {
			at.Sub++
			divided[at.Level] = true
		}
		m.places[i] = at
	}
	for i := range m.places {
		if !divided[m.places[i].Level] {
			m.places[i].Sub = 0
		}
	}
	for i := range m.entries {
		for j := range i {
			if m.conflict(i, j) {
				m.clashes = append(m.clashes, [2]int{j, i})
				m.orders = append(m.orders, m.order(j, i))
			}
		}
	}
}

func (m *model) taken(i int, at hub.Place) bool {
	for j := range i {
		if m.places[j] == at && m.conflict(i, j) {
			return true
		}
	}
	return false
}

// order goes from the earlier of two tasks in the total order; i is declared first.
func (m *model) order(i, j int) hub.WaveOrder {
	a, b := m.places[i], m.places[j]
	if a.Level > b.Level || a.Level == b.Level && a.Sub > b.Sub {
		i, j = j, i
	}
	return hub.WaveOrder{First: i, Second: j}
}

// through is which tasks come before which by orders, in any number of steps.
func through(total int, orders []hub.WaveOrder) [][]bool {
	before := make([][]bool, total)
	for i := range before {
		before[i] = make([]bool, total)
	}
	for _, o := range orders {
		before[o.Second][o.First] = true
	}
	for k := range total {
		for i := range total {
			for j := range total {
				before[i][j] = before[i][j] || before[i][k] && before[k][j]
			}
		}
	}
	return before
}

// bare are orders without their paths, sorted.
func bare(orders []hub.WaveOrder) []hub.WaveOrder {
	out := make([]hub.WaveOrder, 0, len(orders))
	for _, o := range orders {
		out = append(out, hub.WaveOrder{First: o.First, Second: o.Second})
	}
	slices.SortFunc(out, func(a, b hub.WaveOrder) int {
		if a.Second != b.Second {
			return a.Second - b.Second
		}
		return a.First - b.First
	})
	return out
}

var somePaths = []string{"src", "src/a", "src/a/b", "SRC/B", "src/*.go", "src/x.go", "src/y*", "*y/x", "docs", "docs/**", "d?cs/m", "**", ".", "*/b", "a/b/c", "a/*/d"}

// drawWave draws tasks without findings. Dependencies are of tasks that are
// declared earlier or, if the declaration is turned round, later.
func drawWave(t *rapid.T) []hub.WaveEntry {
	total := rapid.IntRange(0, 14).Draw(t, "total")
	entries := make([]hub.WaveEntry, total)
	for i := range entries {
		e := declared(fmt.Sprint("t", i), nil, []string{})
		for range rapid.IntRange(0, 2).Draw(t, "deps") {
			if i > 0 {
				e.Dependencies = append(e.Dependencies, fmt.Sprint("t", rapid.IntRange(0, i-1).Draw(t, "dep")))
			}
		}
		e.WriteScope = append(e.WriteScope, rapid.SliceOfN(rapid.SampledFrom(somePaths), 0, 3).Draw(t, "writes")...)
		e.ReadScope = rapid.SliceOfN(rapid.SampledFrom(somePaths), 0, 2).Draw(t, "reads")
		if rapid.IntRange(0, 7).Draw(t, "unknown") == 0 {
			e.WriteScope = nil
		}
		e.Workspace = rapid.SampledFrom([]string{"", "", "", "other"}).Draw(t, "workspace")
		entries[i] = e
	}
	if rapid.Bool().Draw(t, "turned") {
		slices.Reverse(entries)
	}
	return entries
}

func drawOptions(t *rapid.T) PlanOptions {
	return PlanOptions{
		Order:     rapid.SampledFrom([]string{hub.OrderDAG, hub.OrderBarrier}).Draw(t, "order"),
		Conflicts: rapid.SampledFrom([]string{hub.ConflictsReject, hub.ConflictsSerialize, hub.ConflictsSerialize, hub.ConflictsAllow}).Draw(t, "conflicts"),
	}
}

// TestPlanModel: the planner says what the model says; where it leaves orders out
// (P7), the rest means the same and none of them follows from others.
func TestPlanModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{entries: drawWave(t), o: drawOptions(t)}
		m.plan()
		p := BuildPlan(m.entries, m.o)
		clashes := pairs(p, hub.FindScopeConflict, hub.WarnScopeOverlap, m.at)
		switch {
		case m.o.Conflicts != hub.ConflictsSerialize:
			if !slices.Equal(clashes, m.clashes) || p.Valid != (len(m.clashes) == 0 || m.o.Conflicts == hub.ConflictsAllow) {
				t.Fatalf("conflicts %v, want %v", clashes, m.clashes)
			}
			return
		case !p.Valid || !slices.Equal(p.Places, m.places):
			t.Fatalf("%+v, want %+v; %+v", p.Places, m.places, p.Findings)
		case !slices.Equal(bare(p.Orders), bare(m.orders)):
			t.Fatalf("orders %+v, want %+v", bare(p.Orders), bare(m.orders))
		}
		few := planBounds
		few.full = -1
		reduced := buildPlan(m.entries, m.o, few)
		meant := through(len(m.entries), m.orders)
		if !slices.Equal(reduced.Places, p.Places) || !reflect.DeepEqual(through(len(m.entries), reduced.Orders), meant) {
			t.Fatalf("%+v does not mean %+v", reduced.Orders, p.Orders)
		}
		for k := range reduced.Orders {
			if reflect.DeepEqual(through(len(m.entries), slices.Delete(slices.Clone(reduced.Orders), k, k+1)), meant) {
				t.Fatalf("%+v follows from the rest", reduced.Orders[k])
			}
		}
		heldAlike(t, p.Orders, reduced.Orders, len(m.entries))
	})
}

// heldAlike: whatever is gone, the same tasks have to wait.
func heldAlike(t *rapid.T, a, b []hub.WaveOrder, total int) {
	gone := rapid.SliceOfN(rapid.Bool(), total, total).Draw(t, "gone")
	is := func(i int) bool { return gone[i] }
	if !slices.Equal(held(total, a, is), held(total, b, is)) {
		t.Fatalf("with %v gone, %+v and %+v hold others", gone, a, b)
	}
	before := through(total, a)
	for i, held := range held(total, a, is) {
		waits := false
		for j := range total {
			waits = waits || before[i][j] && !gone[j]
		}
		if held != waits {
			t.Fatalf("held %v: task %d", held, i)
		}
	}
}

// pairs are the tasks of findings of either code, as declared.
func pairs(p hub.Plan, finding, warning string, at map[string]int) [][2]int {
	var out [][2]int
	for _, f := range slices.Concat(p.Findings, p.Warnings) {
		if f.Code == finding || f.Code == warning {
			out = append(out, [2]int{at[f.Tasks[0]], at[f.Tasks[1]]})
		}
	}
	slices.SortFunc(out, func(a, b [2]int) int {
		if a[1] != b[1] {
			return a[1] - b[1]
		}
		return a[0] - b[0]
	})
	return out
}

// TestPlanModel_ReadOverlaps: a warning for each two tasks that may run at the same
// time, of which one reads what the other writes.
func TestPlanModel_ReadOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{entries: drawWave(t), o: drawOptions(t)}
		m.plan()
		var want [][2]int
		for j := range m.entries {
			for i := range j {
				apart := m.o.Order == hub.OrderBarrier && m.level(i) != m.level(j)
				if !apart && !m.conflict(i, j) && !m.dependsOn(i, j) && !m.dependsOn(j, i) && (m.readsOf(i, j) || m.readsOf(j, i)) {
					want = append(want, [2]int{i, j})
				}
			}
		}
		if got := pairs(BuildPlan(m.entries, m.o), hub.WarnReadOverlap, hub.WarnReadOverlap, m.at); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

func (m *model) readsOf(i, j int) bool {
	return m.entries[i].Workspace == m.entries[j].Workspace && slices.ContainsFunc(m.entries[i].ReadScope, func(p string) bool {
		return slices.ContainsFunc(m.entries[j].WriteScope, func(q string) bool { return hub.ScopesOverlap(p, q) })
	})
}

// TestPlanCoarser: what is over its bounds is planned more coarsely: no conflict is
// lost, and a warning says so.
func TestPlanCoarser(t *testing.T) {
	coarser := 0
	rapid.Check(t, func(t *rapid.T) {
		m := model{entries: drawWave(t), o: drawOptions(t)}
		m.plan()
		b := planBounds
		b.full, b.work, b.orders = -1, int64(rapid.IntRange(0, 60).Draw(t, "work")), rapid.IntRange(0, 6).Draw(t, "orders")
		p := buildPlan(m.entries, m.o, b)
		if slices.Contains(codesIn(p.Warnings), hub.WarnUnchecked) {
			coarser++
		}
		found := pairs(p, hub.FindScopeConflict, hub.WarnScopeOverlap, m.at)
		if m.o.Conflicts == hub.ConflictsSerialize {
			keepsApart(t, &m, p)
		} else if i := slices.IndexFunc(m.clashes, func(c [2]int) bool { return !slices.Contains(found, c) }); i >= 0 {
			t.Fatalf("%v is lost", m.clashes[i])
		}
	})
	if coarser < 10 {
		t.Errorf("only %d plans were coarser", coarser)
	}
}

// keepsApart: of two tasks that conflict one comes before the other by orders, and
// they are in no sub-wave together.
func keepsApart(t *rapid.T, m *model, p hub.Plan) {
	before := through(len(m.entries), p.Orders)
	for _, c := range m.clashes {
		if p.Places[c[0]] == p.Places[c[1]] || before[c[0]][c[1]] == before[c[1]][c[0]] {
			t.Fatalf("%v run together: %+v %+v", c, p.Places, p.Orders)
		}
	}
	for _, o := range p.Orders {
		a, b := p.Places[o.First], p.Places[o.Second]
		if a.Level > b.Level || a.Level == b.Level && (a.Sub > b.Sub || a.Sub == b.Sub) {
			t.Fatalf("%+v is no order of %+v and %+v", o, a, b)
		}
	}
}
