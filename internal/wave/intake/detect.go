package intake

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// detect tells a file's format, "" if it fits none. What the content shows counts
// more than the name.
func detect(name, text string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	switch (&document{text: text}).next() {
	case '[':
		return FormatTasksJSON
	case '{':
		return detectObject(text)
	}
	switch {
	case gsdMark.MatchString(text):
		return FormatGSD
	case specMark.MatchString(text):
		return FormatSpecKit
	case strings.HasSuffix(name, "PLAN.md"):
		return FormatGSD
	case strings.EqualFold(name, "tasks.md"):
		return FormatSpecKit
	case strings.EqualFold(path.Ext(name), ".json"):
		return FormatTasksJSON
	}
	return ""
}

var (
	gsdMark  = regexp.MustCompile(`(?m)^[ \t]*<tasks?(\s[^>\n]*)?>`)
	specMark = regexp.MustCompile(`(?m)^\s*[-*+] \[[ xX]\] \**\[?T\d`)
)

// detectObject tells the two formats that are a JSON object apart.
func detectObject(text string) string {
	o := outlineOf(text)
	if len(o.tags) > 0 || o.tasks && slices.Contains(o.keys, "id") && !slices.Contains(o.keys, "task_id") {
		return FormatTaskmaster
	}
	return FormatTasksJSON
}

// outline is what the top of a JSON object shows.
type outline struct {
	tasks bool     // it has tasks
	keys  []string // of the first task there
	tags  []string // the members that have tasks themselves
}

// maxOutline bounds the tags and keys that are looked at.
const maxOutline = 100

// outlineOf looks at an object, as far as it is JSON.
func outlineOf(text string) outline {
	var o outline
	d := newDocument(text)
	d.next()
	d.members(func(key string, _ int) {
		switch {
		case key == "tasks" && d.next() == '[':
			o.tasks = true
			d.elements(func() { o.task(d) })
		case key != "tasks" && d.next() == '{':
			d.members(func(inner string, _ int) {
				if inner == "tasks" && d.next() == '[' && len(o.tags) < maxOutline {
					o.tags = append(o.tags, key)
				}
				d.skip()
			})
		default:
			d.skip()
		}
	})
	return o
}

func (o *outline) task(d *document) {
	if o.keys != nil || d.next() != '{' {
		d.skip()
		return
	}
	o.keys = []string{}
	d.members(func(key string, _ int) {
		if len(o.keys) < maxOutline {
			o.keys = append(o.keys, key)
		}
		d.skip()
	})
}
