package intake

import (
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// settle makes tasks of a wave of all that was read.
func (m *master) settle() {
	m.tokens()
	for i, owner := range m.owners {
		m.findings.list[i].Tasks = []string{m.calling(owner)}
	}
	index := map[string]int{}
	for i := range m.all {
		if token := m.all[i].token; token != "" {
			if _, twice := index[token]; !twice {
				index[token] = i
			}
		}
	}
	m.leaveOut()
	for i := range m.all {
		if t := &m.all[i]; !t.out && !m.wait(t, index) {
			return
		}
	}
	subtasks := m.addSubtasks()
	for i := range m.all {
		if t := &m.all[i]; !t.out && t.token != "" && !m.full() {
			m.tasks = append(m.tasks, m.entryOf(i, subtasks[i]))
		}
	}
	m.tell()
}

func (m *master) calling(i int) string { return calling(m.all[i].token, i+1) }

// tokens names the tasks; a parent comes before its subtasks.
func (m *master) tokens() {
	for i := range m.all {
		t := &m.all[i]
		name := t.id
		if t.parent >= 0 && t.id != "" {
			if parent := m.all[t.parent]; !strings.HasPrefix(t.id, parent.id+".") {
				name = parent.token + "-" + t.id
			}
		}
		t.token = tokenOf(name)
		if t.token == "" && t.id != "" {
			m.find(hub.FindValueInvalid, t.line, []string{m.calling(i)}, "id %.64q has nothing that a token may have", t.id)
		}
	}
}

// leaveOut marks what is done or given up, and subtasks of that.
func (m *master) leaveOut() {
	for i := range m.all {
		t := &m.all[i]
		switch inside := t.parent >= 0 && m.all[t.parent].out; {
		case t.out: // it cannot be read
		case slices.Contains([]string{"done", "completed", "cancelled", "canceled"}, t.status):
			t.out = true
			m.skipped(t.line, []string{m.calling(i)}, "its status is %s: it is left out, and nothing waits for it", t.status)
		case inside:
			t.out = true
			m.skipped(t.line, []string{m.calling(i)}, "its task is left out, and it too")
		case t.status != "" && t.status != "pending":
			m.keep("status "+t.status, t.line, i)
		}
	}
}

// wait finds what a task waits for of its own and, for a subtask, of its task's.
func (m *master) wait(t *masterTask, index map[string]int) bool {
	for _, id := range t.dependencies {
		token := m.meant(t, id, index)
		if i, ok := index[token]; !ok || !m.all[i].out {
			t.waits = append(t.waits, token)
		}
	}
	if t.parent < 0 {
		return true
	}
	for _, token := range m.all[t.parent].waits {
		if i, ok := index[token]; ok && m.all[i].parent == t.parent {
			continue // a subtask of the same task
		}
		if !m.derive(t.line, 1) {
			return false
		}
		t.waits = append(t.waits, token)
	}
	return true
}

// meant is the token of a dependency: within a task its subtasks are meant first.
func (m *master) meant(t *masterTask, id string, index map[string]int) string {
	token := tokenOf(id)
	if t.parent < 0 || strings.Contains(id, ".") {
		return token
	}
	sibling := tokenOf(m.all[t.parent].token + "-" + id)
	if _, other := index[token]; !other {
		return sibling
	}
	if i, ok := index[sibling]; ok && m.all[i].parent == t.parent {
		return sibling
	}
	return token
}

// addSubtasks lets each task wait for its subtasks, which it returns by its index.
func (m *master) addSubtasks() map[int][]string {
	of := map[int][]string{}
	for i := range m.all {
		if t := &m.all[i]; t.parent >= 0 && !t.out && t.token != "" {
			of[t.parent] = append(of[t.parent], t.token)
		}
	}
	for i, tokens := range of {
		m.all[i].waits = append(m.all[i].waits, tokens...)
	}
	return of
}

func (m *master) entryOf(i int, subtasks []string) hub.WaveEntry {
	t := &m.all[i]
	goal := []string{t.title, t.description, t.details}
	if t.title == "" && t.description == "" {
		m.find(hub.FindValueInvalid, t.line, []string{t.token}, "it has neither title nor description")
	}
	verify := command(t.strategy)
	if t.strategy != "" {
		goal = append(goal, "Verify: "+t.strategy)
	}
	if t.strategy != "" && verify == "" {
		m.keep(wordsOnly, t.line, i)
	}
	if len(subtasks) > 0 {
		goal = append(goal, "Its parts are tasks of their own, done before it: "+strings.Join(subtasks, ", "))
	}
	return hub.WaveEntry{Token: t.token, Goal: paragraphs(goal...), Dependencies: t.waits, VerifyCmd: verify}
}

// wordsOnly is what is kept of a test strategy that is no command.
const wordsOnly = "testStrategy is words and no command, and stays in the goal"

// tell warns of what has no place in a wave.
func (m *master) tell() {
	for _, what := range m.order {
		u := m.kept[what]
		tasks := make([]string, len(u.tasks))
		for i, at := range u.tasks {
			tasks[i] = m.calling(at)
		}
		m.skipped(u.line, tasks, "%.80s: not imported (tasks with it: %d)", what, u.count)
	}
}

// paragraphs joins what is not empty.
func paragraphs(parts ...string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return strings.TrimSpace(s) == "" })
	return strings.Join(parts, "\n\n")
}
