package wave

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// spread makes a wave of the size that page 6.2 names: three dependencies and two
// paths for each task, in folders that some tasks share.
func spread(total int) []hub.WaveEntry {
	entries := make([]hub.WaveEntry, total)
	for i := range entries {
		e := declared(fmt.Sprintf("task_%d", i), nil, []string{fmt.Sprintf("src/mod%d/part%d/file%d.go", i%97, i%13, i), fmt.Sprintf("docs/mod%d/page%d.md", i%97, i/2)})
		for k := range min(i, 3) {
			e.Dependencies = append(e.Dependencies, fmt.Sprintf("task_%d", max(i-1-(i*7+k*131)%200, k)))
		}
		entries[i] = e
	}
	return entries
}

// many makes tasks by a function of their number.
func many(total int, f func(i int, e *hub.WaveEntry)) []hub.WaveEntry {
	entries := make([]hub.WaveEntry, total)
	for i := range entries {
		entries[i] = declared(fmt.Sprint("t", i), nil, []string{})
		f(i, &entries[i])
	}
	return entries
}

// rows are tasks in rows of width, each of which depends on all of the row before.
func rows(total, width int, scope string) []hub.WaveEntry {
	deps := make([][]string, total/width)
	for i := range total / width * width {
		deps[i/width] = append(deps[i/width], fmt.Sprint("t", i))
	}
	return many(total, func(i int, e *hub.WaveEntry) {
		if e.WriteScope = []string{scope}; i >= width {
			e.Dependencies = deps[i/width-1]
		}
	})
}

// hard are waves of n tasks that are hard to plan.
func hard(n int) map[string][]hub.WaveEntry {
	return map[string][]hub.WaveEntry{
		"undeclared": many(n, func(_ int, e *hub.WaveEntry) { e.WriteScope = nil }),
		"everywhere": many(n, func(i int, e *hub.WaveEntry) { e.WriteScope = []string{fmt.Sprintf("**/x?*%d", i)} }),
		"wildcards":  many(n, func(i int, e *hub.WaveEntry) { e.WriteScope = []string{fmt.Sprintf("src/a*%d?z", i)} }),
		"stars": many(n, func(i int, e *hub.WaveEntry) {
			e.WriteScope = []string{[]string{fmt.Sprintf("src/a%d*", i), fmt.Sprintf("src/*b%d", i)}[i%2]}
		}),
		"repeats": many(n, func(i int, e *hub.WaveEntry) {
			e.WriteScope = []string{"src/" + strings.Repeat("*a", 500) + fmt.Sprint(i)}
		}),
		"chain": many(n, func(i int, e *hub.WaveEntry) {
			if e.WriteScope = []string{"src"}; i > 0 {
				e.Dependencies = []string{fmt.Sprint("t", i-1)}
			}
		}),
		"two chains": many(n, func(i int, e *hub.WaveEntry) {
			if e.WriteScope = []string{"src"}; i > 1 {
				e.Dependencies = []string{fmt.Sprint("t", i-2)}
			}
		}),
		"chains in turn": many(n, func(i int, e *hub.WaveEntry) {
			if i%(n/3) > 0 {
				e.Dependencies = []string{fmt.Sprint("t", i-1)}
			}
			if i/(n/3) != 1 {
				e.WriteScope = []string{"src"}
			}
			if i == 2*(n/3) {
				e.Dependencies = []string{fmt.Sprint("t", i-1)}
			}
		}),
		"bipartite": rows(n, hub.MaxDependencies, "src"),
		"deep":      many(n, func(i int, e *hub.WaveEntry) { e.WriteScope = []string{strings.Repeat("d/", i%127) + fmt.Sprint(i%50)} }),
		"deeper": many(n, func(i int, e *hub.WaveEntry) {
			e.WriteScope = []string{strings.Repeat("d/", 60) + strings.Repeat(fmt.Sprint("e", i, "/"), 60) + "f"}
		}),
		"readers": many(n, func(i int, e *hub.WaveEntry) {
			e.WriteScope, e.ReadScope = []string{fmt.Sprintf("src/f%d.go", i)}, []string{"src/*.go", fmt.Sprintf("src/f%d*", i)}
		}),
		"grid": many(400, func(i int, e *hub.WaveEntry) {
			for k := range 400 {
				e.WriteScope = append(e.WriteScope, fmt.Sprint("f", []int{i*1000 + k, k*1000 + i}[i%2]))
			}
		}),
		"the same paths": many(n, func(i int, e *hub.WaveEntry) {
			for k := range 1000 {
				e.WriteScope = append(e.WriteScope, []string{"x", "y", "z"}[i%3]+fmt.Sprint(k))
			}
			if i > 400 {
				e.WriteScope = nil
			}
		}),
	}
}

// BenchmarkPlan10000 plans what page 6.2 promises: in under a second.
func BenchmarkPlan10000(b *testing.B) {
	entries := spread(10_000)
	for _, conflicts := range []string{hub.ConflictsReject, hub.ConflictsSerialize} {
		b.Run(conflicts, func(b *testing.B) { benchmarkPlan(b, entries, conflicts) })
	}
}

// BenchmarkPlanHard plans waves of the greatest size that are made to be hard.
func BenchmarkPlanHard(b *testing.B) {
	for name, entries := range hard(hub.MaxWaveTasks) {
		for _, conflicts := range []string{hub.ConflictsReject, hub.ConflictsSerialize} {
			b.Run(name+"/"+conflicts, func(b *testing.B) { benchmarkPlan(b, entries, conflicts) })
		}
	}
}

func benchmarkPlan(b *testing.B, entries []hub.WaveEntry, conflicts string) {
	var before, after runtime.MemStats
	var p hub.Plan
	runtime.ReadMemStats(&before)
	for b.Loop() {
		p = BuildPlan(entries, PlanOptions{Conflicts: conflicts})
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MiB")
	b.ReportMetric(float64(len(p.Findings)), "findings")
	b.ReportMetric(float64(len(p.Serialized)), "serialized")
}

// TestPlan_HardWavesStayInBounds: whatever is declared, what a plan lists is bounded.
func TestPlan_HardWavesStayInBounds(t *testing.T) {
	for name, entries := range hard(600) {
		p := BuildPlan(entries, PlanOptions{Conflicts: hub.ConflictsSerialize})
		if len(p.Serialized) > planBounds.orders || len(p.Findings) > 4*planBounds.findings || len(p.Warnings) > 4*planBounds.findings {
			t.Errorf("%s: %d findings, %d warnings, %d orders", name, len(p.Findings), len(p.Warnings), len(p.Serialized))
		}
	}
}
