//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// writing is the task with what it writes; nil: it does not say.
func (e waveEntry) writing(scope ...string) waveEntry {
	e.WriteScope = scope
	return e
}

// textFile is a file of that name and text.
func textFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// planned is wave plan of a file, with its exit code.
func (c Caller) planned(t testing.TB, file string, more ...string) (api.WavePlan, Result) {
	t.Helper()
	r := c.json(append([]string{"wave", "plan", file}, more...)...)
	if r.Code > 1 || r.Stderr != "" {
		t.Fatalf("%q: exit %d\n%s%s", r.Args, r.Code, r.Stdout, r.Stderr)
	}
	return decode[api.WavePlan](t, r.Stdout), r
}

// levelsOf are the levels and sub-waves of a plan, in their order.
func levelsOf(p api.WavePlan) (out []string) {
	for _, l := range p.Levels {
		out = append(out, fmt.Sprintf("%d%s: %s", l.Wave, l.Sub, strings.Join(l.Tasks, " ")))
	}
	return out
}

// TestAcceptance_V03_PlansOfTheSkillsExamples: document 004's examples have the
// levels, the sub-waves and the decisions that it says, equal each time.
func TestAcceptance_V03_PlansOfTheSkillsExamples(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	task := func(id string, dependencies ...string) waveEntry { return shTask(t, id, "x", dependencies...) }
	a, b, c, d, e := task("A"), task("B"), task("C", "A", "B"), task("D", "B"), task("E", "C", "D")
	second := []waveEntry{
		a, task("C", "A").writing("src/auth/login.ts", "src/auth/types.ts"), task("D", "A").writing("src/db/migrations.ts"),
		task("E", "A").writing("src/auth/login.ts", "src/ui/login.tsx"),
	}
	unknown := []waveEntry{task("A").writing(nil...), task("B").writing(nil...), task("C").writing(nil...)}
	for name, x := range map[string]struct {
		tasks      []waveEntry
		args       []string
		code       int
		levels     []string
		serialized []string
		findings   []string
	}{
		"dependencies": {tasks: []waveEntry{a, b, c, d, e}, levels: []string{"1: A B", "2: C D", "3: E"}},
		"any order":    {tasks: []waveEntry{e, d, c, b, a}, levels: []string{"1: B A", "2: D C", "3: E"}},
		"one file twice": {
			tasks: second, args: []string{"--conflicts", "serialize"},
			levels: []string{"1: A", "2a: C D", "2b: E"}, serialized: []string{"src/auth/login.ts: C before E in 2b"},
		},
		"by levels": {
			tasks: second, args: []string{"--conflicts", "serialize", "--order", "barrier", "--on-failure", "continue"},
			levels: []string{"1: A", "2a: C D", "2b: E"}, serialized: []string{"src/auth/login.ts: C before E in 2b"},
		},
		"reads do not conflict": {tasks: []waveEntry{a.writing("src/a"), b.writing("src/b")}, levels: []string{"1: A B"}},
		"refused":               {tasks: second, code: 1, findings: []string{"scope_conflict"}},
		"nothing declared": {
			tasks: unknown, args: []string{"--conflicts", "serialize"}, levels: []string{"1a: A", "1b: B", "1c: C"},
			serialized: []string{"(undeclared): A before B in 1b", "(undeclared): A before C in 1c", "(undeclared): B before C in 1c"},
		},
	} {
		file := taskFile(t, x.tasks...)
		plan, r := h.Caller().planned(t, file, x.args...)
		if _, again := h.Caller().planned(t, file, x.args...); again.Stdout != r.Stdout {
			t.Errorf("%s: planned twice it is\n%s%s", name, r.Stdout, again.Stdout)
		}
		var serialized []string
		for _, s := range plan.Serialized {
			serialized = append(serialized, fmt.Sprintf("%s: %s before %s in %s", s.Path, s.First, s.Second, s.MovedTo))
		}
		if r.Code != x.code || plan.Valid != (x.code == 0) || !slices.Equal(findingCodes(plan.Findings), x.findings) {
			t.Errorf("%s: exit %d, %s", name, r.Code, r.Stdout)
		}
		if x.code == 0 && (!slices.Equal(levelsOf(plan), x.levels) || !slices.Equal(serialized, x.serialized)) {
			t.Errorf("%s: %q %q", name, levelsOf(plan), serialized)
		}
	}
}

// broken is a tasks file with all that can be wrong with one, as an editor of
// another system writes it: with a byte order mark and CRLF.
const broken = "\ufeff" + `[
 {"task_id": "a", "goal": "x", "start": {"agent": "sh", "worktree": "path:/tmp", "nmae": "z"}, "write_scope": [], "timeot_secs": 3},
 {"task_id": "a", "goal": "x", "goal": "y", "start": {"agent": "sh", "worktree": "path:/tmp"}, "write_scope": ["src"]},
 {"task_id": "b.c", "goal": "x", "start": {"agent": "nobody", "worktree": "path:/tmp"}, "write_scope": ["/abs"]},
 {"task_id": "d", "goal": "x", "start": {"agent": "sh", "worktree": "path:/tmp", "on": "nowhere"}, "dependencies": ["e", "zz"], "write_scope": ["src/a"]},
 {"task_id": "e", "goal": "x", "start": {"agent": "sh", "repo": "none", "worktree": "new-top-level", "name": "w"}, "dependencies": ["d"], "write_scope": []},
 {"task_id": "f", "goal": "x", "worker": "nobody", "timeout_secs": -1, "write_scope": ["../up"]},
 {"task_id": "g", "goal": 7, "worker": "nobody", "write_scope": []},
 {"goal": "x", "worker": "nobody", "write_scope": []},
 {"task_id": "h", "goal": "x", "write_scope": ["docs/**"]},
 {"task_id": "i", "goal": "x", "start": {"agent": "sh", "worktree": "path:/tmp"}, "write_scope": ["Docs/Guide.md"]}
]`

