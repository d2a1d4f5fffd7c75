package wave

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// entry is a task that is right but for what a test says; a nil scope is unknown.
func declared(token string, deps, writes []string) hub.WaveEntry {
	return hub.WaveEntry{Token: token, Goal: "do it", Worker: "w-1", Dependencies: deps, WriteScope: writes}
}

// codes are the codes of findings with their tasks, as "code a,b".
func codesIn(fs []hub.Finding) []string {
	out := []string{}
	for _, f := range fs {
		out = append(out, strings.TrimSpace(f.Code+" "+strings.Join(f.Tasks, ",")))
	}
	return out
}

// shape is the levels of a plan, as "2a: C, D".
func shapeIn(p hub.Plan) []string {
	var out []string
	for _, l := range p.Levels {
		out = append(out, fmt.Sprintf("%d%s: %s", l.Wave, l.Sub, strings.Join(l.Tasks, ", ")))
	}
	return out
}

func wantLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPlan_LevelsOfDocument004 is the first example of document 004.
func TestPlan_LevelsOfDocument004(t *testing.T) {
	none := []string{}
	for _, conflicts := range []string{hub.ConflictsReject, hub.ConflictsSerialize, hub.ConflictsAllow} {
		p := BuildPlan([]hub.WaveEntry{
			declared("A", nil, none), declared("B", nil, none), declared("C", []string{"A", "B"}, none), declared("D", []string{"B"}, none), declared("E", []string{"C", "D"}, none),
		}, PlanOptions{Conflicts: conflicts})
		wantLines(t, conflicts, shapeIn(p), []string{"1: A, B", "2: C, D", "3: E"})
		if want := []hub.Place{{Level: 1}, {Level: 1}, {Level: 2}, {Level: 2}, {Level: 3}}; !p.Valid || !slices.Equal(p.Places, want) || len(p.Orders) > 0 {
			t.Errorf("%s: %+v", conflicts, p)
		}
	}
}

// TestPlan_SerializesAsDocument004 is its second example, word for word.
func TestPlan_SerializesAsDocument004(t *testing.T) {
	entries := []hub.WaveEntry{
		declared("A", nil, []string{}), declared("B", nil, []string{}),
		declared("C", []string{"A", "B"}, []string{"src/auth/login.ts", "src/auth/types.ts"}), declared("D", []string{"B"}, []string{"src/db/migrations.ts"}),
		declared("E", []string{"A"}, []string{"src/auth/login.ts", "src/ui/login.tsx"}),
	}
	for _, order := range []string{hub.OrderDAG, hub.OrderBarrier} {
		p := BuildPlan(entries, PlanOptions{Order: order, Conflicts: hub.ConflictsSerialize})
		wantLines(t, order, shapeIn(p), []string{"1: A, B", "2a: C, D", "2b: E"})
		if want := []hub.Serialized{{Path: "src/auth/login.ts", First: "C", Second: "E", MovedTo: "2b"}}; !slices.Equal(p.Serialized, want) {
			t.Errorf("%s: serialized %+v", order, p.Serialized)
		}
		if want := []hub.WaveOrder{{First: 2, Second: 4, Path: "src/auth/login.ts"}}; !p.Valid || !slices.Equal(p.Orders, want) || p.Places[4] != (hub.Place{Level: 2, Sub: 2}) {
			t.Errorf("%s: %+v", order, p)
		}
	}
	p := BuildPlan(entries, PlanOptions{Conflicts: hub.ConflictsReject})
	wantLines(t, "reject", codesIn(p.Findings), []string{"scope_conflict C,E"})
	if p.Valid || p.Places != nil || p.Orders != nil || !strings.Contains(p.Findings[0].Detail, "src/auth/login.ts") {
		t.Errorf("%+v", p)
	}
	p = BuildPlan(entries, PlanOptions{Conflicts: hub.ConflictsAllow})
	wantLines(t, "allow", codesIn(p.Warnings), []string{"scope_overlap C,E"})
	if !p.Valid {
		t.Errorf("%+v", p.Findings)
	}
}

