package wave

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

// crowded makes tasks with so many paths in few folders that a tree keeps answers,
// looks kids up by name and counts crowds by bits.
func crowded(seed uint64, total int) []hub.WaveEntry {
	r := rand.New(rand.NewPCG(seed, 1))
	path := func() string {
		shapes := []string{"src/f%d.go", "src/f%d.go", "src/d%d/x", "src/d%d/*", "src/*%d.go", "src/f%d*", "src/d%d/**", "s?c/d%d/x"}
		return fmt.Sprintf(shapes[r.IntN(len(shapes))], r.IntN(total/4))
	}
	return many(total, func(i int, e *hub.WaveEntry) {
		for range r.IntN(4) {
			e.WriteScope = append(e.WriteScope, path())
		}
		if e.ReadScope = []string{path()}; r.IntN(total) < 4 {
			e.WriteScope = []string{"src"}
		}
		for range r.IntN(3) {
			if i > 0 {
				e.Dependencies = append(e.Dependencies, fmt.Sprint("t", r.IntN(i)))
			}
		}
	})
}

// TestTree: whatever is put in whatever order, a tree answers as a comparison with
// each entry does.
func TestTree(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "*", "a*", "*b", "c"})
	treeAgrees(t, []hub.Reach{{"a", "b", "*"}, {"a", "b", "c"}, {"a", "b", "*", "d"}, {"a"}, {"a", "b", "e"}, {}, {"*", "b"}})
	rapid.Check(t, func(t *rapid.T) {
		treeAgrees(t, rapid.SliceOfN(rapid.Map(rapid.SliceOfN(part, 0, 5), func(p []string) hub.Reach { return p }), 1, 40).Draw(t, "reaches"))
	})
}

func treeAgrees(t rapid.TB, reaches []hub.Reach) {
	x := tree{effort: &effort{words: wordsOf(len(reaches)), most: 1 << 40}}
	for i, r := range reaches {
		x.put(r, int32(i))
	}
	for _, r := range reaches {
		got, want := newRanks(len(reaches)), newRanks(len(reaches))
		x.meet(r, x.end(r), got)
		for i, o := range reaches {
			if r.Meets(o) {
				want.add(int32(i))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q meets %b, want %b", r, got, want)
		}
	}
}

// TestPlanLarge compares pair by pair what was compared by trees.
func TestPlanLarge(t *testing.T) {
	for seed := range uint64(6) {
		entries := crowded(seed, 250)
		b := planBounds
		b.findings = 1 << 20
		m := model{entries: Clean(entries), o: PlanOptions{Conflicts: hub.ConflictsAllow}, at: map[string]int{}}
		for i, e := range m.entries {
			m.at[e.Token] = i
		}
		p := buildPlan(entries, m.o, b)
		below := depths(m.entries, m.at, p.Places)
		var writes, reads [][2]int
		for j := range m.entries {
			for i := range j {
				switch related := below[i][j] || below[j][i]; {
				case related:
				case m.overlap(i, j):
					writes = append(writes, [2]int{i, j})
				case m.readsOf(i, j), m.readsOf(j, i):
					reads = append(reads, [2]int{i, j})
				}
			}
		}
		if got := pairs(p, hub.WarnScopeOverlap, "", m.at); !slices.Equal(got, writes) {
			t.Errorf("seed %d: %d conflicts, want %d", seed, len(got), len(writes))
		}
		if got := pairs(p, hub.WarnReadOverlap, "", m.at); !slices.Equal(got, reads) {
			t.Errorf("seed %d: %d overlaps with what is read, want %d", seed, len(got), len(reads))
		}
		serializedAlike(t, entries)
	}
}

// serializedAlike: with and without the orders that others imply, a plan keeps its
// promises and means the same.
func serializedAlike(t *testing.T, entries []hub.WaveEntry) {
	t.Helper()
	o, few := PlanOptions{Order: hub.OrderDAG, Conflicts: hub.ConflictsSerialize}, planBounds
	few.full = -1
	all, reduced := BuildPlan(entries, o), buildPlan(entries, o, few)
	checkPlan(t, entries, o, all)
	if len(reduced.Orders) >= len(all.Orders) || !slices.Equal(all.Places, reduced.Places) {
		t.Errorf("%d orders of %d are kept", len(reduced.Orders), len(all.Orders))
	}
	if !reflect.DeepEqual(through(len(entries), all.Orders), through(len(entries), reduced.Orders)) {
		t.Error("what is kept of the orders means something else")
	}
}