// TestWavePlan_EverythingWrongIsToldAtOnce with its task and, where the file says
// it, its line: to programs and to people, by plan and by create.
func TestWavePlan_EverythingWrongIsToldAtOnce(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("broken")
	file := textFile(t, "tasks.json", strings.ReplaceAll(broken, "\n", "\r\n"))
	plan, r := run.planned(t, file, "--verify", "required")
	if r.Code != 1 || plan.Valid {
		t.Errorf("exit %d: %s", r.Code, r.Stdout)
	}
	want := map[string][]string{ // by code: "line tasks"
		"key_unknown": {"2 a"}, "key_duplicate": {"3 a"}, "value_invalid": {"8 g", "9 #8"},
	}
	for code, tasks := range map[string]string{
		"task_duplicate": "a", "token_invalid": "b.c", "agent_unconfigured": "b.c", "scope_invalid": "b.c", "dependency_unknown": "d", "dependency_cycle": "d",
		"peer_not_found": "d", "repo_not_found": "e", "timeout_invalid": "f", "worker_not_found": "f", "scope_conflict": "i", "placement_invalid": "h",
		"verify_command_missing": "i",
	} {
		want[code] = []string{tasks}
	}
	told := run.CLI("wave", "plan", file, "--verify", "required")
	refusal := refused(t, run.Caller, "plan_invalid", "wave", "create", "--tasks", file, "--verify", "required")
	for code, places := range want {
		for _, place := range places {
			if !slices.ContainsFunc(plan.Findings, isAt(code, place)) || !slices.ContainsFunc(refusal.Findings, isAt(code, place)) {
				t.Errorf("%s at %q is not among %+v", code, place, plan.Findings)
			}
		}
		if !strings.Contains(told.Stdout, code) {
			t.Errorf("people read nothing of %s:\n%s", code, told.Stdout)
		}
	}
	if page := get[api.WavePage](t, run.Caller, "wave", "list"); len(page.Waves) != 0 {
		t.Errorf("there are waves: %+v", page.Waves)
	}
}

// TestWavePlan_ABoundedNumberOfTasks: one more than 20 000 is refused by plan and by
// create, before anything else is looked at.
func TestWavePlan_ABoundedNumberOfTasks(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("many")
	tasks := make([]string, 20_001)
	for i := range tasks {
		tasks[i] = fmt.Sprintf(`{"task_id":"t%d","goal":"x","worker":"w-1","write_scope":[]}`, i)
	}
	file := textFile(t, "many.json", "["+strings.Join(tasks, ",")+"]")
	refused(t, run.Caller, "too_large", "wave", "plan", file)
	refused(t, run.Caller, "too_large", "wave", "create", "--tasks", file)
	if page := get[api.WavePage](t, run.Caller, "wave", "list"); len(page.Waves) != 0 {
		t.Errorf("there are waves: %+v", page.Waves)
	}
	most := textFile(t, "most.json", "["+strings.Join(tasks[:20_000], ",")+"]")
	if plan, r := run.planned(t, most); r.Code != 1 || !slices.Equal(findingCodes(plan.Findings), []string{"worker_not_found"}) {
		t.Errorf("20 000 tasks of a worker that is not there: exit %d, %d findings", r.Code, len(plan.Findings))
	}
}

// TestWavePlan_ExitCodes: 0 and 1 say whether a plan is valid, in every rendering;
// everything else is what it is for other verbs.
func TestWavePlan_ExitCodes(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	good, bad := taskFile(t, shTask(t, "a", "x")), taskFile(t, shTask(t, "a", "x", "a"))
	for _, format := range []string{"text", "mermaid", "dot", "json"} {
		for file, code := range map[string]int{good: 0, bad: 1} {
			if r := h.CLI("wave", "plan", file, "--format", format); r.Code != code || r.Stdout == "" || r.Stderr != "" {
				t.Errorf("--format %s: exit %d, want %d\n%s%s", format, r.Code, code, r.Stdout, r.Stderr)
			}
		}
	}
	for _, line := range [][]string{{filepath.Join(t.TempDir(), "nowhere.json")}, {good, "--format", "png"}, {good, "--order", "sideways"}, {good, "--from-format", "excel"}} {
		if r := h.CLI(append([]string{"wave", "plan"}, line...)...); r.Code != 2 || r.Stdout != "" || r.Stderr == "" {
			t.Errorf("wave plan %q: exit %d\n%s%s", line, r.Code, r.Stdout, r.Stderr)
		}
	}
	if r := NewHub(t, "none").CLI("wave", "plan", good); r.Code != exitOf(t, "hub_unreachable") {
		t.Errorf("without a hub: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	stdin := h.Caller()
	stdin.stdin = read(t, good)
	if r := stdin.CLI("wave", "plan", "-"); r.Code != 0 {
		t.Errorf("from stdin: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// isAt says whether a finding has the code, and names the line, if one is wanted,
// and the task.
func isAt(code, place string) func(api.PlanFinding) bool {
	line, task, lined := strings.Cut(place, " ")
	if !lined {
		line, task = "", place
	}
	return func(f api.PlanFinding) bool {
		return f.Code == code && slices.Contains(f.Tasks, task) && (!lined || itoa(f.Line) == line)
	}
}
