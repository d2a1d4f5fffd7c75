package hub

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Background is what a worker is told of the Tasks that its own depends on. All of
// them are completed.
type Background struct {
	Dependencies []Dependency `json:"dependencies"`
	More         int          `json:"more,omitempty"` // that there is no room for
}

// Dependency is one of them. What its worker wrote is worker text.
type Dependency struct {
	Task  TaskID `json:"task_id"`
	Token string `json:"wave_task_id,omitempty"` // of a wave's task
	Title string `json:"title"`
	// Result is what its report said, or the beginning of ResultBytes of it.
	Result      string `json:"result"`
	ResultBytes int    `json:"result_bytes"`
	// HandoffPath is where it was to leave notes, Handoff what lay there when it
	// ended, nil where nobody looked.
	HandoffPath string   `json:"handoff_path,omitempty"`
	Handoff     *Handoff `json:"handoff,omitempty"`
	// Hub is the name of the hub that its worker was on, as its home calls it;
	// Worktree and Folder are there, "" where the home does not know them.
	Hub      string     `json:"hub,omitempty"`
	Worktree WorktreeID `json:"worktree_id,omitempty"`
	Folder   string     `json:"folder,omitempty"`
}

// EnvDependencies is the variable that names a file with the worker's Background as
// JSON, where there is one: all that a launcher gets which runs the Task's text as a
// script.
const EnvDependencies = "WAVEHUB_DEPENDENCIES_FILE"

// MaxBackground bounds a Background as text, in bytes.
const MaxBackground = 16 << 10

const (
	backgroundHead = "\nWhat this task depends on is completed. Of each:\n"
	backgroundMore = "\nand %d more that there is no room for\n"
	resultIndent   = "      "
	// backgroundRoom is what all parts but the results may take: a quarter is left
	// for these.
	backgroundRoom = MaxBackground * 3 / 4
)

// MaxTold is how many dependencies a Background tells of at most: more never fit.
const MaxTold = 170

// NewBackground tells of the first of all dependencies, in their order, within
// MaxBackground: the longest results are cut first; what does not fit even without
// its result is counted. nil for none.
func NewBackground(deps []Dependency, all int) *Background {
	if len(deps) == 0 {
		return nil
	}
	b := Background{Dependencies: make([]Dependency, 0, len(deps))}
	room := backgroundRoom - len(backgroundHead) - len(fmt.Sprintf(backgroundMore, all))
	for _, d := range deps[:min(len(deps), MaxTold)] {
		d.Title, d.Result = PlainText([]byte(d.Title)), lines.Replace(PlainText([]byte(d.Result)))
		d.ResultBytes = len(d.Result)
		size := len(d.head()) + len(cutMark(d.ResultBytes, d.ResultBytes))
		if size > room {
			break
		}
		room -= size
		b.Dependencies = append(b.Dependencies, d)
	}
	b.More = all - len(b.Dependencies)
	b.cutResults(room + MaxBackground - backgroundRoom)
	return &b
}

// lines makes all line breaks the same.
var lines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n")

// cutResults brings the results into the room: all to the largest size at which
// they fit, so that the shorter ones stay whole.
func (b *Background) cutResults(room int) {
	sum := func(limit int) (n int) {
		for _, d := range b.Dependencies {
			n += indented(cutIndented(d.Result, limit))
		}
		return n
	}
	low, high := 0, room
	for low < high { // the largest limit that fits
		if mid := (low + high + 1) / 2; sum(mid) <= room {
			low = mid
		} else {
			high = mid - 1
		}
	}
	for i := range b.Dependencies {
		d := &b.Dependencies[i]
		d.Result = cutIndented(d.Result, low)
	}
}

// indented is how many bytes a result takes as text.
func indented(result string) int {
	if result == "" {
		return 0
	}
	return len(resultIndent)*(1+strings.Count(result, "\n")) + len(result) + 1
}

// cutIndented is the longest beginning of a result that takes at most limit bytes
// as text; its last character is whole.
func cutIndented(result string, limit int) string {
	if indented(result) <= limit {
		return result
	}
	size := len(resultIndent) + 1
	for i, r := range result {
		n := utf8.RuneLen(r)
		if r == '\n' {
			n += len(resultIndent)
		}
		if size += n; size > limit {
			return result[:i]
		}
	}
	return result
}

// Behind is a Task's text with b behind it; for nil the text as it is.
func (b *Background) Behind(text string) string {
	if b != nil && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + b.Text()
}

// Text is b as a worker reads it, "" for nil. Lines of results are indented, so that
// none passes for ours.
func (b *Background) Text() string {
	if b == nil {
		return ""
	}
	var out strings.Builder
	out.WriteString(backgroundHead)
	for _, d := range b.Dependencies {
		out.WriteString(d.head())
		d.result(&out)
	}
	if b.More > 0 {
		fmt.Fprintf(&out, backgroundMore, b.More)
	}
	return out.String()
}

// head is all but the result.
func (d Dependency) head() string {
	name := string(d.Task)
	if d.Token != "" {
		name = d.Token + " (" + name + ")"
	}
	text := "\n- " + name + ": " + oneLine(d.Title) + "\n"
	if where := d.where(); where != "" {
		text += "  Ran:    " + where + "\n"
	}
	if d.HandoffPath != "" {
		text += "  Notes:  " + oneLine(d.HandoffPath) + d.Handoff.words() + "\n"
	}
	return text
}

func (d Dependency) where() string {
	var parts []string
	for _, p := range []struct{ label, value string }{
		{"on the hub ", d.Hub}, {"in the worktree ", string(d.Worktree)}, {"at ", d.Folder},
	} {
		if p.value != "" {
			parts = append(parts, p.label+oneLine(p.value))
		}
	}
	return strings.Join(parts, ", ")
}

func (h *Handoff) words() string {
	switch {
	case h == nil:
		return ""
	case !h.Present:
		return " (nothing was left there)"
	case h.SHA256 == "":
		return fmt.Sprintf(" (%d bytes)", h.Bytes)
	}
	return fmt.Sprintf(" (%d bytes, sha256 %s)", h.Bytes, h.SHA256)
}

func (d Dependency) result(out *strings.Builder) {
	switch {
	case d.ResultBytes == 0:
		out.WriteString("  Result: none was given\n")
		return
	case len(d.Result) < d.ResultBytes:
		out.WriteString(cutMark(len(d.Result), d.ResultBytes))
	default:
		out.WriteString("  Result:\n")
	}
	if d.Result != "" {
		out.WriteString(resultIndent + strings.ReplaceAll(d.Result, "\n", "\n"+resultIndent) + "\n")
	}
}

func cutMark(shown, all int) string {
	return fmt.Sprintf("  Result (cut: its first %d of %d bytes):\n", shown, all)
}

// oneLine is text without line breaks.
func oneLine(text string) string { return strings.Join(strings.FieldsFunc(text, isBreak), " ") }

func isBreak(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

// Check refuses what no home tells of a Task: it is handed to a worker as it is.
func (b *Background) Check() error {
	if b == nil {
		return nil
	}
	if len(b.Dependencies) > MaxDependencies {
		return Invalid("background", "at most %d dependencies are taken", MaxDependencies)
	}
	return CheckText("background", b.Text(), 4*MaxBackground)
}
