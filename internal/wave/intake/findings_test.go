package intake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// brief is a finding as the tables below write it: line code task: words of detail.
func brief(f hub.Finding) string {
	return fmt.Sprintf("%d %s %s: %s", f.Line, f.Code, strings.Join(f.Tasks, ","), f.Detail)
}

// checkNotes compares notes with the beginnings, and after … the ends, of what is
// expected.
func checkNotes(t *testing.T, got []hub.Finding, want ...string) {
	t.Helper()
	for i, f := range got {
		if f.Tasks == nil {
			t.Errorf("the tasks of %s are nil", brief(f))
		}
		if i >= len(want) {
			t.Errorf("unexpected: %s", brief(f))
			continue
		}
		head, tail, _ := strings.Cut(want[i], "…")
		if b := brief(f); !strings.HasPrefix(b, head) || !strings.HasSuffix(b, tail) {
			t.Errorf("note %d is %q, want %q", i+1, b, want[i])
		}
	}
	if len(got) < len(want) {
		t.Errorf("missing: %q", want[len(got):])
	}
}

func TestTasksJSONFindings(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		tasks string // tokens
		want  []string
	}{
		"empty list":          {"[]", "", nil},
		"empty tasks":         {`{"tasks":[]}`, "", nil},
		"nothing":             {"", "", []string{"1 file_invalid : there should be a list of tasks…the end of the file"}},
		"only space":          {" \n\n", "", []string{"3 file_invalid : …"}},
		"no JSON":             {"tasks", "", []string{"1 file_invalid : …'t'"}},
		"a text":              {`"x"`, "", []string{"1 file_invalid : …"}},
		"no comma":            {"[\n{}\n{}]", "", []string{"2 value_invalid #1: task_id is missing", "2 value_invalid #1: goal is missing", `3 file_invalid : there should be a comma or ], but there is '{'`}},
		"trailing comma":      {`[{"task_id":"a","goal":"g"},]`, "", []string{"1 file_invalid : there should be a value, but there is ']'"}},
		"trailing garbage":    {"[]\n\nx", "", []string{"3 file_invalid : there should be the end of the file, but there is 'x'"}},
		"second value":        {"[] []", "", []string{"1 file_invalid : …"}},
		"cut":                 {`[{"task_id":"a","goal":"g`, "", []string{"1 file_invalid : there should be the closing quote, but there is the end of the file"}},
		"no colon":            {`[{"task_id" "a"}]`, "", []string{"1 file_invalid : there should be a colon…"}},
		"no key":              {`[{a:1}]`, "", []string{"1 file_invalid : there should be a key in quotes…"}},
		"a line in a text":    {"[{\"goal\":\"a\nb\"}]", "", []string{"1 file_invalid : there should be the closing quote, or…"}},
		"bad escape":          {`[{"goal":"\x"}]`, "", []string{"1 file_invalid : …but there is 'x'"}},
		"bad unicode":         {`[{"goal":"\u12"}]`, "", []string{"1 file_invalid : there should be four hexadecimal digits…"}},
		"half a pair":         {`[{"goal":"\ud800"}]`, "", []string{"1 file_invalid : there should be the other half…"}},
		"two first halves":    {`[{"goal":"\ud800\ud800"}]`, "", []string{"1 file_invalid : two \\u…"}},
		"bad number":          {`[{"timeout_secs":01}]`, "", []string{"1 file_invalid : there should be a comma…"}},
		"number without end":  {`[{"timeout_secs":1.}]`, "", []string{"1 file_invalid : there should be a digit…"}},
		"bad word":            {`[nul]`, "", []string{"1 file_invalid : there should be null…"}},
		"invalid UTF-8":       {"[\n\"\xff\"]", "", []string{"2 file_invalid : the file holds the byte 0xff…"}},
		"NUL":                 {"[\n\n\x00]", "", []string{"3 file_invalid : the file holds a NUL…"}},
		"deep":                {strings.Repeat("[", 33), "", []string{"1 file_invalid : lists and objects lie more than 32 deep…"}},
		"deep in a value":     {`[{"x":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}]`, "", []string{"1 key_unknown #1: …", "1 value_invalid #1: task_id…", "1 value_invalid #1: goal…"}},
		"no tasks":            {"{\n\"task\": []}", "", []string{"1 file_invalid : the object has no tasks", `2 key_unknown : "task" is no key here; tasks may be meant`}},
		"tasks no list":       {"{\n\"tasks\": {}}", "", []string{"2 file_invalid : tasks is an object, and should be a list"}},
		"tasks twice":         {`{"tasks":[],"tasks":[{"task_id":"a","goal":"g"}]}`, "", []string{"1 key_duplicate : tasks is there twice"}},
		"not an object":       {"[\nnull,\n[]]", "", []string{"2 value_invalid #1: …", "3 value_invalid #2: …"}},
		"missing":             {`[{"task_id":"a"}]`, "a", []string{"1 value_invalid a: goal is missing"}},
		"nameless":            {`[{"goal":"g"}]`, "", []string{"1 value_invalid #1: task_id is missing"}},
		"name comes late":     {"[{\"golf\":1,\n\"goal\":\"g\",\"task_id\":\"z\"}]", "z", []string{`1 key_unknown z: "golf" is no key here; goal may be meant`}},
		"far key":             {`[{"task_id":"a","goal":"g","banana":1}]`, "a", []string{`1 key_unknown a: "banana" is no key here`}},
		"another case":        {`[{"task_id":"a","Goal":"g"}]`, "a", []string{`1 key_unknown a: "Goal" is no key here; goal may be meant`, "1 value_invalid a: goal is missing"}},
		"twice in start":      {`[{"task_id":"a","goal":"g","start":{"agent":"x","agent":"y"}}]`, "a", []string{"1 key_duplicate a: start.agent is there twice"}},
		"start is text":       {`[{"task_id":"a","goal":"g","start":"x"}]`, "a", []string{"1 value_invalid a: start is text, and should be an object"}},
		"goal is a list":      {`[{"task_id":"a","goal":["g"]}]`, "a", []string{"1 value_invalid a: goal is a list, and should be text"}},
		"scope is text":       {`[{"task_id":"a","goal":"g","write_scope":"x"}]`, "a", []string{"1 value_invalid a: write_scope is text, and should be a list of texts"}},
		"null":                {`[{"task_id":"a","goal":"g","worker":null}]`, "a", []string{"1 value_invalid a: worker is null…"}},
		"NUL in a text":       {`[{"task_id":"a","goal":"g\u0000"}]`, "a", []string{"1 value_invalid a: goal holds a NUL character"}},
		"empty path":          {`[{"task_id":"a","goal":"g","write_scope":[""]}]`, "a", nil},
		"timeout is text":     {`[{"task_id":"a","goal":"g","timeout_secs":"x"}]`, "a", []string{"1 timeout_invalid a: timeout_secs is text…"}},
		"timeout negative":    {`[{"task_id":"a","goal":"g","timeout_secs":-1}]`, "a", []string{"1 timeout_invalid a: timeout_secs is -1…"}},
		"timeout fraction":    {`[{"task_id":"a","goal":"g","timeout_secs":1.5}]`, "a", []string{"1 timeout_invalid a: timeout_secs is 1.5…"}},
		"timeout is null":     {`[{"task_id":"a","goal":"g","timeout_secs":null}]`, "a", []string{"1 timeout_invalid a: …"}},
		"others are found":    {"[{\"task_id\":\"a\"},\n{\"task_id\":\"b\",\"goal\":1},\n{\"task_id\":\"c\",\"goal\":\"g\"}]", "a b c", []string{"1 value_invalid a: …", "2 value_invalid b: …"}},
		"before what is cut":  {"[{\"task_id\":\"a\",\"x\":1,\"goal\":\"g\"},\n{", "", []string{"1 key_unknown a: …", "2 file_invalid : …"}},
		"byte order and CRLF": {"\ufeff[\r\n{\"task_id\":\"a\",\"goal\":\"g\"},\r\n1]\r\n", "a", []string{"3 value_invalid #2: …"}},
	} {
		t.Run(name, func(t *testing.T) {
			tasks, findings, warnings := Read(FormatTasksJSON, "tasks.json", c.text)
			if got := strings.Join(tokens(tasks), " "); got != c.tasks {
				t.Errorf("tasks %q, want %q", got, c.tasks)
			}
			checkNotes(t, findings, c.want...)
			checkNotes(t, warnings)
		})
	}
}

