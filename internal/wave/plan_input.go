package wave

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/wave/intake"
)

// sourced is what was read of a PlanInput, with what is wrong with its file.
type sourced struct {
	entries            []hub.WaveEntry
	findings, warnings []hub.Finding
	done               map[string]bool // as in PlanInput
}

// judged is tasks as they would be stored, and their plan.
type judged struct {
	entries []hub.WaveEntry
	plan    hub.Plan
}

// Plan judges tasks and stores nothing. It returns them as they were read and
// cleaned. What is wrong with them is in the plan; an error is that nothing could
// be said, or too_large. Peers are asked, for at most ten seconds.
func (s *Service) Plan(ctx context.Context, in PlanInput) (hub.Plan, []hub.WaveEntry, error) {
	j, err := s.judgeInput(ctx, in)
	return j.plan, j.entries, err
}

func (s *Service) judgeInput(ctx context.Context, in PlanInput) (judged, error) {
	got, err := in.read()
	if err != nil {
		return judged{}, err
	}
	return s.judge(ctx, got, in.Policy)
}

// read takes the tasks from where they are, and places those that say nothing of
// it.
func (in PlanInput) read() (sourced, error) {
	if in.Source != nil && len(in.Tasks) > 0 {
		return sourced{}, hub.Invalid("source", "is given instead of tasks, not beside them")
	}
	got := sourced{entries: slices.Clone(in.Tasks), done: in.done}
	if f := in.Source; f != nil {
		got.entries, got.findings, got.warnings = intake.Read(f.Format, f.Name, f.Text)
	}
	if err := roomFor(len(got.entries)); err != nil {
		return sourced{}, err
	}
	for i := range got.entries {
		in.Defaults.place(&got.entries[i])
	}
	return got, nil
}

// given reports whether there is anything to read.
func (in PlanInput) given() bool { return in.Source != nil || len(in.Tasks) > 0 }

func roomFor(tasks int) error {
	if tasks <= hub.MaxWaveTasks {
		return nil
	}
	e := hub.Errorf(hub.CodeTooLarge, "there are more than %d tasks, which a wave has at most", hub.MaxWaveTasks)
	e.Field, e.Hint = "tasks", "divide the work into several waves"
	return e
}

func (d Defaults) place(e *hub.WaveEntry) {
	if e.Worker != "" || e.Start != nil {
		return
	}
	e.Worker = d.Worker
	if d.Start != nil {
		start := *d.Start
		e.Start = &start
	}
}

// judge plans tasks, with what is wrong with their file and the world.
func (s *Service) judge(ctx context.Context, got sourced, p hub.WavePolicy) (judged, error) {
	entries := Clean(got.entries)
	world, unchecked, err := s.facts(ctx, got.open(entries))
	if err != nil {
		return judged{}, err
	}
	plan := BuildPlan(entries, PlanOptions{
		Order: p.Order, Conflicts: p.Conflicts, Verify: p.Verify, Scope: p.Scope,
		Check: world, Unchecked: unchecked,
	})
	at := positionsOf(entries)
	plan.Findings = at.sorted(got.findings, plan.Findings)
	plan.Warnings = at.sorted(got.warnings, plan.Warnings)
	if len(plan.Findings) > 0 {
		plan.Valid, plan.Places, plan.Orders = false, nil, nil
	}
	return judged{entries, plan}, nil
}

// open are those of the entries that are still to be done.
func (g sourced) open(entries []hub.WaveEntry) []hub.WaveEntry {
	if len(g.done) == 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e hub.WaveEntry) bool { return g.done[e.Token] })
}

// refusal is plan_invalid with all that is wrong, nil for a valid plan.
func (j judged) refusal() error {
	fs := j.plan.Findings
	if j.plan.Valid {
		return nil
	}
	e := hub.Errorf(hub.CodePlanInvalid, "the plan has %d findings", len(fs))
	if len(fs) > 0 {
		e.Message += "; the first: " + fs[0].Detail
	}
	e.Findings = fs
	return e
}

// placesByToken are the places of the tokens in the declared order.
type placesByToken map[string]int

func positionsOf(entries []hub.WaveEntry) placesByToken {
	at := make(placesByToken, len(entries))
	for i, e := range entries {
		if _, ok := at[e.Token]; !ok {
			at[e.Token] = i
		}
	}
	return at
}

// sorted brings findings together in the order of what they are about, those of the
// first list first. One that names no task stays behind the one before it.
func (at placesByToken) sorted(lists ...[]hub.Finding) []hub.Finding {
	type placed struct {
		hub.Finding
		at int
	}
	var all []placed
	for _, fs := range lists {
		last := -1
		for _, f := range fs {
			last = at.of(f, last)
			all = append(all, placed{f, last})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	out := make([]hub.Finding, len(all))
	for i, p := range all {
		out[i] = p.Finding
	}
	return out
}

// of is the place of the first task of a finding; a file calls a task that has no
// token by its number, as #3.
func (at placesByToken) of(f hub.Finding, otherwise int) int {
	if len(f.Tasks) == 0 {
		return otherwise
	}
	if i, ok := at[f.Tasks[0]]; ok {
		return i
	}
	if number, ok := strings.CutPrefix(f.Tasks[0], "#"); ok {
		if n, err := strconv.Atoi(number); err == nil {
			return n - 1
		}
	}
	return otherwise
}