// All that is wrong is said at once, in declared order and then by code.
func TestPlan_FindsAllAtOnce(t *testing.T) {
	entries := []hub.WaveEntry{
		declared("a.b", nil, []string{}),
		declared("dup", nil, []string{"docs"}),
		declared("dup", nil, []string{"docs"}),
		declared("lost", []string{"ghost", "root", "root"}, []string{"src/a"}),
		declared("x", []string{"y"}, []string{}), declared("y", []string{"x"}, []string{}),
		declared("out", nil, []string{"../up", "/abs", "", "src/A/b"}),
		{Token: "nowhere", Goal: "g", WriteScope: []string{}, TimeoutSecs: -1},
		{Token: "root", Goal: " ", Worker: "w-1", Start: &hub.WaveStart{Agent: "sh"}, WriteScope: []string{}, VerifyCmd: "true"},
	}
	for i := range entries[:7] {
		entries[i].VerifyCmd = "true"
	}
	p := BuildPlan(entries, PlanOptions{
		Conflicts: hub.ConflictsReject, Verify: hub.VerifyRequired,
		Check:     []hub.Finding{{Code: hub.FindRepoNotFound, Tasks: []string{"lost"}, Detail: "d"}, {Code: hub.FindKeyUnknown, Detail: "d", Line: 3}},
		Unchecked: []hub.Finding{{Code: hub.WarnUnchecked, Tasks: []string{"x"}}},
	})
	wantLines(t, "findings", codesIn(p.Findings), []string{
		"token_invalid a.b", "task_duplicate dup", "dependency_unknown lost", "repo_not_found lost", "scope_conflict lost,out",
		"dependency_cycle x,y", "scope_invalid out", "scope_invalid out", "scope_invalid out", "placement_invalid nowhere", "timeout_invalid nowhere",
		"verify_command_missing nowhere", "placement_invalid root", "value_invalid root", "key_unknown",
	})
	if f := p.Findings[5]; f.Detail != "x → y → x: each depends on the next" {
		t.Error(f.Detail)
	}
	if !strings.Contains(p.Findings[4].Detail, "src/A/b") {
		t.Errorf("the path is not the narrower one: %s", p.Findings[4].Detail)
	}
	if !strings.Contains(p.Findings[1].Detail, "the tasks 2, 3") {
		t.Error(p.Findings[1].Detail)
	}
	wantLines(t, "warnings", codesIn(p.Warnings), []string{"self_graded a.b,dup,dup,lost,x,y,out", "unchecked x"})
}

