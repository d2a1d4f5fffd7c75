package intake

import (
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// readTasksJSON reads wavehub's own format: a list of entries, or an object that
// has it as tasks.
func readTasksJSON(s *sheet, text string) {
	d := newDocument(text)
	r := &entries{sheet: s, document: d}
	switch d.next() {
	case '[':
		d.elements(r.read)
	case '{':
		r.top()
	default:
		d.fail("a list of tasks, or an object with tasks")
	}
	d.end()
	if d.wrong != "" {
		s.invalid(d.line, "%s", d.wrong)
	}
}

// entries reads tasks one after the other.
type entries struct {
	*sheet
	*document
	count int // of the tasks so far
	first int // of the findings of the present one
	entry hub.WaveEntry
}

func (r *entries) top() {
	line, found := r.line, false
	r.keyed("", []field{{"tasks", func(string, int) {
		found = true
		if r.next() != '[' {
			r.invalid(r.line, "tasks is %s, and should be a list", r.kind())
			r.skip()
			return
		}
		r.elements(r.read)
	}}})
	if !found && !r.ended {
		r.invalid(line, "the object has no tasks")
	}
}

// field is a known key of an object; read reads its value.
type field struct {
	name string
	read func(key string, line int)
}

// keyed reads an object, finding what is unknown or there twice: the first one
// counts. within is put before its keys where they are named. It returns which
// fields there were.
func (r *entries) keyed(within string, fields []field) (seen []bool) {
	seen = make([]bool, len(fields))
	r.members(func(key string, line int) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
		switch {
		case i < 0:
			meant := ""
			if !r.findings.full() {
				meant = suggest(key, fields)
			}
			r.find(hub.FindKeyUnknown, line, nil, "%.64q is no key here%s", within+key, meant)
			r.skip()
		case seen[i]:
			r.find(hub.FindKeyDuplicate, line, nil, "%s%s is there twice", within, key)
			r.skip()
		default:
			seen[i] = true
			r.next()
			fields[i].read(within+key, r.line)
		}
	})
	return seen
}

// read reads one task.
func (r *entries) read() {
	if r.count++; r.count > maxListed {
		r.invalid(r.line, "more than %d tasks", maxListed)
		r.stop()
		return
	}
	r.entry, r.first = hub.WaveEntry{}, len(r.findings.list)
	r.next()
	line := r.line
	if r.next() != '{' {
		if r.skip(); !r.ended {
			r.find(hub.FindValueInvalid, line, nil, "a task is an object with task_id and goal, and this is none")
		}
		r.named()
		return
	}
	seen := r.keyed("", r.fields())
	for i, key := range []string{"task_id", "goal"} {
		if !seen[i] && !r.ended {
			r.find(hub.FindValueInvalid, line, nil, "%s is missing", key)
		}
	}
	r.named()
	if r.entry.Token != "" {
		r.tasks = append(r.tasks, r.entry)
	}
	if r.full() {
		r.stop()
	}
}

// named puts the task's name to the findings of it.
func (r *entries) named() {
	for i := r.first; i < len(r.findings.list); i++ {
		if f := &r.findings.list[i]; f.Code != hub.FindFileInvalid {
			f.Tasks = []string{calling(r.entry.Token, r.count)}
		}
	}
}

func (r *entries) fields() []field {
	e := &r.entry
	return []field{
		{"task_id", r.text(&e.Token)},
		{"goal", r.text(&e.Goal)},
		{"worker", r.text(&e.Worker)},
		{"start", r.start},
		{"dependencies", func(key string, line int) { e.Dependencies = given(r.texts(key, line)) }},
		{"write_scope", r.writeScope},
		{"read_scope", func(key string, line int) { e.ReadScope = given(r.texts(key, line)) }},
		{"workspace", r.text(&e.Workspace)},
		{"handoff_path", r.text(&e.HandoffPath)},
		{"verify_cmd", r.text(&e.VerifyCmd)},
		{"timeout_secs", r.timeout},
	}
}

// given is a list, nil for an empty one.
func given(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func (r *entries) start(key string, line int) {
	if r.next() != '{' {
		r.mistyped(key, line, "an object")
		return
	}
	w := &hub.WaveStart{}
	r.entry.Start = w
	r.keyed("start.", []field{
		{"on", r.text(&w.On)}, {"agent", r.text(&w.Agent)}, {"worktree", r.text(&w.Worktree)}, {"name", r.text(&w.Name)},
		{"repo", r.text(&w.Repo)}, {"base", r.text(&w.Base)}, {"parent", r.text(&w.Parent)}, {"setup", r.text(&w.Setup)},
		{"terminal", r.text(&w.Terminal)},
	})
}

// writeScope takes null as what is not known, as a wave's own files have it.
func (r *entries) writeScope(key string, line int) {
	if r.next() == 'n' {
		r.skip()
		return
	}
	r.entry.WriteScope = r.texts(key, line)
}

func (r *entries) timeout(key string, line int) {
	c := r.next()
	if c != '-' && !isDigit(c) {
		r.find(hub.FindTimeoutInvalid, line, nil, "%s is %s, and should be a whole number of seconds", key, r.kind())
		r.skip()
		return
	}
	number := r.number()
	secs, whole := wholeSeconds(number)
	if !whole || secs < 0 {
		r.find(hub.FindTimeoutInvalid, line, nil, "%s is %.32s, and should be a whole number of seconds from 0 on", key, number)
		return
	}
	r.entry.TimeoutSecs = hub.ClampWaveTime(secs)
}

// text reads a text into a place.
func (r *entries) text(into *string) func(key string, line int) {
	return func(key string, line int) {
		if value, ok := r.value(key, line); ok {
			*into = value
		}
	}
}

func (r *entries) value(key string, line int) (string, bool) {
	if r.next() != '"' {
		r.mistyped(key, line, "text")
		return "", false
	}
	value := r.str()
	if strings.IndexByte(value, 0) >= 0 {
		r.find(hub.FindValueInvalid, line, nil, "%s holds a NUL character", key)
		return "", false
	}
	return value, true
}

// texts reads a list of texts; it is nil only where there is no list.
func (r *entries) texts(key string, line int) []string {
	if r.next() != '[' {
		r.mistyped(key, line, "a list of texts")
		return nil
	}
	out, entry := []string{}, "an entry of "+key
	r.elements(func() {
		r.next()
		value, ok := r.value(entry, r.line)
		if !r.name(r.line) {
			r.stop()
		} else if ok {
			out = append(out, value)
		}
	})
	return out
}

func (r *entries) mistyped(key string, line int, want string) {
	r.find(hub.FindValueInvalid, line, nil, "%s is %s, and should be %s", key, r.kind(), want)
	r.skip()
}
