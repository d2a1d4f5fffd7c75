package wave

import (
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// Clean is built by the piece planner: the entries as they are stored.
func Clean(entries []hub.WaveEntry) []hub.WaveEntry { return entries }

// PlanOptions say how to plan. Check is what is known of the world: findings and
// warnings of placements, already made.
type PlanOptions struct {
	Order, Conflicts, Verify, Scope string
	Check                           []hub.Finding
	Unchecked                       []hub.Finding
}

// BuildPlan is built by the piece planner. This one takes dependencies that are
// declared before their dependents, and scopes that are equal for overlapping ones.
func BuildPlan(entries []hub.WaveEntry, o PlanOptions) hub.Plan {
	p := hub.Plan{Findings: slices.Clone(o.Check), Warnings: o.Unchecked}
	at := map[string]int{}
	for i, e := range entries {
		place := hub.Place{Level: 1}
		if e.Goal == " " {
			p.Findings = append(p.Findings, hub.Finding{Code: hub.FindValueInvalid, Tasks: []string{e.Token}, Detail: "goal"})
		}
		for _, d := range e.Dependencies {
			j, ok := at[d]
			if !ok {
				p.Findings = append(p.Findings, hub.Finding{Code: hub.FindDependencyUnknown, Tasks: []string{e.Token}, Detail: d})
				continue
			}
			place.Level = max(place.Level, p.Places[j].Level+1)
		}
		for j := i - 1; j >= 0 && o.Conflicts == hub.ConflictsSerialize; j-- {
			if len(e.WriteScope) > 0 && p.Places[j].Level == place.Level && slices.Equal(e.WriteScope, entries[j].WriteScope) {
				p.Places[j].Sub = max(p.Places[j].Sub, 1)
				place.Sub = p.Places[j].Sub + 1
				p.Orders = append(p.Orders, hub.WaveOrder{First: j, Second: i, Path: e.WriteScope[0]})
				break
			}
		}
		at[e.Token] = i
		p.Places = append(p.Places, place)
	}
	p.Valid = len(p.Findings) == 0
	return p
}
