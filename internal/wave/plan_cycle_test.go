package wave

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCyclesModel: each elementary cycle is named once, from its least task on, as
// a walk over all simple paths finds them.
func TestCyclesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 6).Draw(t, "total")
		deps := make([][]int32, total)
		var tasks []int32
		for i := range deps {
			deps[i] = rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(total-1)), 0, 4, rapid.ID[int32]).Draw(t, fmt.Sprint("deps of ", i))
			tasks = append(tasks, int32(i))
		}
		s := newCycles(deps, 1000)
		s.search(tasks)
		got := make([]string, 0, len(s.cycles))
		for _, c := range s.cycles {
			got = append(got, fmt.Sprint(c))
		}
		slices.Sort(got)
		if want := walked(deps); !slices.Equal(got, want) || s.cut {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// walked lists the cycles of a small graph by walking all simple paths.
func walked(deps [][]int32) []string {
	out := []string{}
	var walk func(path []int32)
	walk = func(path []int32) {
		for _, next := range deps[path[len(path)-1]] {
			if next == path[0] {
				out = append(out, fmt.Sprint(path))
			} else if next > path[0] && !slices.Contains(path, next) {
				walk(append(slices.Clone(path), next))
			}
		}
	}
	for i := range deps {
		walk([]int32{int32(i)})
	}
	slices.Sort(out)
	return out
}
