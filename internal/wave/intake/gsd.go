package intake

import (
	"regexp"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// readGSD reads a PLAN.md of GSD (get-shit-done): a front matter in YAML and the
// task elements of <tasks>. The tasks of a plan run one after the other. Each writes
// its files, or those of the plan where it names none. A checkpoint, at which a
// person is asked, is not imported.
//
// The tokens are the plan's phase and number and the task's position, such as
// 03-01-2; where the plan does not say the former, they are taken from the name of
// its file, and are left out where that does not tell either.
func readGSD(s *sheet, name, text string) {
	head, body, line := front(text)
	plan := frontMatter(s, head, name)
	r := &gsd{sheet: s, plan: plan, text: blankComments(body), base: line, lines: 1}
	r.sections()
	if !r.found && !s.unreadable {
		s.invalid(1, "there is no <tasks> with a <task> in it")
	}
}

// front splits a file into its front matter, without its marks, and the rest, which
// begins after line lines.
func front(text string) (head, body string, line int) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return "", text, 0
	}
	at, line := 0, 1
	for l := range strings.Lines(rest) {
		line++
		if strings.TrimRight(l, " \t\r\n") == "---" {
			return rest[:at], rest[at+len(l):], line
		}
		at += len(l)
	}
	return "", text, 0
}

// gsd reads the elements of a plan.
type gsd struct {
	*sheet
	plan     plan
	text     string // without comments
	base     int    // lines before it
	at       int    // how far lines are counted
	lines    int    // of text up to at
	found    bool   // a task
	position int    // of the task
	previous string // the token of the last imported task
}

// line is the line of an offset of the text. Offsets may go back a little only.
func (r *gsd) line(offset int) int {
	if offset < r.at {
		r.lines -= strings.Count(r.text[offset:r.at], "\n")
	} else {
		r.lines += strings.Count(r.text[r.at:offset], "\n")
	}
	r.at = offset
	return r.base + r.lines
}

