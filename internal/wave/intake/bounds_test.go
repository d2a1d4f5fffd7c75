package intake

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// hostile are texts of about size bytes that are mostly one thing.
func hostile(size int) map[string][2]string { // format, text
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	return map[string][2]string{
		"tasks":                {FormatTasksJSON, "[" + fill(`{"task_id":"a","goal":"b"},`)},
		"empty tasks":          {FormatTasksJSON, "[" + fill("{},")},
		"numbers":              {FormatTasksJSON, "[" + fill("1,")},
		"unknown keys":         {FormatTasksJSON, "[{" + fill(`"gaol":[],`)},
		"unknown keys on top":  {FormatTasksJSON, "{" + fill(`"a":1,`)},
		"a long key":           {FormatTasksJSON, `[{"` + fill("x") + `":1}]`},
		"a long text":          {FormatTasksJSON, `[{"goal":"` + fill(`\n`) + `"}]`},
		"dependencies":         {FormatTasksJSON, `[{"dependencies":[` + fill(`"",`)},
		"open lists":           {FormatTasksJSON, fill("[")},
		"a long number":        {FormatTasksJSON, `[{"timeout_secs":` + fill("1")},
		"numbers of ids":       {FormatTaskmaster, `{"tasks":[{"dependencies":[` + fill("1,")},
		"subtasks":             {FormatTaskmaster, `{"tasks":[{"id":1,"dependencies":[` + strings.Repeat("7,", min(size, 2000)) + `7],"subtasks":[` + fill(`{"id":2},`)},
		"open subtasks":        {FormatTaskmaster, `{"tasks":[{"subtasks":[` + fill(`{"subtasks":[`)},
		"done tasks":           {FormatTaskmaster, `{"tasks":[` + fill(`{"id":1,"status":"done"},`)},
		"statuses":             {FormatTaskmaster, `{"tasks":[{"id":1,"status":"` + fill("x") + `"}]}`},
		"tags":                 {FormatTaskmaster, "{" + fill(`"a":{"tasks":[]},`)},
		"parallel tasks":       {FormatSpecKit, fill("- [ ] T1 [P] a\n")},
		"phases of them":       {FormatSpecKit, fill("## x\n" + strings.Repeat("- [ ] T1 [P] a\n", 700))},
		"done boxes":           {FormatSpecKit, fill("- [x] T1\n")},
		"details":              {FormatSpecKit, "- [ ] T1 a\n" + fill("  b\n")},
		"backquotes":           {FormatSpecKit, "- [ ] T1 " + fill("`")},
		"ids":                  {FormatSpecKit, "- [ ] T1 depends on T1" + fill(",T1")},
		"ranges":               {FormatSpecKit, fill("- [ ] T1 a\n- [ ] T2 depends on T1-T3,T1-T3\n- [ ] T3 b\n")},
		"comments of lines":    {FormatSpecKit, "- [ ] T1 a\n" + fill("<!-- x --> y\n")},
		"openings of comments": {FormatSpecKit, "- [ ] T1 a\n" + fill("<!--")},
		"headings":             {FormatSpecKit, fill("# a\nb\n")},
		"open children":        {FormatGSD, "<tasks><task>" + fill("<a>") + "</task></tasks>"},
		"children":             {FormatGSD, "<tasks><task>" + fill("<a></a>") + "</task></tasks>"},
		"open sections":        {FormatGSD, fill("<x>\n")},
		"sections":             {FormatGSD, fill("<context>\n</context>\nx")},
		"gsd tasks":            {FormatGSD, "---\nfiles_modified: [" + strings.Repeat("a,", min(size, 20_000)) + "]\n---\n<tasks>" + fill("<task></task>") + "</tasks>"},
		"gsd checkpoints":      {FormatGSD, fill("<task type='checkpoint'>\n</task>")},
		"open tasks":           {FormatGSD, fill("<task>\n")},
		"half open tasks":      {FormatGSD, fill("<task ")},
		"files":                {FormatGSD, "<task>\n<files>" + fill("a,") + "</files></task>"},
		"openings of a note":   {FormatGSD, fill("<!--")},
		"attributes":           {FormatGSD, "<task " + fill("a='' ") + "></task>"},
		"front matter":         {FormatGSD, "---\n" + fill("[")},
		"flows":                {FormatGSD, "---\na: " + strings.Repeat("[", min(size, maxFront-10)) + "\n---\n"},
	}
}

