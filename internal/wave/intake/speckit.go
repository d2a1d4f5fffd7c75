package intake

import (
	"regexp"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// readSpecKit reads the tasks.md of GitHub's spec-kit: a checkbox with an id such as
// T001 in a list is a task, and headings begin phases. What is indented below a task
// belongs to its goal. What is done is left out.
func readSpecKit(s *sheet, text string) {
	r := &spec{sheet: s}
	number := 0
	for line := range strings.Lines(text) {
		number++
		r.line(number, strings.TrimRight(line, "\r\n"))
		if len(r.tasks) > maxListed {
			s.invalid(number, "more than %d tasks, with those that are done", maxListed)
			return
		}
	}
	r.section("", false)
	if len(r.tasks) == 0 {
		s.invalid(1, "there is no task such as - [ ] T001 with what to do")
	}
	r.sequence()
}

// spec reads the lines of a tasks.md.
type spec struct {
	*sheet
	tasks   []specTask
	open    bool            // indented lines belong to the last task
	details strings.Builder // such lines
	heading string
	phase   int
	front   bool // in the front matter
	comment bool
	fence   string // that ends the block of code, "" outside
	first   string // line of the section that is not imported
	at      int    // its number, 0 for none
	loose   int    // how many there are
}

// specTask is a task as it is written.
type specTask struct {
	id, goal string
	line     int
	phase    int
	parallel bool
	done     bool
}

var (
	specLine    = regexp.MustCompile(`^(\s*)[-*+]\s+\[([ xX])\]\s*(.*)$`)
	specID      = regexp.MustCompile(`^(?:\*\*|__)?\[?(T\d+[A-Za-z]?)\]?(?:\*\*|__)?[:.]?(?:\s+(.*))?$`)
	specLabel   = regexp.MustCompile(`^\[([A-Za-z0-9]+)\]\s*`)
	specHeading = regexp.MustCompile(`^(#{1,6})\s+(.*)$`)
	specPhase   = regexp.MustCompile(`(?i)^phase\b`)
)

func (r *spec) line(number int, line string) {
	if r.front || number == 1 && line == "---" {
		if r.front = number == 1 || line != "---"; r.front && number > 1 {
			r.ignore(number, line)
		}
		return
	}
	line, r.comment = uncomment(line, r.comment)
	text := strings.TrimSpace(line)
	if r.code(text) {
		r.belong(number, line, text)
		return
	}
	switch heading := specHeading.FindStringSubmatch(line); {
	case text == "" || strings.Trim(text, "-*_ ") == "" && len(text) > 2:
	case heading != nil:
		r.section(heading[2], len(heading[1]) <= 2 || specPhase.MatchString(heading[2]))
	case r.checkbox(number, line):
	default:
		r.belong(number, line, text)
	}
}

// code reports whether the line is one of a block of code or its ends.
func (r *spec) code(text string) bool {
	within := r.fence != ""
	switch {
	case within && strings.HasPrefix(text, r.fence):
		r.fence = ""
	case !within && strings.HasPrefix(text, "```"):
		r.fence = "```"
	case !within && strings.HasPrefix(text, "~~~"):
		r.fence = "~~~"
	}
	return within || r.fence != ""
}

// checkbox reads a task; false: the line has no checkbox.
func (r *spec) checkbox(number int, line string) bool {
	box := specLine.FindStringSubmatch(line)
	if box == nil {
		return false
	}
	id := specID.FindStringSubmatch(box[3])
	switch {
	case id == nil && r.open && box[1] != "":
		return false // a step of the task above
	case id == nil:
		r.close()
		r.skipped(number, nil, "it has no id such as T001: %.80q", box[3])
		return true
	}
	r.close()
	t := specTask{id: id[1], line: number, phase: r.phase, done: box[2] != " "}
	t.goal, t.parallel = labels(id[2])
	if t.done {
		r.skipped(number, []string{t.id}, "it is done: it is left out, and nothing waits for it")
	} else if t.goal == "" {
		r.find(hub.FindValueInvalid, number, []string{t.id}, "it has no description")
	}
	r.tasks = append(r.tasks, t)
	r.open = true
	return true
}

// close ends the task that indented lines belong to.
func (r *spec) close() {
	if last := len(r.tasks) - 1; r.open && !r.tasks[last].done {
		r.tasks[last].goal += r.details.String()
	}
	r.open = false
	r.details.Reset()
}

// labels takes [P] from the labels at the beginning of a description.
func labels(text string) (goal string, parallel bool) {
	var kept strings.Builder
	for {
		label := specLabel.FindStringSubmatch(text)
		if label == nil {
			return strings.TrimSpace(kept.String() + text), parallel
		}
		if label[1] == "P" {
			parallel = true
		} else {
			kept.WriteString(label[0])
		}
		text = text[len(label[0]):]
	}
}

// belong puts an indented line to the task above it; others are not imported.
func (r *spec) belong(number int, line, text string) {
	if indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t"); indented && r.open {
		r.details.WriteString("\n" + text)
		return
	}
	r.close()
	r.ignore(number, text)
}

// ignore counts a line of the section that is not imported.
func (r *spec) ignore(number int, text string) {
	if r.loose++; r.loose == 1 {
		r.at, r.first = number, text
	}
}

// section ends a section, and begins another; phase: with it a phase.
func (r *spec) section(heading string, phase bool) {
	if r.loose > 0 {
		where := "before the first heading"
		if r.heading != "" {
			where = "under " + shown(r.heading)
		}
		r.skipped(r.at, nil, "text %s is not imported (lines of it: %d): %.80q", where, r.loose, r.first)
	}
	r.close()
	r.heading, r.loose = heading, 0
	if phase {
		r.phase++
	}
}

// uncomment takes comments out of a line; within: it begins in one, or ends so.
func uncomment(line string, within bool) (rest string, still bool) {
	var out strings.Builder
	for {
		mark := "<!--"
		if within {
			mark = "-->"
		}
		head, tail, found := strings.Cut(line, mark)
		if !within {
			out.WriteString(head)
		}
		if !found {
			return out.String(), within
		}
		line, within = tail, !within
	}
}
