package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/safetext"
)

// remarks are the findings or warnings of a plan, by code in the order in which the
// codes come first.
type remarks struct {
	title string
	count int
	codes []string
	lines map[string][]string
}

func (n *remarks) add(code string, tasks []string, line int, detail string) {
	if n.lines == nil {
		n.lines = map[string][]string{}
	}
	if _, known := n.lines[code]; !known {
		n.codes = append(n.codes, code)
	}
	where := shortened(tasks)
	if line > 0 {
		where = strings.TrimSuffix("line "+strconv.Itoa(line)+", "+where, ", ")
	}
	if where != "" {
		where += ": "
	}
	n.count++
	n.lines[code] = append(n.lines[code], safetext.Line(where+detail, noteWidth))
}

const (
	namedTasks = 20   // of a finding
	noteWidth  = 2000 // of a finding, in characters
	textWidth  = 100  // of a list of tasks, in characters
)

// text is the chart for people: levels with their sub-waves, what waits for what,
// the conflicts that were resolved, and all that is wrong or odd.
func (c chart) text() string {
	var b strings.Builder
	c.heading(&b)
	c.writeLevels(&b)
	c.writeDependencies(&b)
	c.writeDecisions(&b)
	c.findings.write(&b)
	c.warnings.write(&b)
	return b.String()
}

func (c chart) heading(b *strings.Builder) {
	tasks, waves := 0, map[int]bool{}
	for _, l := range c.levels {
		tasks += len(l.tasks)
		waves[l.wave] = true
	}
	text := c.name + ": " + counted(max(tasks, len(c.tasks)), "task")
	if len(waves) > 0 {
		text += " in " + counted(len(waves), "wave")
	}
	if c.verdict != "" {
		text += ", " + c.verdict
	}
	b.WriteString(safetext.Line(text, noteWidth) + "\n")
}

func (c chart) writeLevels(b *strings.Builder) {
	for i, l := range c.levels {
		first := i == 0 || c.levels[i-1].wave != l.wave
		if first {
			b.WriteByte('\n')
		}
		if first && l.sub != "" {
			fmt.Fprintf(b, "Wave %d, one part after the other:\n", l.wave)
		}
		title := l.title() + ": "
		if l.sub != "" {
			title = "  " + title
		}
		b.WriteString(wrapped(title, c.shown(l.tasks)))
	}
}

// shown are tasks with their statuses.
func (c chart) shown(tasks []string) []string {
	out := slices.Clone(tasks)
	for i, task := range tasks {
		if s := c.status[task]; s != "" {
			out[i] += " (" + s + ")"
		}
	}
	return out
}

func (c chart) writeDependencies(b *strings.Builder) {
	var order []string
	on := map[string][]string{}
	for _, e := range c.edges {
		if e.ordering {
			continue
		}
		if on[e.to] == nil {
			order = append(order, e.to)
		}
		on[e.to] = append(on[e.to], e.from)
	}
	if len(order) > 0 {
		b.WriteString("\nDependencies:\n")
	}
	for _, task := range order {
		b.WriteString(wrapped("  "+safetext.Line(task, labelWidth)+" after ", on[task]))
	}
}

func (c chart) writeDecisions(b *strings.Builder) {
	if len(c.decisions) > 0 {
		b.WriteString("\nConflicts, and how they are resolved:\n")
	}
	for _, d := range c.decisions {
		text := fmt.Sprintf("%s (%s and %s): %s after %s", d.path, d.first, d.second, d.second, d.first)
		if d.movedTo != "" {
			text += ", in " + d.movedTo
		}
		b.WriteString("  " + safetext.Line(text, noteWidth) + "\n")
	}
}

func (n remarks) write(b *strings.Builder) {
	if n.count > 0 {
		fmt.Fprintf(b, "\n%s:\n", n.title)
	}
	for _, code := range n.codes {
		lines := n.lines[code]
		fmt.Fprintf(b, "  %s (%d)\n", safetext.Line(code, labelWidth), len(lines))
		for _, line := range lines {
			b.WriteString("    " + line + "\n")
		}
	}
}

// wrapped is a list behind a title, in lines of about textWidth characters, the
// later ones indented.
func wrapped(title string, items []string) string {
	var b strings.Builder
	b.WriteString(title)
	width := utf8.RuneCountInString(title)
	for i, item := range items {
		item = safetext.Line(item, labelWidth)
		if i < len(items)-1 {
			item += ","
		}
		more := 1 + utf8.RuneCountInString(item)
		switch {
		case i == 0:
		case width+more > textWidth:
			b.WriteString("\n      ")
			width = 6
		default:
			b.WriteByte(' ')
		}
		b.WriteString(item)
		width += more
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// counted is a number with what is counted.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