func TestPlan_Placement(t *testing.T) {
	start := func(s hub.WaveStart) hub.WaveEntry {
		return hub.WaveEntry{Token: "t", Goal: "g", Start: &s, WriteScope: []string{}}
	}
	worker := func(w string) hub.WaveEntry {
		return hub.WaveEntry{Token: "t", Goal: "g", Worker: w, WriteScope: []string{}}
	}
	for name, c := range map[string]struct {
		e    hub.WaveEntry
		fits bool
	}{
		"named":                {worker("w-1"), true},
		"named on a peer":      {worker("w-1@windows"), true},
		"no peer":              {worker("w-1@"), false},
		"no name":              {worker("@windows"), false},
		"no worker's name":     {worker("W 1"), false},
		"new":                  {start(hub.WaveStart{Agent: "sh", Repo: "r", Worktree: hub.WorktreeNewTopLevel, Name: "vet", Setup: hub.SetupRun}), true},
		"new, named later":     {start(hub.WaveStart{On: "windows", Agent: "sh", Repo: "r", Worktree: hub.WorktreeNewTopLevel}), true},
		"existing":             {start(hub.WaveStart{Agent: "sh", Worktree: "path:/x"}), true},
		"in a terminal":        {start(hub.WaveStart{Terminal: "term_1", Worktree: "id:wt_1"}), true},
		"nobody":               {start(hub.WaveStart{Worktree: "path:/x"}), false},
		"nowhere":              {start(hub.WaveStart{Agent: "sh"}), false},
		"here":                 {start(hub.WaveStart{Agent: "sh", Worktree: hub.WorktreeCurrent}), false},
		"agent and terminal":   {start(hub.WaveStart{Agent: "sh", Terminal: "term_1", Worktree: "path:/x"}), false},
		"setup of an old one":  {start(hub.WaveStart{Agent: "sh", Worktree: "path:/x", Setup: hub.SetupRun}), false},
		"child without parent": {start(hub.WaveStart{On: "p", Agent: "sh", Worktree: hub.WorktreeNewChild}), false},
		"relative":             {start(hub.WaveStart{Agent: "sh", Worktree: "path:x"}), false},
		"relative there":       {start(hub.WaveStart{On: "windows", Agent: "sh", Worktree: `path:C:\x`}), true},
		"child of nothing":     {start(hub.WaveStart{Agent: "sh", Repo: "r", Worktree: hub.WorktreeNewChild}), false},
		"child of here":        {start(hub.WaveStart{Agent: "sh", Repo: "r", Worktree: hub.WorktreeNewChild, Parent: hub.WorktreeCurrent}), false},
		"child":                {start(hub.WaveStart{Agent: "sh", Repo: "r", Worktree: hub.WorktreeNewChild, Parent: "id:wt_1"}), true},
		"a bad name":           {start(hub.WaveStart{Agent: "sh", Worktree: hub.WorktreeNewTopLevel, Name: "con"}), false},
	} {
		p := BuildPlan([]hub.WaveEntry{c.e}, PlanOptions{})
		if p.Valid != c.fits || !c.fits && !slices.Equal(codesIn(p.Findings), []string{"placement_invalid t"}) {
			t.Errorf("%s: %v", name, p.Findings)
		}
	}
}

func TestPlan_WordsOfATask(t *testing.T) {
	many := make([]string, hub.MaxScopeEntries+1)
	for i := range many {
		many[i] = fmt.Sprint("d", i)
	}
	for name, c := range map[string]struct {
		change func(*hub.WaveEntry)
		want   string
	}{
		"handoff path":  {func(e *hub.WaveEntry) { e.HandoffPath = "../x" }, "value_invalid t"},
		"silent verify": {func(e *hub.WaveEntry) { e.VerifyCmd = " " }, "value_invalid t"},
		"long label":    {func(e *hub.WaveEntry) { e.Workspace = strings.Repeat("x", maxWorkspace+1) }, "value_invalid t"},
		"NUL":           {func(e *hub.WaveEntry) { e.Goal = "a\x00" }, "value_invalid t"},
		"read scope":    {func(e *hub.WaveEntry) { e.ReadScope = []string{"a\x00b"} }, "scope_invalid t"},
		"many paths":    {func(e *hub.WaveEntry) { e.WriteScope = many }, "scope_invalid t"},
		"deep":          {func(e *hub.WaveEntry) { e.WriteScope = []string{strings.Repeat("a/", 200)} }, "scope_invalid t"},
		"large":         {func(e *hub.WaveEntry) { e.WriteScope = []string{strings.Repeat("a", hub.MaxScopeBytes), "b"} }, "scope_invalid t"},
		"none":          {func(e *hub.WaveEntry) { e.Token = "" }, "token_invalid"},
	} {
		e := declared("t", nil, []string{})
		c.change(&e)
		wantLines(t, name, codesIn(BuildPlan([]hub.WaveEntry{e}, PlanOptions{}).Findings), []string{c.want})
	}
	wide := declared("t", nil, []string{})
	entries := []hub.WaveEntry{}
	for i := range hub.MaxDependencies + 1 {
		entries = append(entries, declared(fmt.Sprint("d", i), nil, []string{}))
		wide.Dependencies = append(wide.Dependencies, entries[i].Token)
	}
	wantLines(t, "many dependencies", codesIn(BuildPlan(append(entries, wide), PlanOptions{}).Findings), []string{"value_invalid t"})
}