func tokens(tasks []hub.WaveEntry) []string {
	var all []string
	for _, e := range tasks {
		all = append(all, e.Token)
	}
	return all
}

func TestTimeouts(t *testing.T) {
	for text, want := range map[string]int64{ // -1: refused
		"0": 1, "-0": 1, "0.0": 1, "1": 1, "1.0": 1, "90": 90, "9e1": 90, "900e-1": 90, "0.9E+2": 90, "604800": 604800, "604801": 604800,
		"1e9": 604800, "1e400": 604800, "1e99999999999999999999": 604800, "0e99999999999999999999": 1, "99999999999999999999": 604800, "0.00001e6": 10,
		"-1": -1, "1.5": -1, "1e-1": -1, "1e-99999999999999999999": -1, "-1e400": -1, "1.0000000000000000000001": -1, "0.5": -1,
	} {
		tasks, findings, _ := Read(FormatTasksJSON, "", `[{"task_id":"a","goal":"g","timeout_secs":`+text+`}]`)
		if refused := len(findings) == 1 && findings[0].Code == hub.FindTimeoutInvalid; refused != (want < 0) || !refused && tasks[0].TimeoutSecs != want {
			t.Errorf("%s: %d, %v", text, tasks[0].TimeoutSecs, findings)
		}
	}
}

