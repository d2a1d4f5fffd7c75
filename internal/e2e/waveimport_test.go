//go:build unix

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// plans are small plans as other tools write them.
var plans = map[string]struct {
	name, text string
	tasks      []string // token, dependencies, verify_cmd
	left       string   // what is said not to be imported
}{
	"spec-kit": {
		name: "tasks.md", left: "T001",
		text: "# Tasks: Lending\n\n## Phase 1: Setup\n\n- [x] T001 Create the folders\n- [ ] T002 [P] Book model in src/book.ts\n- [ ] T003 [P] Reader model in src/reader.ts\n\n" +
			"## Phase 2: Core\n\n- [ ] T004 Join both in src/lending.ts (depends on T002, T003)\n",
		tasks: []string{"T002", "T003", "T004 after T002 T003"},
	},
	"gsd": {
		name: "01-02-PLAN.md", left: "objective",
		text: "---\nphase: 01-list\nplan: 02\ntype: execute\nwave: 1\n---\n\n<objective>\nList.\n</objective>\n\n<tasks>\n" +
			"<task type=\"auto\">\n  <name>Task 1: List</name>\n  <files>src/list.ts</files>\n  <action>List the books.</action>\n  <verify>\n    <automated>npm test</automated>\n  </verify>\n</task>\n" +
			"<task type=\"auto\">\n  <name>Task 2: Sort</name>\n  <files>src/list.ts</files>\n  <action>Sort them.</action>\n</task>\n</tasks>\n",
		tasks: []string{"01-02-1: npm test", "01-02-2 after 01-02-1"},
	},
	"taskmaster": {
		name: "tasks.json", left: "priority",
		text: `{"master":{"tasks":[{"id":1,"title":"Model","description":"Make it","status":"pending","priority":"high","dependencies":[]},` +
			`{"id":2,"title":"View","description":"Show it","status":"pending","dependencies":[1]}]}}`,
		tasks: []string{"1", "2 after 1"},
	},
	"tasks-json": {
		name:  "list.json",
		text:  `[{"task_id":"a","goal":"x","write_scope":[]},{"task_id":"b","goal":"y","write_scope":["src"],"dependencies":["a"],"verify_cmd":"make check"}]`,
		tasks: []string{"a", "b after a: make check"},
	},
}

// TestWaveImport_EachFormat: a plan of each tool becomes a wave, by its content and
// by name, and what is not taken over is said.
func TestWaveImport_EachFormat(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("imports")
	place := []string{"--agent", "sh", "--worktree", "path:" + t.TempDir()}
	for format, x := range plans {
		file := textFile(t, x.name, x.text)
		for _, named := range []string{"auto", format} {
			made := get[api.WaveResult](t, run.Caller, append([]string{"wave", "create", "--from", file, "--format", named}, place...)...)
			if got := declared(made.Tasks); !slices.Equal(got, x.tasks) {
				t.Errorf("%s as %s: the tasks are %q, want %q", format, named, got, x.tasks)
			}
			if left := notImported(made.Warnings); (x.left == "") != (left == "") || !strings.Contains(left, x.left) {
				t.Errorf("%s as %s: not imported are %q", format, named, left)
			}
		}
		plan, r := run.planned(t, file, append([]string{"--from-format", format}, place...)...)
		if r.Code != 0 || len(plan.Tasks) != len(x.tasks) || !strings.Contains(notImported(plan.Warnings), x.left) {
			t.Errorf("%s: exit %d, %s", format, r.Code, r.Stdout)
		}
		if told := run.CLI(append([]string{"wave", "create", "--from", file}, place...)...); told.Code != 0 || !strings.Contains(told.Stdout, x.left) {
			t.Errorf("%s: people are told\n%s%s", format, told.Stdout, told.Stderr)
		}
		nobody := refused(t, run.Caller, "plan_invalid", "wave", "create", "--from", file)
		if codes := slices.Compact(findingCodes(nobody.Findings)); !slices.Equal(codes, []string{"placement_invalid"}) {
			t.Errorf("%s without a place: %+v", format, nobody.Findings)
		}
	}
	unknown := refused(t, run.Caller, "plan_invalid", append([]string{"wave", "create", "--from", textFile(t, "notes.txt", "buy milk\n")}, place...)...)
	if codes := findingCodes(unknown.Findings); !slices.Equal(codes, []string{"file_invalid"}) {
		t.Errorf("what is no plan: %+v", unknown.Findings)
	}
}

// declared are tasks with their dependencies and checks.
func declared(tasks []api.WaveTask) (out []string) {
	for _, task := range tasks {
		text := task.TaskId
		if len(task.Dependencies) > 0 {
			text += " after " + strings.Join(task.Dependencies, " ")
		}
		if task.VerifyCmd != "" {
			text += ": " + task.VerifyCmd
		}
		out = append(out, text)
	}
	return out
}

func notImported(warnings []api.PlanFinding) (details string) {
	for _, w := range warnings {
		if w.Code == "not_imported" {
			details += strings.Join(w.Tasks, " ") + " " + w.Detail + "\n"
		}
	}
	return details
}

// TestWaveRun_CreatesStartsAndWatches an import to its end, and tells by its exit
// code how it ended if it is asked to.
func TestWaveRun_CreatesStartsAndWatches(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("run")
	run.Caller.env = append(run.Caller.env, "WAVEHUB_RUN="+run.Run)
	good := taskFile(t, shTask(t, "a", done+"fine"), shTask(t, "b", done+"fine", "a"))
	bad := taskFile(t, shTask(t, "a", "exit 3"))
	for _, x := range []struct {
		file, id, end string
		code          int
		args          []string
	}{
		{good, "good", "wave_completed", 0, []string{"--exit-status"}}, {bad, "bad", "wave_failed", 1, []string{"--exit-status"}}, {bad, "unasked", "wave_failed", 0, nil},
	} {
		r := run.CLI(append([]string{"wave", "run", x.file, "--goal", "g", "--id", x.id}, x.args...)...)
		seen := eventsOf(t, r.Stdout)
		if r.Code != x.code || len(seen) < 3 || seen[0].Type != "wave_started" || seen[len(seen)-1].Type != x.end {
			t.Errorf("%s: exit %d\n%s%s", x.id, r.Code, r.Stdout, r.Stderr)
		}
		if !strings.Contains(r.Stderr, "wave "+x.id+" runs") {
			t.Errorf("%s: people are told %q", x.id, r.Stderr)
		}
	}
	r := run.json("wave", "run", taskFile(t, shTask(t, "a", "x", "nobody")))
	if p := r.problem(t, "plan_invalid"); len(p.Findings) != 1 || r.Stdout != "" {
		t.Errorf("a plan that is not valid: %+v", r)
	}
	refused(t, run.Caller, "wave_exists", "wave", "run", good, "--id", "good")
}
