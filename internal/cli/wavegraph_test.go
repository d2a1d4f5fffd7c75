package cli

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/client"
)

var updateCharts = flag.Bool("update-charts", false, "write the golden files of charts")

// twoWaves is the example with a conflict of document 004, and what is around it.
const twoWaves = `{"valid":true,"findings":[],
 "levels":[{"wave":1,"sub":"","tasks":["A","B"]},{"wave":2,"sub":"a","tasks":["C","D"]},{"wave":2,"sub":"b","tasks":["E"]},{"wave":3,"sub":"","tasks":["F"]}],
 "serialized":[{"path":"src/auth/login.ts","first":"C","second":"E","moved_to":"2b"}],
 "tasks":[{"task_id":"A","goal":"a"},{"task_id":"B","goal":"b"},{"task_id":"C","goal":"c","dependencies":["A","B"]},{"task_id":"D","goal":"d","dependencies":["B"]},
  {"task_id":"E","goal":"e","dependencies":["A"]},{"task_id":"F","goal":"f","dependencies":["C","D","E"]}],
 "warnings":[{"code":"read_overlap","tasks":["D","E"],"detail":"D reads src/ui/login.tsx, which E writes"}]}`

const notValid = `{"valid":false,"levels":[],"serialized":[],"warnings":[{"code":"not_imported","tasks":[],"detail":"\"policy\" is not imported","line":9}],
 "tasks":[{"task_id":"a","goal":"x","dependencies":["b","gone"]},{"task_id":"b","goal":"x","dependencies":["a"]}],
 "findings":[{"code":"dependency_unknown","tasks":["a"],"detail":"it depends on gone, which is no task"},
  {"code":"dependency_cycle","tasks":["a","b"],"detail":"a → b → a"},
  {"code":"dependency_unknown","tasks":["b"],"detail":"a\u001b[31m line\nand another","line":3}]}`

// hostile holds tokens, and a path, that are made of the signs of the languages.
const hostile = `{"wave_id":"w\"1;","levels":[{"wave":1,"sub":"","tasks":["a\"]","end","#35;","%%"]},{"wave":2,"sub":"","tasks":["b\\","-->|x|","<b>&lt;","` + "`c`" + `","{\"d\"};n0"]}],
 "serialized":[{"path":"1. \"x\"; - [y]\n| #quot; \\","first":"a\"]","second":"b\\","moved_to":"2a"}],
 "edges":[{"from":"a\"]","to":"b\\","kind":"ordering"},{"from":"end","to":"-->|x|","kind":"dependency"},{"from":"#35;","to":"<b>&lt;","kind":"dependency"}],
 "status":{"a\"]":"completed","b\\":"running\"];"}}`

func TestChartsGolden(t *testing.T) {
	for name, document := range map[string]string{"twowaves": twoWaves, "notvalid": notValid, "hostile": hostile} {
		for format, ending := range map[string]string{"text": ".txt", formatMermaid: ".mmd", formatDot: ".dot"} {
			t.Run(name+ending, func(t *testing.T) { checkChart(t, name+ending, chartOf(t, format, document)) })
		}
	}
}

// chartOf renders a plan or graph as the hub sends it.
func chartOf(t *testing.T, format, document string) string {
	t.Helper()
	if strings.Contains(document, "wave_id") {
		var g client.WaveGraph
		if err := json.Unmarshal([]byte(document), &g); err != nil {
			t.Fatal(err)
		}
		return renderGraph(format, g)
	}
	var plan client.WavePlan
	if err := json.Unmarshal([]byte(document), &plan); err != nil {
		t.Fatal(err)
	}
	return renderPlan(format, plan)
}

func checkChart(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "charts", name)
	if *updateCharts {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-update-charts writes it):\n%s", path, diff)
	}
}