func TestWriteScopeOfTasksJSON(t *testing.T) {
	tasks, findings, _ := Read(FormatTasksJSON, "", `[{"task_id":"a","goal":"g"},{"task_id":"b","goal":"g","write_scope":null},{"task_id":"c","goal":"g","write_scope":[]}]`)
	if len(findings) > 0 || tasks[0].WriteScope != nil || tasks[1].WriteScope != nil || tasks[2].WriteScope == nil || len(tasks[2].WriteScope) > 0 {
		t.Errorf("%#v, %v", tasks, findings)
	}
}

func TestFormats(t *testing.T) {
	for name, c := range map[string]struct{ file, text, format string }{
		"list":                 {"x.md", " \n[", FormatTasksJSON},
		"object of tasks":      {"", `{"tasks":[{"task_id":"a","id":"b"}]}`, FormatTasksJSON},
		"object of none":       {"", `{"tasks":[]}`, FormatTasksJSON},
		"object, broken":       {"", `{"tasks":[{"goal":`, FormatTasksJSON},
		"task master":          {"", `{"tasks":[{"id":1,"title":"x"}]}`, FormatTaskmaster},
		"task master, tagged":  {"", `{"master":{"metadata":{},"tasks":[]}}`, FormatTaskmaster},
		"task master, broken":  {"", `{"tasks":[{"id":1,"title":"x"},`, FormatTaskmaster},
		"spec-kit":             {"x", "# T\r\n\r\n- [ ] T001 x\r\n", FormatSpecKit},
		"spec-kit, bold":       {"x", "* [X] **T001** x", FormatSpecKit},
		"spec-kit by name":     {"/a/tasks.md", "nothing", FormatSpecKit},
		"gsd":                  {"x", "---\nphase: 1\n---\n<tasks>\n", FormatGSD},
		"gsd with a checklist": {"tasks.md", "<tasks>\n<task type=\"auto\">\n- [ ] T001 x", FormatGSD},
		"gsd by name":          {`C:\x\01-02-PLAN.md`, "x", FormatGSD},
		"json by name":         {"a.JSON", "x", FormatTasksJSON},
		"none":                 {"a.txt", "x", ""},
		"empty":                {"", "", ""},
	} {
		if got := detect(c.file, c.text); got != c.format {
			t.Errorf("%s: %q, want %q", name, got, c.format)
		}
	}
	_, findings, _ := Read("auto", "a.txt", "x")
	checkNotes(t, findings, "1 file_invalid : the file is none that is known; say its format: tasks-json,…")
	_, findings, _ = Read("yaml", "", "x")
	checkNotes(t, findings, `1 file_invalid : "yaml" is no format;…`)
}

