package cli

import (
	"fmt"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// liveLine is one line of the list of tasks: a head of a level, a task, or what is
// left out.
type liveLine struct {
	head, rest string
	task       *liveTask
}

// headedFrom is from which number of lines on levels have heads, if not all tasks
// are shown.
const headedFrom = 6

// chooseLines are the tasks that fit into so many lines, in their order, with heads
// of their levels. If not all do, those that run and those that failed go first, each
// with half of the room at least, then those that wait; the last line says what is
// left out.
func chooseLines(tasks []liveTask, room int) []liveLine {
	if room <= 0 || len(tasks) == 0 {
		return nil
	}
	if len(tasks)+levelsOf(tasks) <= room {
		return listed(tasks, nil, true)
	}
	c := chooser{tasks: tasks, chosen: make([]bool, len(tasks)), levels: map[string]bool{}, room: room - 1, heads: room >= headedFrom}
	c.choose(hub.WaveRunning, (room-1)/2)
	c.choose(hub.WaveFailed, room)
	for _, status := range []hub.WaveStatus{hub.WaveRunning, hub.WavePending, hub.WaveCancelled, hub.WaveCompleted} {
		c.choose(status, room)
	}
	return append(listed(tasks, c.chosen, c.heads), liveLine{rest: leftOut(tasks, c.chosen)})
}

// chooser chooses tasks while there is room.
type chooser struct {
	tasks  []liveTask
	chosen []bool
	levels map[string]bool // that have a head
	room   int
	heads  bool
}

// choose takes tasks of a status, and the heads that they need, into at most so many
// lines.
func (c *chooser) choose(status hub.WaveStatus, most int) {
	most = min(most, c.room)
	for i := range c.tasks {
		t := &c.tasks[i]
		if t.status != status || c.chosen[i] {
			continue
		}
		lines := 1
		if c.heads && !c.levels[t.label()] {
			lines = 2
		}
		if lines > most {
			continue // one of a level that has its head may still fit
		}
		if most, c.room = most-lines, c.room-lines; c.heads {
			c.levels[t.label()] = true
		}
		c.chosen[i] = true
		if most == 0 {
			return
		}
	}
}

// listed are the chosen tasks, nil for all of them.
func listed(tasks []liveTask, chosen []bool, heads bool) (lines []liveLine) {
	last := ""
	for i := range tasks {
		if chosen != nil && !chosen[i] {
			continue
		}
		if label := tasks[i].label(); heads && label != last {
			lines, last = append(lines, liveLine{head: label}), label
		}
		lines = append(lines, liveLine{task: &tasks[i]})
	}
	return lines
}

// leftOut counts the tasks that were not chosen.
func leftOut(tasks []liveTask, chosen []bool) string {
	counts, all := map[hub.WaveStatus]int{}, 0
	for i, t := range tasks {
		if !chosen[i] {
			counts[t.status]++
			all++
		}
	}
	var parts []string
	for _, status := range []hub.WaveStatus{hub.WaveRunning, hub.WaveFailed, hub.WavePending, hub.WaveCancelled, hub.WaveCompleted} {
		if n := counts[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return fmt.Sprintf("… and %d more: %s", all, strings.Join(parts, ", "))
}

// label names the task's level or sub-wave, such as 2 or 2b.
func (t *liveTask) label() string { return fmt.Sprintf("%d%s", t.level, t.sub) }

// levelsOf counts the levels and sub-waves of tasks in their order.
func levelsOf(tasks []liveTask) (n int) {
	for i := range tasks {
		if i == 0 || tasks[i].level != tasks[i-1].level || tasks[i].sub != tasks[i-1].sub {
			n++
		}
	}
	return n
}