// TestBounds: whatever a text is full of, reading it ends, and what is made of it
// is bounded.
func TestBounds(t *testing.T) {
	const size = 128 << 10
	for name, c := range hostile(size) {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			tasks, findings, warnings := Read(c[0], "", c[1])
			total := allocated() - before
			if len(tasks) > hub.MaxWaveTasks+1 || len(findings) > maxNotes+1 || len(warnings) > maxNotes+1 {
				t.Errorf("%d tasks, %d findings, %d warnings", len(tasks), len(findings), len(warnings))
			}
			entries := 0
			for _, e := range tasks {
				entries += len(e.Dependencies)
			}
			if entries > maxNames+maxDerived {
				t.Errorf("%d dependencies", entries)
			}
			t.Logf("%d MiB allocated in all, %d tasks, %d findings, %d warnings", total>>20, len(tasks), len(findings), len(warnings))
			if held := heldBy(tasks, findings, warnings); held > 24*size {
				t.Errorf("what is made of %d KiB holds %d KiB", size>>10, held>>10)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// heldBy estimates the memory of what is kept, without the text.
func heldBy(tasks []hub.WaveEntry, notes ...[]hub.Finding) int {
	sum := 200 * len(tasks)
	for _, e := range tasks {
		sum += 16*(len(e.Dependencies)+len(e.ReadScope)) + len(e.Goal)
	}
	for _, n := range notes {
		for _, f := range n {
			sum += 100 + len(f.Detail) + 16*len(f.Tasks)
		}
	}
	return sum
}

func TestMoreFindings(t *testing.T) {
	_, findings, _ := Read(FormatTasksJSON, "", "["+strings.Repeat("1,", maxNotes+4)+"1]")
	if last := findings[len(findings)-1]; len(findings) != maxNotes+1 || last.Code != hub.FindFileInvalid || last.Detail != "5 more findings are not listed; mend these first" {
		t.Errorf("%d findings, the last one %+v", len(findings), last)
	}
}

// TestTooManyTasks: one more than a wave may have is enough to tell.
func TestTooManyTasks(t *testing.T) {
	const n = hub.MaxWaveTasks + 3
	var list, spec strings.Builder
	for i := range n {
		fmt.Fprintf(&list, `{"task_id":"t%d","goal":"g"},`, i)
		fmt.Fprintf(&spec, "- [x] T%d done\n- [ ] T%d g\n", n+i, i)
	}
	for format, text := range map[string]string{FormatTasksJSON: "[" + list.String(), FormatSpecKit: spec.String()} {
		if tasks, findings, _ := Read(format, "", text); len(tasks) != hub.MaxWaveTasks+1 || len(findings) > 0 {
			t.Errorf("%s: %d tasks, %v", format, len(tasks), findings)
		}
	}
}

func TestTooManyDerived(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		if i%500 == 0 {
			text.WriteString("## Phase\n")
		}
		fmt.Fprintf(&text, "- [ ] T%d [P] x\n", i)
	}
	tasks, findings, _ := Read(FormatSpecKit, "", text.String())
	if len(tasks) > 0 {
		t.Errorf("%d tasks", len(tasks))
	}
	checkNotes(t, findings, fmt.Sprintf("903 file_invalid : its order makes more than %d dependencies…", maxDerived))
}

func TestTooLongProse(t *testing.T) {
	for _, format := range []string{FormatSpecKit, FormatGSD} {
		tasks, findings, _ := Read(format, "", "- [ ] T1 x\n<task><name>x</name></task>\n"+strings.Repeat("\n", maxProse))
		if len(tasks) > 0 {
			t.Errorf("%s: %d tasks", format, len(tasks))
		}
		checkNotes(t, findings, "1 file_invalid : the file has…")
	}
}

func TestTooManyNames(t *testing.T) {
	text := "[\n{\"task_id\":\"a\",\"goal\":\"g\",\"dependencies\":[" + strings.Repeat(`"a",`, maxNames) + "\n\"a\"]}]"
	tasks, findings, _ := Read(FormatTasksJSON, "", text)
	if len(tasks) > 0 {
		t.Errorf("%d tasks", len(tasks))
	}
	checkNotes(t, findings, fmt.Sprintf("3 file_invalid : the lists of the file have more than %d entries…", maxNames))
}

// TestTooManyListed: what is left out, or is no task, is bounded too.
func TestTooManyListed(t *testing.T) {
	for format, text := range map[string]string{
		FormatTasksJSON:  "[" + strings.Repeat("1,", maxListed+1),
		FormatTaskmaster: `{"tasks":[` + strings.Repeat("{\"id\":1,\"status\":\"done\"},", maxListed+1),
		FormatSpecKit:    strings.Repeat("- [x] T1\n", maxListed+1),
	} {
		tasks, findings, _ := Read(format, "", text)
		if n := len(findings); len(tasks) > 0 || n == 0 || n < maxNotes && !strings.HasPrefix(findings[0].Detail, fmt.Sprintf("more than %d tasks", maxListed)) {
			t.Errorf("%s: %d tasks, %v", format, len(tasks), findings[:min(n, 2)])
		}
	}
}