func TestSpecKitFindings(t *testing.T) {
	for name, c := range map[string]struct {
		text               string
		tasks              string // token<dependencies
		findings, warnings []string
	}{
		"none":           {"# Tasks\n\n- [ ] nothing", "", []string{"1 file_invalid : there is no task…"}, []string{`3 not_imported : it has no id such as T001: "nothing"`}},
		"all done":       {"- [x] T1 a\n- [X] T2 b", "", nil, []string{"1 not_imported T1: it is done…", "2 not_imported T2: it is done…"}},
		"no description": {"- [ ] T1\n- [ ] T2 [P]", "T1 T2<T1", []string{"1 value_invalid T1: it has no description", "2 value_invalid T2: …"}, nil},
		"id runs on":     {"- [ ] T1a x\n- [ ] T1ab x", "T1a", nil, []string{"2 not_imported : it has no id…"}},
		"in brackets":    {"- [ ] [T1] x\n- [ ] __T2__: y", "T1 T2<T1", nil, nil},
		"groups": {
			"## Phase 1\n- [ ] T1 [P] a\n- [ ] T2 [P] b\n- [ ] T3 c\n- [ ] T4 [P] d\n- [ ] T5 [P] e\n## Phase 2\n- [ ] T6 [P] f\n### Part\n- [ ] T7 [P] g\n- [ ] T8 h",
			"T1 T2 T3<T1,T2 T4<T3 T5<T3 T6<T4,T5 T7<T4,T5 T8<T6,T7", nil, nil,
		},
		"done ones do not count":    {"- [ ] T1 a\n- [x] T2 b\n- [ ] T3 c (depends on T2)\n- [ ] T4 d", "T1 T3 T4<T3,T1", nil, []string{"2 not_imported T2: …"}},
		"explicit wins":             {"- [ ] T1 a\n- [ ] T2 b\n- [ ] T3 c (after T1)\n- [ ] T4 d", "T1 T2<T1 T3<T1 T4<T3,T2", nil, nil},
		"explicit in a run":         {"- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c, depends on: T2\n- [ ] T4 d", "T1 T2<T1 T3<T2 T4<T2,T3", nil, nil},
		"explicit, several":         {"- [ ] T1 a\n- [ ] T2 b\n- [ ] T3 c\n- [ ] T4 d Depends on tasks T1, T2 and T3", "T1 T2<T1 T3<T2 T4<T1,T2,T3", nil, nil},
		"a range":                   {"- [ ] T1 [P] a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n- [ ] T4 [P] d (depends on T1–T3)", "T1 T2 T3 T4<T1,T2,T3", nil, nil},
		"a range with unknown ends": {"- [ ] T1 a\n- [ ] T2 b (depends on T1-T9)", "T1 T2<T1,T9", nil, nil},
		"in a detail":               {"- [ ] T1 a\n- [ ] T2 b\n  - depends on T1\n- [ ] T3 c", "T1 T2<T1 T3<T2", nil, nil},
		"after is a word":           {"- [ ] T1 clean up after yourself\n- [ ] T2 b", "T1 T2<T1", nil, nil},
		"comments":                  {"- [ ] T1 a <!-- not b -->\n<!--\n- [ ] T2 b\n--> \n- [ ] T3 c", "T1 T3<T1", nil, nil},
		"code":                      {"- [ ] T1 a\n\n~~~\n- [ ] T2 b\n```\n~~~\n- [ ] T3 c", "T1 T3<T1", nil, []string{"3 not_imported : text before the first heading is not imported (lines of it: 4): \"~~~\""}},
		"open front matter":         {"---\n- [ ] T1 a", "", []string{"1 file_invalid : …"}, []string{"2 not_imported : …"}},
	} {
		t.Run(name, func(t *testing.T) {
			tasks, findings, warnings := Read(FormatSpecKit, "tasks.md", c.text)
			if got := graphOf(tasks); got != c.tasks {
				t.Errorf("tasks %q, want %q", got, c.tasks)
			}
			checkNotes(t, findings, c.findings...)
			checkNotes(t, warnings, c.warnings...)
		})
	}
}