// What is not known is told apart from nothing, and each thing counts once.
func TestClean(t *testing.T) {
	given := []hub.WaveEntry{
		{Token: "a", Dependencies: []string{"root", "root", "x", "root"}, WriteScope: []string{`src\a`, "./src/a/", "b", "../up"}, HandoffPath: "./n.md", TimeoutSecs: 1 << 40},
		{Token: "b", WriteScope: []string{}, ReadScope: []string{"a", "a"}, TimeoutSecs: -3},
	}
	want := []hub.WaveEntry{
		{Token: "a", Dependencies: []string{"root", "x"}, WriteScope: []string{"src/a", "b", "../up"}, HandoffPath: "n.md", TimeoutSecs: hub.MaxWaveTime},
		{Token: "b", WriteScope: []string{}, ReadScope: []string{"a"}, TimeoutSecs: -3},
	}
	before := fmt.Sprint(given)
	got := Clean(given)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(Clean(got), want) {
		t.Errorf("%+v", got)
	}
	if got[1].WriteScope == nil || Clean([]hub.WaveEntry{{}})[0].WriteScope != nil {
		t.Error("nothing and not known are mixed up")
	}
	if fmt.Sprint(given) != before {
		t.Error("the argument was changed")
	}
	for _, o := range []PlanOptions{{}, {Conflicts: hub.ConflictsSerialize}} {
		if !reflect.DeepEqual(BuildPlan(given, o), BuildPlan(got, o)) {
			t.Error("cleaned entries have another plan")
		}
	}
}

func TestPlan_OfNothing(t *testing.T) {
	p := BuildPlan(nil, PlanOptions{})
	if !p.Valid || p.Findings == nil || p.Levels == nil || p.Serialized == nil || p.Warnings == nil || p.Places == nil || p.Orders == nil {
		t.Errorf("%#v", p)
	}
}

func TestPlan_Undeclared(t *testing.T) {
	entries := []hub.WaveEntry{
		declared("a", nil, []string{"x"}), declared("b", nil, nil), declared("c", nil, []string{"y"}), declared("d", nil, []string{}), declared("other", nil, []string{"x"}), declared("e", nil, nil),
	}
	entries[4].Workspace = "elsewhere"
	p := BuildPlan(entries, PlanOptions{Conflicts: hub.ConflictsSerialize})
	wantLines(t, "serialize", shapeIn(p), []string{"1a: a, c, d, other", "1b: b", "1c: e"})
	if len(p.Warnings) > 0 || p.Serialized[0] != (hub.Serialized{Path: undeclared, First: "a", Second: "b", MovedTo: "1b"}) || len(p.Serialized) != 7 {
		t.Errorf("%+v", p)
	}
	for _, conflicts := range []string{"", hub.ConflictsReject, hub.ConflictsAllow} {
		p = BuildPlan(entries, PlanOptions{Conflicts: conflicts})
		wantLines(t, conflicts, codesIn(p.Warnings), []string{"scope_undeclared b,e"})
	}
	p = BuildPlan(entries, PlanOptions{Conflicts: hub.ConflictsSerialize, Scope: hub.ScopeEnforce})
	wantLines(t, "enforce", codesIn(p.Warnings), []string{"scope_undeclared b,d,e"})
}

func TestPlan_OrdersAcrossLevels(t *testing.T) {
	entries := []hub.WaveEntry{
		declared("late", []string{"root"}, []string{"src/a"}), declared("root", nil, []string{"src"}), declared("free", nil, []string{"SRC/*"}), declared("reads", nil, []string{}),
	}
	entries[3].ReadScope = []string{`src\a\b`}
	p := BuildPlan(entries, PlanOptions{Conflicts: hub.ConflictsSerialize})
	wantLines(t, "dag", shapeIn(p), []string{"1a: root, reads", "1b: free", "2: late"})
	if want := []hub.Serialized{{Path: "SRC/*", First: "root", Second: "free", MovedTo: "1b"}, {Path: "src/a", First: "free", Second: "late", MovedTo: "2"}}; !slices.Equal(p.Serialized, want) {
		t.Errorf("%+v", p.Serialized)
	}
	wantLines(t, "reads", codesIn(p.Warnings), []string{"read_overlap late,reads", "read_overlap root,reads", "read_overlap free,reads"})
	for k, writer := range []string{"late", "root", "free"} {
		if d := p.Warnings[k].Detail; !strings.HasPrefix(d, "reads reads src/a/b, which "+writer+" writes") {
			t.Error(d)
		}
	}
	p = BuildPlan(entries, PlanOptions{Conflicts: hub.ConflictsSerialize, Order: hub.OrderBarrier})
	wantLines(t, "barrier", codesIn(p.Warnings), []string{"read_overlap root,reads", "read_overlap free,reads"})
	if len(p.Orders) != 1 {
		t.Errorf("%+v", p.Orders)
	}
}

