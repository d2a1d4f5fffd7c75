package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/safetext"
)

// Renderings of a plan or graph as source of a drawing; every other one is text.
const (
	formatMermaid = "mermaid"
	formatDot     = "dot"
)

// renderPlan is a plan as text for people, as a flow chart of Mermaid or as a graph
// of Graphviz. The last two show what is valid of it, and how much is not as a
// comment.
func renderPlan(format string, plan client.WavePlan) string {
	c := chart{name: "plan", findings: remarks{title: "Findings"}, warnings: remarks{title: "Warnings"}}
	for _, l := range plan.Levels {
		c.levels = append(c.levels, chartLevel{l.Wave, l.Sub, l.Tasks})
	}
	for _, t := range plan.Tasks {
		c.tasks = append(c.tasks, t.TaskId)
		for _, d := range t.Dependencies {
			c.edges = append(c.edges, chartEdge{from: d, to: t.TaskId})
		}
	}
	for _, s := range plan.Serialized {
		c.decisions = append(c.decisions, decision{s.Path, s.First, s.Second, s.MovedTo})
		c.edges = append(c.edges, chartEdge{s.First, s.Second, true, s.Path})
	}
	for _, f := range plan.Findings {
		c.findings.add(f.Code, f.Tasks, f.Line, f.Detail)
	}
	for _, f := range plan.Warnings {
		c.warnings.add(f.Code, f.Tasks, f.Line, f.Detail)
	}
	c.verdict = "valid"
	if !plan.Valid {
		c.verdict = "not valid"
	}
	return c.render(format)
}

// renderGraph is the stored plan of a wave, with the statuses of its tasks, in the
// same ways.
func renderGraph(format string, g client.WaveGraph) string {
	c := chart{name: g.WaveId, status: g.Status}
	for _, l := range g.Levels {
		c.levels = append(c.levels, chartLevel{l.Wave, l.Sub, l.Tasks})
	}
	paths := map[[2]string]string{}
	for _, s := range g.Serialized {
		c.decisions = append(c.decisions, decision{s.Path, s.First, s.Second, s.MovedTo})
		paths[[2]string{s.First, s.Second}] = s.Path
	}
	for _, e := range g.Edges {
		c.edges = append(c.edges, chartEdge{e.From, e.To, string(e.Kind) == "ordering", paths[[2]string{e.From, e.To}]})
	}
	return c.render(format)
}

// chart is what a plan and a graph have in common.
type chart struct {
	name, verdict      string // verdict: "" where there is none
	levels             []chartLevel
	tasks              []string // declared, with those that have no level
	edges              []chartEdge
	decisions          []decision
	status             map[string]string
	findings, warnings remarks
}

type chartLevel struct {
	wave  int
	sub   string
	tasks []string
}

func (l chartLevel) title() string { return "Wave " + strconv.Itoa(l.wave) + l.sub }

// chartEdge says that to waits for from: since it depends on it, or by ordering,
// since both write path.
type chartEdge struct {
	from, to string
	ordering bool
	path     string
}

type decision struct{ path, first, second, movedTo string }

func (c chart) render(format string) string {
	switch format {
	case formatMermaid:
		return c.draw(mermaid{})
	case formatDot:
		return c.draw(dot{})
	}
	return c.text()
}

// language is how a drawing is written. Its ids are of its own making, and safe.
type language interface {
	open(title string) string
	remark(text string) string
	openGroup(number int, title string) string
	node(indent string, number int, label, status string) string
	closeGroup() string
	edge(from, to int, e chartEdge) string
	end() string
}

