package intake

import (
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// masterTag is the list that counts where a file of Task Master has several.
const masterTag = "master"

// readTaskmaster reads the tasks.json of Task Master: an object with tasks, or with
// tags that have tasks each.
//
// The number of a task is its token; that of a subtask such as 1.2 is 1-2. A task
// waits for its subtasks, and these for what the task depends on. A task that is
// done or cancelled is left out with its subtasks, and what depended on it does not
// wait for it.
func readTaskmaster(s *sheet, text string) {
	m := &master{entries: entries{sheet: s, document: newDocument(text)}, owners: map[int]int{}, kept: map[string]*unused{}}
	if m.next() != '{' {
		m.fail("an object with tasks")
	} else {
		m.top(outlineOf(text))
	}
	m.end()
	if m.wrong != "" {
		s.invalid(m.line, "%s", m.wrong)
	}
	m.settle()
}

// master reads the tasks of Task Master. It keeps them until all are known, since
// they depend on each other in both directions.
type master struct {
	entries
	all    []masterTask
	owners map[int]int        // the task in all that a finding is of
	kept   map[string]*unused // by what it is
	order  []string           // of kept
}

// masterTask is a task or subtask; parent is the index of its task, -1 for none.
type masterTask struct {
	id, title, description, details, strategy, status string
	dependencies                                      []string // as written
	parent, line                                      int

	token string
	out   bool
	waits []string // the tokens that it depends on
}

// unused is what several tasks have that has no place in a wave.
type unused struct {
	line, count int
	tasks       []int
}

func (m *master) top(o outline) {
	tag := masterTag
	if len(o.tags) == 1 {
		tag = o.tags[0]
	}
	line, found := m.line, false
	m.members(func(key string, at int) {
		m.next()
		switch {
		case found:
			m.skipped(at, nil, "%.64q is not imported", key)
			m.skip()
		case key == "tasks" && m.next() == '[':
			found = true
			m.elements(func() { m.task(-1) })
		case key == tag && len(o.tags) > 0 && !o.tasks && m.next() == '{':
			found = m.list()
		default:
			m.skipped(at, nil, "%.64q is not imported", key)
			m.skip()
		}
	})
	switch {
	case found || m.ended:
	case len(o.tags) > 1:
		m.invalid(line, "the file has the tags %.200q and none of them is %s; leave one of them in it", strings.Join(o.tags, ", "), masterTag)
	default:
		m.invalid(line, "the object has no list of tasks")
	}
}

// list reads the tasks of a tag.
func (m *master) list() (found bool) {
	m.members(func(key string, at int) {
		if key == "tasks" && m.next() == '[' && !found {
			found = true
			m.elements(func() { m.task(-1) })
			return
		}
		m.skipped(at, nil, "%.64q of the tag is not imported", key)
		m.skip()
	})
	return found
}

// task reads a task, or a subtask of the one at index parent.
func (m *master) task(parent int) {
	if m.next() != '{' {
		m.noTask(parent)
		return
	}
	first, at := len(m.findings.list), len(m.all)
	m.all = append(m.all, masterTask{parent: parent, line: m.line})
	seen := make([]bool, len(masterKeys))
	m.members(func(key string, line int) { m.key(at, key, line, seen) })
	if !seen[0] && !m.ended {
		m.find(hub.FindValueInvalid, m.all[at].line, nil, "id is missing")
	}
	for i := first; i < len(m.findings.list); i++ {
		if _, known := m.owners[i]; !known && len(m.findings.list[i].Tasks) == 0 && m.findings.list[i].Code != hub.FindFileInvalid {
			m.owners[i] = at
		}
	}
	m.bound()
}

func (m *master) bound() {
	if len(m.all) > maxListed && !m.ended {
		m.invalid(m.line, "more than %d tasks, with those that are done", maxListed)
		m.stop()
	}
}

// noTask stands in for what is no task, so that the numbers of the others hold.
func (m *master) noTask(parent int) {
	m.all = append(m.all, masterTask{parent: parent, line: m.line, out: true})
	m.skip()
	if m.ended {
		return
	}
	m.find(hub.FindValueInvalid, m.all[len(m.all)-1].line, []string{calling("", len(m.all))}, "a task is an object with id and title, and this is none")
	m.bound()
}

// masterKeys are the keys of a task that are read, those of a subtask but the last.
var masterKeys = []string{"id", "title", "description", "details", "testStrategy", "status", "dependencies", "subtasks"}

func (m *master) key(at int, key string, line int, seen []bool) {
	i := slices.Index(masterKeys, key)
	m.next()
	switch {
	case i < 0 || key == "subtasks" && m.all[at].parent >= 0:
		m.keep(key, line, at)
		m.skip()
	case seen[i]:
		m.find(hub.FindKeyDuplicate, line, nil, "%s is there twice", key)
		m.skip()
	case m.next() == 'n':
		m.skip()
	default:
		seen[i] = true
		m.known(at, key)
	}
}

// known reads the value of a key; null stands for a key that is not there.
func (m *master) known(at int, key string) {
	t := &m.all[at]
	switch key {
	case "id":
		id, ok := m.reference(key)
		if t.id = id; ok && id == "" {
			m.find(hub.FindValueInvalid, m.line, nil, "id is empty")
		}
	case "dependencies":
		m.dependencies(t, key)
	case "subtasks":
		if m.next() != '[' {
			m.mistyped(key, m.line, "a list of tasks")
			return
		}
		m.elements(func() { m.task(at) })
	case "title":
		m.text(&t.title)(key, m.line)
	case "description":
		m.text(&t.description)(key, m.line)
	case "details":
		m.text(&t.details)(key, m.line)
	case "testStrategy":
		m.text(&t.strategy)(key, m.line)
	case "status":
		m.text(&t.status)(key, m.line)
	}
}

// reference reads the number or the name of a task.
func (m *master) reference(key string) (string, bool) {
	c := m.next()
	if isDigit(c) {
		return m.number(), true
	}
	if c != '"' {
		m.mistyped(key, m.line, "a number or text")
		return "", false
	}
	return m.value(key, m.line)
}

func (m *master) dependencies(t *masterTask, key string) {
	if m.next() != '[' {
		m.mistyped(key, m.line, "a list of numbers or texts")
		return
	}
	m.elements(func() {
		id, ok := m.reference("an entry of dependencies")
		if !m.name(m.line) {
			m.stop()
		} else if ok {
			t.dependencies = append(t.dependencies, id)
		}
	})
}

// keep remembers what has no place in a wave, to tell of it once.
func (m *master) keep(what string, line, at int) {
	u := m.kept[what]
	switch {
	case u == nil && len(m.kept) == maxNotes:
		m.skipped(line, nil, "%.64q is not imported", what)
		return
	case u == nil:
		u = &unused{line: line}
		m.kept[what] = u
		m.order = append(m.order, what)
	}
	if u.count++; len(u.tasks) < shownTasks {
		u.tasks = append(u.tasks, at)
	}
}