// The lines that the drawings consist of.
var (
	mermaidText = `"(?:[A-Za-z0-9 \-_./]|#\d+;)*(?:<br/>(?:[A-Za-z0-9 \-_./]|#\d+;)*)?"`
	mermaidLine = regexp.MustCompile(`^(?:flowchart TD|  %% [a-z0-9: ]+|  subgraph w\d+\[` + mermaidText + `\]|  +n\d+\[` + mermaidText + `\]|  end` +
		`|  n\d+ (?:-->|-\.->)(?:\|` + mermaidText + `\|)? n\d+)$`)
	dotText = `"(?:[^"\\]|\\["\\n])*"`
	dotLine = regexp.MustCompile(`^(?:digraph ` + dotText + ` \{|  rankdir=TB;|  node \[shape=box\];|  // [a-z0-9: ]+|  subgraph cluster_\d+ \{|    label=` + dotText +
		`;|  +n\d+ \[label=` + dotText + `\];|  \}|\}|  n\d+ -> n\d+(?: \[[a-z]+=[a-z]+(?:, label=` + dotText + `)?\]| \[label=` + dotText + `\])?;)$`)
)

// TestDrawingsAreWellFormed: whatever the tokens and paths are, each line is one of
// the language, and each label says the token.
func TestDrawingsAreWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfNDistinct(rapid.StringMatching(`[!-)+\-,0-=?-~]{1,12}`), 1, 8, rapid.ID).Draw(t, "tokens")
		path := rapid.String().Draw(t, "path")
		last := len(tokens) - 1
		g := client.WaveGraph{WaveId: path, Status: map[string]string{tokens[0]: path}}
		document, err := json.Marshal(map[string]any{
			"levels":     []any{map[string]any{"wave": 1, "tasks": tokens}},
			"serialized": []any{map[string]any{"path": path, "first": tokens[0], "second": tokens[last]}},
			"edges":      []any{map[string]any{"from": tokens[0], "to": tokens[last], "kind": "ordering"}},
		})
		if err != nil || json.Unmarshal(document, &g) != nil {
			t.Fatal("no graph")
		}
		m := linesOf(t, renderGraph(formatMermaid, g), mermaidLine)
		d := linesOf(t, renderGraph(formatDot, g), dotLine)
		for i, token := range tokens {
			checkLabel(t, token, entities(labelIn(m, "    n"+strconv.Itoa(i)+"[")))
			checkLabel(t, token, undot(labelIn(d, "    n"+strconv.Itoa(i)+" [label=")))
		}
	})
}

func linesOf(t *rapid.T, text string, line *regexp.Regexp) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, l := range lines {
		if !line.MatchString(l) {
			t.Errorf("no line of the language: %q", l)
		}
	}
	return lines
}

// labelIn is the quoted text behind the beginning of a line.
func labelIn(lines []string, beginning string) string {
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, beginning+`"`); ok {
			return rest[:strings.LastIndexByte(rest, '"')]
		}
	}
	return "none"
}

// checkLabel compares a label; what stands behind a line break is the status.
func checkLabel(t *rapid.T, token, label string) {
	if label, _, _ = strings.Cut(label, "\x00"); label != token {
		t.Errorf("the label of %q says %q", token, label)
	}
}

var entity = regexp.MustCompile(`#\d+;`)

func entities(label string) string {
	return entity.ReplaceAllStringFunc(strings.Replace(label, "<br/>", "\x00", 1), func(e string) string {
		n, err := strconv.Atoi(e[1 : len(e)-1])
		if err != nil {
			return err.Error()
		}
		return string(rune(n))
	})
}

func undot(label string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\x00", "&amp;", "&").Replace(label)
}

// TestLongListsAreWrapped: no line of a level is much wider than a terminal.
func TestLongListsAreWrapped(t *testing.T) {
	var plan client.WavePlan
	names := make([]string, 200)
	for i := range names {
		names[i] = "task-" + strconv.Itoa(i)
	}
	document, err := json.Marshal(map[string]any{"valid": true, "levels": []any{map[string]any{"wave": 1, "tasks": names}}})
	if err != nil || json.Unmarshal(document, &plan) != nil {
		t.Fatal("no plan", err)
	}
	text := renderPlan("text", plan)
	for line := range strings.Lines(text) {
		if len(line) > textWidth+2 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
	if got := strings.Count(text, "task-"); got != len(names) || !strings.HasPrefix(text, "plan: 200 tasks in 1 wave, valid\n") {
		t.Errorf("%d tasks are shown of %d:\n%s", got, len(names), text)
	}
}