// draw writes the groups and nodes in the order of levels, and then the edges.
func (c chart) draw(l language) string {
	var b strings.Builder
	b.WriteString(l.open(c.name))
	if n := c.findings.count; n > 0 {
		b.WriteString(l.remark(c.verdict + ": " + counted(n, "finding")))
	}
	numbers := map[string]int{}
	node := func(indent, task string) {
		if _, known := numbers[task]; !known {
			numbers[task] = len(numbers)
			b.WriteString(l.node(indent, numbers[task], task, c.status[task]))
		}
	}
	for i, level := range c.levels {
		b.WriteString(l.openGroup(i, level.title()))
		for _, task := range level.tasks {
			node("    ", task)
		}
		b.WriteString(l.closeGroup())
	}
	for _, task := range c.tasks {
		node("  ", task)
	}
	for _, e := range c.edges {
		node("  ", e.from)
		node("  ", e.to)
	}
	for _, e := range c.edges {
		b.WriteString(l.edge(numbers[e.from], numbers[e.to], e))
	}
	b.WriteString(l.end())
	return b.String()
}

// labelWidth bounds a label, in characters.
const labelWidth = 200

// mermaid is the language of flow charts of Mermaid.
type mermaid struct{}

func (mermaid) open(string) string { return "flowchart TD\n" }

func (mermaid) remark(text string) string { return "  %% " + text + "\n" }

func (m mermaid) openGroup(number int, title string) string {
	return fmt.Sprintf("  subgraph w%d[\"%s\"]\n", number, m.label(title))
}

func (m mermaid) node(indent string, number int, label, status string) string {
	text := m.label(label)
	if status != "" {
		text += "<br/>" + m.label(status)
	}
	return fmt.Sprintf("%sn%d[\"%s\"]\n", indent, number, text)
}

func (mermaid) closeGroup() string { return "  end\n" }

func (m mermaid) edge(from, to int, e chartEdge) string {
	arrow := "-->"
	if e.ordering {
		arrow = "-.->"
	}
	if e.path != "" {
		arrow += `|"` + m.label(e.path) + `"|`
	}
	return fmt.Sprintf("  n%d %s n%d\n", from, arrow, to)
}

func (mermaid) end() string { return "" }

// label writes all but letters, digits and a few signs as Mermaid's entities, which
// end no text and are read as nothing else; a space only behind a letter or digit,
// since it makes a list of what stands before it otherwise.
func (mermaid) label(text string) string {
	var b strings.Builder
	word := false
	for _, r := range safetext.Line(text, labelWidth) {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if letter || strings.ContainsRune("-_./", r) || r == ' ' && word {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "#%d;", r)
		}
		word = letter
	}
	return b.String()
}

// dot is the language of Graphviz.
type dot struct{}

func (d dot) open(title string) string {
	return fmt.Sprintf("digraph %s {\n  rankdir=TB;\n  node [shape=box];\n", d.label(title))
}

func (dot) remark(text string) string { return "  // " + text + "\n" }

func (d dot) openGroup(number int, title string) string {
	return fmt.Sprintf("  subgraph cluster_%d {\n    label=%s;\n", number, d.label(title))
}

func (d dot) node(indent string, number int, label, status string) string {
	text := d.label(label)
	if status != "" {
		text = strings.TrimSuffix(text, `"`) + `\n` + strings.TrimPrefix(d.label(status), `"`)
	}
	return fmt.Sprintf("%sn%d [label=%s];\n", indent, number, text)
}

func (dot) closeGroup() string { return "  }\n" }

func (d dot) edge(from, to int, e chartEdge) string {
	var attributes []string
	if e.ordering {
		attributes = append(attributes, "style=dotted")
	}
	if e.path != "" {
		attributes = append(attributes, "label="+d.label(e.path))
	}
	text := ""
	if len(attributes) > 0 {
		text = " [" + strings.Join(attributes, ", ") + "]"
	}
	return fmt.Sprintf("  n%d -> n%d%s;\n", from, to, text)
}

func (dot) end() string { return "}\n" }

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")

// label is a quoted text; & begins an entity there.
func (dot) label(text string) string {
	return `"` + dotEscapes.Replace(safetext.Line(text, labelWidth)) + `"`
}
