package intake

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// Bounds of what is made of a file.
const (
	maxNotes   = 1000      // findings, and warnings
	maxNames   = 1_000_000 // in all lists of a file
	maxDerived = 200_000   // dependencies that follow from the order of a file
	maxListed  = 100_000   // tasks, with those that are left out or cannot be read
	maxProse   = 8 << 20   // bytes of a plan that people read
	shownTasks = 20        // that one warning names
)

// sheet collects the tasks of a file and what is said of it.
type sheet struct {
	tasks              []hub.WaveEntry
	findings, warnings notes
	unreadable         bool // as a whole: it has no tasks
	names, derived     int
}

// notes are findings or warnings, and how many did not find room.
type notes struct {
	list []hub.Finding
	more int
}

func (n *notes) full() bool { return len(n.list) == maxNotes }

// add words a note only if there is room for it.
func (n *notes) add(code string, line int, tasks []string, format string, args ...any) {
	if n.full() {
		n.more++
		return
	}
	if tasks == nil {
		tasks = []string{}
	}
	n.list = append(n.list, hub.Finding{Code: code, Tasks: tasks, Line: line, Detail: fmt.Sprintf(format, args...)})
}

// done sorts the notes by line; code is that of the one which counts the rest.
func (n *notes) done(code, rest string) []hub.Finding {
	slices.SortStableFunc(n.list, func(a, b hub.Finding) int { return cmp.Compare(a.Line, b.Line) })
	if n.more > 0 {
		n.list = append(n.list, hub.Finding{Code: code, Tasks: []string{}, Detail: fmt.Sprintf(rest, n.more)})
	}
	return n.list
}

func (s *sheet) done() (tasks []hub.WaveEntry, findings, warnings []hub.Finding) {
	if s.unreadable {
		s.tasks = nil
	}
	return s.tasks, s.findings.done(hub.FindFileInvalid, "%d more findings are not listed; mend these first"),
		s.warnings.done(hub.WarnNotImported, "%d more things are not imported or noteworthy")
}

// invalid says that the file as a whole cannot be used.
func (s *sheet) invalid(line int, format string, args ...any) {
	s.unreadable = true
	s.findings.add(hub.FindFileInvalid, line, nil, format, args...)
}

func (s *sheet) find(code string, line int, tasks []string, format string, args ...any) {
	s.findings.add(code, line, tasks, format, args...)
}

// skipped is the warning of a thing that has no place in a wave.
func (s *sheet) skipped(line int, tasks []string, format string, args ...any) {
	s.warnings.add(hub.WarnNotImported, line, tasks, format, args...)
}

// full reports whether no further task is read.
func (s *sheet) full() bool { return len(s.tasks) > hub.MaxWaveTasks }

// name counts one entry of a list; false: the file has too many of them.
func (s *sheet) name(line int) bool {
	if s.names++; s.names == maxNames+1 {
		s.invalid(line, "the lists of the file have more than %d entries together", maxNames)
	}
	return s.names <= maxNames
}

// derive counts dependencies that nobody wrote; false: there are too many.
func (s *sheet) derive(line, n int) bool {
	before := s.derived
	if s.derived += n; s.derived > maxDerived && before <= maxDerived {
		s.invalid(line, "its order makes more than %d dependencies; split the file, or write the tasks as %s", maxDerived, FormatTasksJSON)
	}
	return s.derived <= maxDerived
}
