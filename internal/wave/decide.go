package wave

import (
	"slices"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// view is everything that a decision rests on: one wave as the store has it, and
// what the engine knows of the world at this moment.
type view struct {
	wave    hub.Wave
	shape   *shape
	tasks   []task
	elapsed time.Duration // the wave's time by now
	patient bool          // the hub has just come up: links may still deliver finished work
	atStart time.Duration // the wave's time when it came up
	spent   Usage         // by all attempts
	// written is the last level whose done.json is on the disk; -1 without a folder.
	written int
	gates   map[string]hold // targets to which no start goes now
	now     time.Duration   // of the engine's clock
	flying  int             // start calls on their way
}

// task is a task of the wave as it is now.
type task struct {
	hub.WaveRow
	tries
	lost    bool     // its owner says so over a live link
	idle    bool     // no output and no report for longer than the policy's time
	flying  bool     // a start is on its way
	asking  bool     // a start whose outcome is unknown is being repeated
	pursued bool     // its owner was asked to stop it since the hub came up, and answered
	refused hub.Code // why its start can never be
	told    string   // the words of that refusal
	hold    hold     // its own start is tried again later
}

// hold is a refusal that may pass: for what it waits, and until when.
type hold struct {
	reason string
	until  time.Duration
}

// decision is what should be done and has not been.
type decision struct {
	ending  *hub.WaveEnding // to be committed with the changes
	causes  []int           // the tasks whose failure it is for
	changes []change
	final   hub.WaveStatus // the wave has come to its end
	starts  []int
	stops   []int    // fenced, with a worker that is to be ended
	repeats []int    // starts whose outcome is unknown: the request is made again
	waits   []string // by index: what each task waits for
}

// commits reports whether there is something to be written down.
func (d *decision) commits() bool { return d.ending != nil || len(d.changes) > 0 || d.final != "" }

// holding is what of a decision is still to be written down: the changes of tasks
// that are as they were; the ending if one of its causes is; and what follows, from
// that or from the ends of others, only if these hold.
func (d *decision) holding(same func(i int) bool) (ending *hub.WaveEnding, out []change) {
	for _, c := range d.changes {
		if same(c.index) {
			out = append(out, c)
		}
	}
	whole := len(out) == len(d.changes)
	switch {
	case d.ending == nil && whole:
		return nil, out
	case d.ending == nil || d.causes != nil && !slices.ContainsFunc(d.causes, same):
		return nil, slices.DeleteFunc(out, func(c change) bool { return c.follows })
	}
	return d.ending, slices.DeleteFunc(out, func(c change) bool { return !whole && c.progress.EndedReason == hub.EndBlocked })
}

// change is one task's part of a transaction. One that follows is the end of a task
// by the ends of others, or of its wave.
type change struct {
	index    int
	follows  bool
	progress hub.WaveProgress
	events   []event
	set      hub.TaskState // its Task's, "" for none
	fence    bool          // end its latest Dispatch
}

// event is a type and its data.
type event struct {
	kind string
	data any
}

// maxChanges bounds one transaction.
const maxChanges = 200

// decide computes what should be true of a running wave. It is pure: equal views
// have equal decisions. What it says to write down is written, and looked at
// again, before anything is started.
func decide(v *view) decision {
	s := &step{view: v, eff: make([]standing, len(v.tasks)), decision: decision{waits: make([]string, len(v.tasks))}}
	if s.reopen(); s.commits() {
		return s.decision
	}
	s.judge()
	s.end()
	for _, i := range s.causes[:min(len(s.causes), maxChanges)] {
		s.settle(i) // an ending is committed with what it is for
	}
	for _, i := range v.shape.inLine {
		if len(s.changes) >= maxChanges {
			return s.decision
		}
		if _, done := slices.BinarySearch(s.causes, i); !done {
			s.settle(i)
		}
		s.levels.pass(s.tasks[i].Level, s.eff[i].status)
	}
	if s.commits() {
		return s.decision
	}
	s.pursue()
	s.start()
	s.finish()
	return s.decision
}

// step is one decision in the making. eff is where each task will stand.
type step struct {
	*view
	decision
	eff    []standing
	failed []int // tasks
	levels levels
	held   []bool // by ordering edges
}

// levels follows a walk in line: dead says that a level before the present one has
// ended without being completed.
type levels struct {
	at              int
	open, shortfall bool
	dead            bool
}

func (l *levels) enter(level int) {
	if level == l.at {
		return
	}
	l.dead = l.dead || l.shortfall && !l.open
	l.at, l.open, l.shortfall = level, false, false
}

func (l *levels) pass(level int, st hub.WaveStatus) {
	l.enter(level)
	l.open = l.open || !st.Final()
	l.shortfall = l.shortfall || st != hub.WaveCompleted
}
