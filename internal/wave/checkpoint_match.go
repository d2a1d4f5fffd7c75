package wave

import (
	"reflect"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// matchCheckpoint refuses tasks that are given beside a checkpoint and are not the ones that it
// was made of: cleaned by the planner and in their order they have to have one sum.
// The policy is the checkpoint's, and not compared.
func matchCheckpoint(r restored, entries []hub.WaveEntry) error {
	if tasksSum(entries) == tasksSum(r.Entries) {
		return nil
	}
	e := hub.Errorf(hub.CodeCheckpointMismatch, "the tasks are not those of the checkpoint: %s", firstDifference(r.Entries, entries))
	e.Field, e.Hint = "tasks", "leave the tasks out to take those of the checkpoint, or make a new wave of yours without it"
	return e
}

// firstDifference tells how given differs from the tasks of a checkpoint.
func firstDifference(kept, given []hub.WaveEntry) string {
	for i := range min(len(kept), len(given)) {
		k, g := kept[i], given[i]
		if k.Token != g.Token {
			return "the checkpoint has " + k.Token + " where " + g.Token + " is given"
		}
		if name := differingField(k, g); name != "" {
			return k.Token + " differs in " + name
		}
	}
	if len(given) > len(kept) {
		return given[len(kept)].Token + " is not in the checkpoint"
	}
	return kept[len(given)].Token + " is missing"
}

// differingField is the name of the first member whose JSON differs.
func differingField(a, b hub.WaveEntry) string {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		name, option, _ := strings.Cut(x.Type().Field(i).Tag.Get("json"), ",")
		fx, fy := x.Field(i), y.Field(i)
		if option == "omitempty" && fx.Kind() == reflect.Slice && fx.Len()+fy.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(fx.Interface(), fy.Interface()) {
			return name
		}
	}
	return ""
}
