package wave

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// PlanOptions say how to plan.
type PlanOptions struct {
	// Order, Conflicts, Verify and Scope are those of the policy; "" is the default.
	Order, Conflicts, Verify, Scope string
	// Check is what the caller found wrong: with the file, or with the world.
	Check []hub.Finding
	// Unchecked are warnings of the caller.
	Unchecked []hub.Finding
}

// BuildPlan judges the tasks of a wave and places them (DESIGN.md, Planner). It is
// pure and its answer follows from its arguments alone. All that is wrong is found
// at once, in declared order and then by code; what cannot be placed, as a task of
// a cycle, is left out of the comparison of scopes. Entries need not be cleaned; who
// stores them stores those of Clean. It takes any number of tasks: the use-cases,
// Service.Plan and Service.Create, refuse more than hub.MaxWaveTasks with too_large
// before they call it. Lists of the plan are never nil.
func BuildPlan(entries []hub.WaveEntry, o PlanOptions) hub.Plan {
	return buildPlan(entries, o, planBounds)
}

// bounds limit a plan's work and size, whatever is declared.
type bounds struct {
	findings int   // of one code
	cycles   int   // that are named
	entries  int   // of the scopes of all tasks together
	work     int64 // of comparing scopes, in steps of some nanoseconds
	full     int   // orders up to which those that others imply are kept as well
	orders   int
}

var planBounds = bounds{findings: 1000, cycles: 100, entries: 200_000, work: 20_000_000, full: 10_000, orders: 200_000}

// planner is one plan in the making. Tasks are named by their declared position.
type planner struct {
	options PlanOptions
	bounds  bounds
	entries []hub.WaveEntry // cleaned
	writes  [][]string      // the valid entries of each write scope
	reads   [][]string
	index   map[string]int32 // token → the first task that has it
	deps    [][]int32
	level   []int32 // from 1; 0 for a task that is not placed
	sub     []int32
	found   findings
	warned  findings

	serialized []hub.Serialized
	orders     []hub.WaveOrder
}

func buildPlan(entries []hub.WaveEntry, o PlanOptions, b bounds) hub.Plan {
	p := &planner{
		options: o, bounds: b, index: make(map[string]int32, len(entries)), deps: make([][]int32, len(entries)),
		level: make([]int32, len(entries)), sub: make([]int32, len(entries)), found: findings{limit: b.findings}, warned: findings{limit: b.findings},
	}
	p.clean(entries)
	p.name()
	p.judge()
	p.link()
	p.place()
	p.compare()
	return p.plan()
}

// name finds tokens that are invalid or given twice. The first task of a token has
// it; others are not placed.
func (p *planner) name() {
	again := map[string][]int{}
	for i, e := range p.entries {
		if !hub.ValidToken(e.Token) {
			p.find(i, hub.FindTokenInvalid, "task %d: the task_id %.64q is not 1 to %d printable ASCII characters without space . * > / and --, nor may it begin or end with -",
				i+1, e.Token, hub.MaxWaveToken)
		}
		if first, ok := p.index[e.Token]; ok {
			again[e.Token] = append(again[e.Token], int(first), i)
			continue
		}
		p.index[e.Token] = int32(i)
	}
	for i, e := range p.entries {
		if at := again[e.Token]; len(at) > 0 && at[0] == i {
			p.find(i, hub.FindTaskDuplicate, "the task_id %.64q is given to %s", e.Token, positions(at))
		}
	}
}

// plan is what all of it comes to.
func (p *planner) plan() hub.Plan {
	for _, f := range p.options.Check {
		p.found.add(p.positionOf(f), f)
	}
	for _, f := range p.options.Unchecked {
		p.warned.add(p.positionOf(f), f)
	}
	plan := hub.Plan{
		Findings: p.found.sorted(), Warnings: p.warned.sorted(), Levels: p.levels(), Serialized: append([]hub.Serialized{}, p.serialized...),
	}
	if plan.Valid = len(plan.Findings) == 0; plan.Valid {
		plan.Places = make([]hub.Place, len(p.entries))
		for i := range p.entries {
			plan.Places[i] = hub.Place{Level: int(p.level[i]), Sub: int(p.sub[i])}
		}
		plan.Orders = append([]hub.WaveOrder{}, p.orders...)
	}
	return plan
}

// levels lists the levels and sub-waves with their tasks in declared order.
func (p *planner) levels() []hub.PlanLevel {
	out := []hub.PlanLevel{}
	last := hub.Place{}
	for _, i := range p.ranked() {
		if at := (hub.Place{Level: int(p.level[i]), Sub: int(p.sub[i])}); at != last {
			out = append(out, hub.PlanLevel{Wave: at.Level, Sub: hub.SubLabel(at.Sub)})
			last = at
		}
		tasks := &out[len(out)-1].Tasks
		*tasks = append(*tasks, p.entries[i].Token)
	}
	return out
}

// ranked are the placed tasks in the total order: level, sub-wave, declared
// position.
func (p *planner) ranked() []int32 {
	order := make([]int32, 0, len(p.entries))
	for i, level := range p.level {
		if level > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.level[a], p.level[b]), cmp.Compare(p.sub[a], p.sub[b]), cmp.Compare(a, b))
	})
	return order
}

func (p *planner) token(i int32) string { return p.entries[i].Token }

func (p *planner) barrier() bool { return p.options.Order == hub.OrderBarrier }

func (p *planner) serializes() bool { return p.options.Conflicts == hub.ConflictsSerialize }

// blank reports whether text says nothing.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
