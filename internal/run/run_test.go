package run

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

// TestInOrderPlacesDependenciesFirst: for every acyclic set each Task comes
// behind those that it depends on, once, with its dependencies deduped.
func TestInOrderPlacesDependenciesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		ts := make([]hub.Task, n)
		for i := range ts {
			ts[i].ID = hub.TaskID(rune('a' + i))
			for range rapid.IntRange(0, 3).Draw(t, "deps") {
				if i > 0 {
					ts[i].Dependencies = append(ts[i].Dependencies, hub.TaskID(rune('a'+rapid.IntRange(0, i-1).Draw(t, "dep"))))
				}
			}
		}
		shuffled := rapid.Permutation(ts).Draw(t, "order")
		out, err := inOrder(shuffled)
		if err != nil || len(out) != n {
			t.Fatalf("%d of %d, %v", len(out), n, err)
		}
		seen := map[hub.TaskID]bool{}
		for _, task := range out {
			for i, d := range task.Dependencies {
				if !seen[d] || slices.Index(task.Dependencies, d) != i {
					t.Fatalf("%s needs %v, placed so far %v", task.ID, task.Dependencies, seen)
				}
			}
			seen[task.ID] = true
		}
	})
}

func TestAcceptance_L12_CyclesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		deps map[string]string
		want string
	}{
		"itself": {map[string]string{"a": "a"}, "a → a"},
		"two":    {map[string]string{"a": "b", "b": "a"}, "a → b → a"},
		"three":  {map[string]string{"x": "a", "a": "b", "b": "c", "c": "a"}, "a → b → c → a"},
	} {
		var ts []hub.Task
		for _, id := range []string{"x", "a", "b", "c"} {
			if d, ok := c.deps[id]; ok {
				ts = append(ts, hub.Task{ID: hub.TaskID(id), Dependencies: []hub.TaskID{hub.TaskID(d)}})
			}
		}
		_, err := inOrder(ts)
		if !hub.IsCode(err, hub.CodeInvalidArgument) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