func TestPlan_Cycles(t *testing.T) {
	e := func(token string, deps ...string) hub.WaveEntry { return declared(token, deps, []string{"same"}) }
	p := BuildPlan([]hub.WaveEntry{
		e("self", "self"), e("a", "b"), e("b", "a", "c"), e("c", "a", "fine"), e("p", "q"), e("q", "r"), e("r", "p"), e("behind", "a"), e("fine"),
	}, PlanOptions{})
	var details []string
	for _, f := range p.Findings {
		if f.Code != hub.FindDependencyCycle {
			t.Errorf("%+v", f)
		}
		details = append(details, strings.TrimSuffix(f.Detail, ": each depends on the next"))
	}
	wantLines(t, "cycles", details, []string{"self → self", "a → b → a", "a → b → c → a", "p → q → r → p"})
	wantLines(t, "levels", shapeIn(p), []string{"1: fine"})
}

func TestPlan_CyclesAreBounded(t *testing.T) {
	long, dense, many := []hub.WaveEntry{}, []hub.WaveEntry{}, []hub.WaveEntry{}
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprint("t", i))
	}
	const n = 20_000
	for i := range n {
		long = append(long, declared(fmt.Sprint("t", i), []string{fmt.Sprint("t", (i+1)%n)}, []string{}))
		many = append(many, declared(fmt.Sprint("t", i), []string{fmt.Sprint("t", i^1)}, []string{}))
	}
	for _, token := range all {
		dense = append(dense, declared(token, all, []string{}))
	}
	p := BuildPlan(long, PlanOptions{})
	if len(p.Findings) != 1 || len(p.Findings[0].Tasks) != maxCycleShown || !strings.Contains(p.Findings[0].Detail, "… 19936 more …") {
		t.Errorf("%d findings, %.200s", len(p.Findings), p.Findings[0].Detail)
	}
	for name, entries := range map[string][]hub.WaveEntry{"many": many, "dense": dense} {
		p := BuildPlan(entries, PlanOptions{})
		if n := len(p.Findings); n != planBounds.cycles+1 || !strings.Contains(p.Findings[n-1].Detail, "there are more") {
			t.Errorf("%s: %d findings", name, n)
		}
	}
}

func TestPlan_FindingsAreBounded(t *testing.T) {
	var entries []hub.WaveEntry
	for i := range 3000 {
		entries = append(entries, declared(fmt.Sprint("t", i), nil, []string{"."}))
	}
	p := BuildPlan(entries, PlanOptions{Verify: hub.VerifyRequired})
	if n := len(p.Findings); n != 2*planBounds.findings+2 || p.Findings[n-1].Detail != "2000 more of these are not listed" ||
		p.Findings[n-2].Detail != fmt.Sprint(3000*2999/2-1000)+" more of these are not listed" {
		t.Errorf("%d findings, at last %+v", n, p.Findings[n-2:])
	}
}

// TestHeld_ReadsOrdersThrough: what was cancelled between two tasks does not let
// the second one start beside the first.
func TestHeld_ReadsOrdersThrough(t *testing.T) {
	orders := []hub.WaveOrder{{First: 0, Second: 1}, {First: 1, Second: 2}}
	for gone, want := range map[string][]bool{"": {false, true, true}, "1": {false, true, true}, "0": {false, false, true}, "01": {false, false, false}} {
		if got := held(3, orders, func(i int) bool { return strings.Contains(gone, fmt.Sprint(i)) }); !slices.Equal(got, want) {
			t.Errorf("with %q gone: %v", gone, got)
		}
	}
}