// graphOf writes tasks as token<dependencies.
func graphOf(tasks []hub.WaveEntry) string {
	var all []string
	for _, e := range tasks {
		s := e.Token
		if len(e.Dependencies) > 0 {
			s += "<" + strings.Join(e.Dependencies, ",")
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

func TestGSDFindings(t *testing.T) {
	const task = "<tasks>\n<task>\n<name>x</name>\n</task>\n</tasks>"
	for name, c := range map[string]struct {
		file, text         string
		tasks              string
		findings, warnings []string
	}{
		"bare":               {"", task, "1", nil, nil},
		"named by its file":  {"/x/02.1-04-PLAN.md", task, "02-1-04-1", nil, nil},
		"named by itself":    {"01-02-PLAN.md", "---\nphase: 07-last\nplan: 3\n---\n" + task, "07-3-1", nil, nil},
		"plan with phase":    {"", "---\nphase: 07-last\nplan: 07-03\n---\n" + task, "07-03-1", nil, nil},
		"no tasks":           {"", "---\nphase: 1\n---\nx", "", []string{"1 file_invalid : there is no <tasks>…"}, []string{"4 not_imported : text that is in no known element…\"x\""}},
		"bad YAML":           {"", "---\nphase: 1\nplan: [\n---\n" + task, "", []string{"3 file_invalid : the front matter is no YAML…"}, nil},
		"a list":             {"", "---\n- x\n---\n" + task, "", []string{"2 file_invalid : the front matter should be a mapping…"}, nil},
		"key twice":          {"", "---\nplan: 1\nplan: 2\n---\n" + task, "1-1", []string{`3 key_duplicate : "plan" is there twice…`}, nil},
		"wrong values":       {"", "---\nplan: [1]\nfiles_modified: x\n---\n" + task, "1", []string{"2 value_invalid : plan should be…", "3 value_invalid : files_modified should be…"}, nil},
		"wrong entry":        {"", "---\nfiles_modified:\n  - a\n  - [b]\n---\n" + task, "1", []string{"4 value_invalid : an entry of files_modified…"}, nil},
		"an alias":           {"", "---\nphase: &a 1\nplan: *a\n---\n" + task, "1", []string{"3 value_invalid : plan should be…"}, nil},
		"too large":          {"", "---\nx: " + strings.Repeat("y", maxFront) + "\n---\n" + task, "", []string{"1 file_invalid : the front matter has…"}, nil},
		"says nothing":       {"", "---\nautonomous: true\ntype: execute\nmust_haves:\n  truths: []\nuser_setup:\n---\n" + task, "1", nil, nil},
		"tasks left open":    {"", "x\n<tasks>\n<task>", "", []string{"2 file_invalid : <tasks> is not closed"}, []string{"1 not_imported : …"}},
		"task left open":     {"", "<tasks>\n<task>\n</tasks>", "", []string{"2 file_invalid : <task> is not closed"}, nil},
		"section left open":  {"", "<objective>\n" + task, "", []string{"1 file_invalid : <objective> is not closed"}, nil},
		"no wrapper":         {"", "<task type=\"auto\">\n<name>x</name></task>\n<task><action>y</action></task>", "1 2<1", nil, []string{}},
		"nothing said":       {"", "<tasks>\n<task>\n<done>x</done></task></tasks>", "1", []string{"2 value_invalid 1: it has neither <name> nor <action>"}, nil},
		"another type":       {"", "<tasks>\n<task type='research' gate=\"x\"><name>x</name></task></tasks>", "1", nil, []string{`2 not_imported 1: type="research"…`, `2 not_imported 1: gate="x"…`}},
		"child left open":    {"", "<tasks><task>\n<name>x</name>\n<action>y</task></tasks>", "1", nil, []string{"3 not_imported 1: <action> is not closed", "3 not_imported 1: text in no element is not imported: \"y\""}},
		"child there twice":  {"", "<tasks><task>\n<name>x</name>\n<name>y</name></task></tasks>", "1", nil, []string{"3 not_imported 1: <name> is not imported: \"y\""}},
		"between the tasks":  {"", "<tasks>\n<task><name>x</name></task>\nthen\n<task><name>y</name></task></tasks>", "1 2<1", nil, []string{"3 not_imported : …\"then\""}},
		"a checkpoint first": {"", "<tasks><task type=\"checkpoint:decision\"></task><task><name>y</name></task></tasks>", "2", nil, []string{"1 not_imported 1: checkpoint:decision…"}},
	} {
		t.Run(name, func(t *testing.T) {
			tasks, findings, warnings := Read(FormatGSD, c.file, c.text)
			if got := graphOf(tasks); got != c.tasks {
				t.Errorf("tasks %q, want %q", got, c.tasks)
			}
			checkNotes(t, findings, c.findings...)
			checkNotes(t, warnings, c.warnings...)
		})
	}
}

func TestTaskmasterFindings(t *testing.T) {
	for name, c := range map[string]struct {
		text               string
		tasks              string
		findings, warnings []string
	}{
		"none":               {`{"tasks":[]}`, "", nil, nil},
		"a list":             {`[]`, "", []string{"1 file_invalid : there should be an object with tasks…"}, nil},
		"no tasks":           {"\n{}", "", []string{"2 file_invalid : the object has no list of tasks"}, nil},
		"broken":             {"{\"tasks\":[{\"id\":1,\"title\":\"a\"},\n", "", []string{"2 file_invalid : there should be a value…"}, nil},
		"one tag":            {`{"work":{"tasks":[{"id":1,"title":"a"}]}}`, "1", nil, nil},
		"master counts":      {`{"work":{"tasks":[{"id":1,"title":"a"}]},"master":{"tasks":[{"id":2,"title":"a"}]}}`, "2", nil, []string{`1 not_imported : "work" is not imported`}},
		"which tag":          {`{"a":{"tasks":[]},"b":{"tasks":[]}}`, "", []string{`1 file_invalid : the file has the tags "a, b" and none of them is master…`}, []string{"1 not_imported : …", "1 not_imported : …"}},
		"subtasks":           {`{"tasks":[{"subtasks":[{"id":1,"title":"x"},{"id":"1.2","title":"y","dependencies":[1]}],"id":1,"title":"a","dependencies":[3]},{"id":3,"title":"b"}]}`, "1<3,1-1,1-2 1-1<3 1-2<1-1,3 3", nil, nil},
		"on a subtask":       {`{"tasks":[{"id":1,"title":"a","dependencies":["2.1"]},{"id":2,"title":"b","subtasks":[{"id":1,"title":"x"}]}]}`, "1<2-1 2<2-1 2-1", nil, nil},
		"on its own subtask": {`{"tasks":[{"id":2,"title":"b","dependencies":["2.1"],"subtasks":[{"id":1,"title":"x"}]}]}`, "2<2-1,2-1 2-1", nil, nil},
		"given up":           {`{"tasks":[{"id":1,"title":"a","status":"cancelled"},{"id":2,"title":"b","dependencies":[1]}]}`, "2", nil, []string{"1 not_imported 1: its status is cancelled…"}},
		"unknown":            {`{"tasks":[{"id":1,"title":"a","dependencies":[9]}]}`, "1<9", nil, nil},
		"odd ids":            {`{"tasks":[{"id":"A*b","title":"a"},{"id":"**","title":"b"},{"id":"","title":"c"}]}`, "A-b", []string{"1 value_invalid #3: id is empty", `1 value_invalid #2: id "**" has nothing…`}, nil},
		"no object":          {`{"tasks":[7,{"id":1,"title":"a"}]}`, "1", []string{"1 value_invalid #1: a task is an object…"}, nil},
		"no title":           {`{"tasks":[{"id":1}]}`, "1", []string{"1 value_invalid 1: it has neither title nor description"}, nil},
		"twice":              {`{"tasks":[{"id":1,"title":"a","title":"b"}]}`, "1", []string{"1 key_duplicate 1: title is there twice"}, nil},
		"wrong types":        {`{"tasks":[{"id":1,"title":["a"],"description":"d","subtasks":{},"dependencies":[[]]}]}`, "1", []string{"1 value_invalid 1: title is a list…", "1 value_invalid 1: subtasks is an object…", "1 value_invalid 1: an entry of dependencies is a list…"}, nil},
		"null":               {`{"tasks":[{"id":1,"title":"a","details":null,"dependencies":null}]}`, "1", nil, nil},
		"in a subtask":       {`{"tasks":[{"id":1,"title":"a","subtasks":[{"title":"x"}]}]}`, "1", []string{"1 value_invalid #2: id is missing"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tasks, findings, warnings := Read(FormatTaskmaster, "tasks.json", c.text)
			if got := graphOf(tasks); got != c.tasks {
				t.Errorf("tasks %q, want %q", got, c.tasks)
			}
			checkNotes(t, findings, c.findings...)
			checkNotes(t, warnings, c.warnings...)
		})
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]string{
		"`make x`":                             "make x",
		"```sh\nmake a\nmake b\n```":           "make a\nmake b",
		"`make x` passes":                      "make x",
		"go test ./... passes.":                "go test ./...",
		"npm run build succeeds":               "npm run build",
		"./check.sh -q":                        "./check.sh -q",
		"test -f a.txt":                        "test -f a.txt",
		`grep -q "is a" x`:                     `grep -q "is a" x`,
		"curl tests pass for all endpoints":    "",
		"curl localhost:3000 returns 200":      "",
		"test the login":                       "",
		"Go through all pages":                 "",
		"make sure that it works":              "",
		"git log shows it.":                    "",
		"npm test\nnpm run lint":               "",
		"run `a` and `b`":                      "",
		"":                                     "",
		"``":                                   "",
		"```\n```":                             "",
		"Deploy and call it":                   "",
		"go vet ./...":                         "go vet ./...",
		"pytest tests/x.py && echo 'all well'": "pytest tests/x.py && echo 'all well'",
	} {
		if got := command(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := verification("x <automated>`a b`</automated> y"); got != "a b" {
		t.Errorf("automated: %q", got)
	}
}

func TestPaths(t *testing.T) {
	for text, want := range map[string][]string{
		"Create src/a.py":                              {"src/a.py"},
		"Create `src/a`, and (src/b.go).":              {"src/a", "src/b.go"},
		"in src/models and src/models":                 {"src/models"},
		"Docs in docs/ and README.md; twice docs/":     {"docs", "README.md"},
		"read/write of client/server":                  nil,
		"GET /api/users, see https://x.example/a.html": nil,
		"a Node.js app of v1.2, e.g. i.e. x.com":       nil,
		"Call user.save() and `a.b()`":                 nil,
		"`npm test` in ../other/x.go":                  nil,
		"pages in app/(auth)/page.tsx and src/[id].ts": {"app/(auth)/page.tsx", "src/[id].ts"},
		"all of `src/**/*.go`":                         {"src/**/*.go"},
		"nothing":                                      nil,
		"**src/a.go**":                                 {"src/a.go"},
	} {
		if got := pathsIn(text); !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	for name, want := range map[string]string{
		"1": "1", "1.2": "1-2", "a--b": "a-b", "-a-": "a", "ä b/c": "b-c", "...": "", "": "", strings.Repeat("ab.", 200): strings.Repeat("ab-", 42) + "ab",
	} {
		if got := tokenOf(name); got != want || got != "" && !hub.ValidToken(got) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