var (
	gsdSection = regexp.MustCompile(`(?m)^[ \t]*<([a-z][a-z_-]*)(?:\s[^>\n]*)?>`)
	gsdTask    = regexp.MustCompile(`<task(\s[^>]*)?>`)
	gsdAttr    = regexp.MustCompile(`([A-Za-z_:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	gsdChild   = regexp.MustCompile(`<([a-z][a-z0-9_-]*)(?:\s[^>\n]*)?>`)
)

// gsdSections are the elements that a plan has besides tasks.
var gsdSections = map[string]bool{
	"objective": true, "execution_context": true, "context": true, "verification": true, "success_criteria": true, "output": true,
	"interfaces": true, "threat_model": true, "artifacts_produced": true, "feature": true, "user_setup": true, "notes": true,
}

// sections goes through the elements at the top of the plan.
func (r *gsd) sections() {
	at, from := 0, 0
	for {
		m := gsdSection.FindStringSubmatchIndex(r.text[from:])
		if m == nil {
			break
		}
		name, open, content := r.text[from+m[2]:from+m[3]], from+m[2]-1, from+m[1]
		if from = content; name != "tasks" && name != "task" && !gsdSections[name] {
			continue
		}
		r.stray(at, open)
		if at = r.section(name, open, content); at < 0 {
			return
		}
		from = at
	}
	r.stray(at, len(r.text))
}

// section reads the element that opens at an offset and returns where it ends; -1:
// it does not, or nothing more is read.
func (r *gsd) section(name string, open, content int) int {
	if name == "task" { // outside of <tasks>
		return r.element(open, len(r.text))
	}
	length, line := strings.Index(r.text[content:], "</"+name+">"), r.line(open)
	if length < 0 {
		r.invalid(line, "<%s> is not closed", name)
		return -1
	}
	end := content + length
	if name != "tasks" {
		r.skipped(line, nil, "<%s> is not imported", name)
	} else if !r.list(content, end) {
		return -1
	}
	return end + len("</"+name+">")
}

// list reads the tasks between two offsets.
func (r *gsd) list(at, end int) bool {
	for {
		m := gsdTask.FindStringIndex(r.text[at:end])
		if m == nil {
			r.stray(at, end)
			return true
		}
		r.stray(at, at+m[0])
		if at = r.element(at+m[0], end); at < 0 || r.full() {
			return false
		}
	}
}

// stray warns of text that is in no element that is read.
func (r *gsd) stray(from, to int) {
	text := strings.TrimLeft(r.text[from:to], " \t\r\n")
	if text == "" {
		return
	}
	r.skipped(r.line(to-len(text)), nil, "text that is in no known element is not imported: %s", shown(strings.TrimSpace(firstLine(text))))
}

// element reads the task that opens at an offset, and returns where it ends.
func (r *gsd) element(at, end int) int {
	r.found = true
	r.position++
	m := gsdTask.FindStringSubmatchIndex(r.text[at:end])
	line := r.line(at)
	if m == nil {
		r.invalid(line, "<task is not closed by >")
		return -1
	}
	attributes := ""
	if m[2] >= 0 {
		attributes = r.text[at+m[2] : at+m[3]]
	}
	body := at + m[1]
	length := strings.Index(r.text[body:end], "</task>")
	if length < 0 {
		r.invalid(line, "<task> is not closed")
		return -1
	}
	r.task(line, attributes, body, body+length)
	return body + length + len("</task>")
}

// task imports one task, whose content is between two offsets.
func (r *gsd) task(line int, attributes string, from, to int) {
	token := r.plan.token(r.position)
	if !r.attributes(line, token, attributes) {
		return
	}
	parts := r.children(token, from, to)
	e := hub.WaveEntry{Token: token, WriteScope: r.plan.files}
	if files := strings.TrimSpace(parts["files"]); files != "" {
		e.WriteScope = r.filesOf(line, files)
	}
	verify := parts["verify"]
	if e.VerifyCmd = verification(verify); verify != "" && e.VerifyCmd == "" {
		r.skipped(line, []string{token}, "its <verify> is words and no command: it stays in the goal")
	}
	e.Goal = paragraphs(parts["name"], parts["action"], labelled("Verify", untagged.Replace(verify)), labelled("Done when", parts["done"]))
	if strings.TrimSpace(parts["name"]+parts["action"]) == "" {
		r.find(hub.FindValueInvalid, line, []string{token}, "it has neither <name> nor <action>")
	}
	if r.previous != "" {
		e.Dependencies = []string{r.previous}
	}
	r.previous = token
	r.tasks = append(r.tasks, e)
}

// attributes warns of what is not known; false: the task is a checkpoint.
func (r *gsd) attributes(line int, token, attributes string) bool {
	for _, m := range gsdAttr.FindAllStringSubmatch(attributes, shownTasks) {
		key, value := m[1], m[2]+m[3]
		switch {
		case key == "type" && strings.HasPrefix(value, "checkpoint"):
			r.skipped(line, []string{token}, "%.64s is not imported: nobody is asked there", value)
			return false
		case key != "type" || value != "auto":
			r.skipped(line, []string{token}, "%.64s=%.64q is not imported", key, value)
		}
	}
	return true
}

// children reads the elements of a task, and warns of those that are not known.
func (r *gsd) children(token string, from, to int) map[string]string {
	parts := map[string]string{}
	for range maxChildren {
		m := gsdChild.FindStringSubmatchIndex(r.text[from:to])
		if m == nil {
			break
		}
		name := r.text[from+m[2] : from+m[3]]
		length := strings.Index(r.text[from+m[1]:to], "</"+name+">")
		r.strayIn(token, from, from+m[0])
		if length < 0 {
			r.skipped(r.line(from+m[0]), []string{token}, "<%s> is not closed", name)
			from += m[1]
			continue
		}
		content := strings.TrimSpace(r.text[from+m[1] : from+m[1]+length])
		if _, twice := parts[name]; twice || !gsdParts[name] {
			r.skipped(r.line(from+m[0]), []string{token}, "<%.64s> is not imported: %s", name, shown(firstLine(content)))
		} else {
			parts[name] = content
		}
		from += m[1] + length + len("</"+name+">")
	}
	r.strayIn(token, from, to)
	return parts
}

// gsdParts are the elements of a task that are imported.
var gsdParts = map[string]bool{"name": true, "files": true, "action": true, "verify": true, "done": true}

// maxChildren bounds the elements of one task.
const maxChildren = 64

func (r *gsd) strayIn(token string, from, to int) {
	text := strings.TrimLeft(r.text[from:to], " \t\r\n")
	if text != "" {
		r.skipped(r.line(to-len(text)), []string{token}, "text in no element is not imported: %s", shown(strings.TrimSpace(firstLine(text))))
	}
}

var untagged = strings.NewReplacer("<automated>", "", "</automated>", "")

func labelled(label, text string) string {
	if text == "" {
		return ""
	}
	return label + ": " + text
}

// verification is the command of a <verify>: its <automated>, or all of it.
func verification(text string) string {
	if _, inner, ok := strings.Cut(text, "<automated>"); ok {
		inner, _, closed := strings.Cut(inner, "</automated>")
		if closed && !strings.Contains(inner, "<") {
			text = strings.TrimSpace(inner)
			if code, is := quoted(text); is {
				return code
			}
			return text
		}
	}
	return command(text)
}

// filesOf are the paths of a list with commas or lines; "none" is no file.
func (r *gsd) filesOf(line int, text string) []string {
	files := []string{}
	for entry := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' || c == '\n' }) {
		entry = fileOf(entry)
		switch strings.ToLower(entry) {
		case "", "none", "n/a", "-":
			continue
		}
		if !r.name(line) {
			break
		}
		files = append(files, entry)
	}
	return files
}

// fileOf takes the sign of a list, backquotes and a note such as (new) off a path.
func fileOf(entry string) string {
	entry = strings.TrimSpace(entry)
	for _, sign := range []string{"- ", "* "} {
		entry = strings.TrimSpace(strings.TrimPrefix(entry, sign))
	}
	if rest, ok := strings.CutPrefix(entry, "`"); ok {
		inner, _, _ := strings.Cut(rest, "`")
		return inner
	}
	if i := strings.Index(entry, " ("); i > 0 {
		entry = entry[:i]
	}
	return entry
}

// blankComments puts spaces for comments, so that offsets and lines hold.
func blankComments(text string) string {
	if !strings.Contains(text, "<!--") {
		return text
	}
	out := []byte(text)
	for at := 0; ; {
		start := strings.Index(text[at:], "<!--")
		if start < 0 {
			return string(out)
		}
		start += at
		end := len(text)
		if length := strings.Index(text[start:], "-->"); length >= 0 {
			end = start + length + len("-->")
		}
		for i := start; i < end; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
		at = end
	}
}
