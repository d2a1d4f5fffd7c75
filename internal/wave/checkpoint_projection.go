package wave

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// folderFile is what a file of a wave's folder has to contain.
type folderFile struct {
	path string        // below the folder, with slashes
	data func() []byte // nil: there must be none
	// key is worth the data's own sum, but costs less: files of one path and key have
	// the same data. The zero value says nothing.
	key [sha256.Size]byte
	// level is that of a done.json and failures.json, else 0; iteration that of a
	// failures.json. One of another iteration is kept under another name.
	level, iteration int
}

// isFailures says that a file is kept when it is not there to be any more.
func (f folderFile) isFailures() bool { return f.level > 0 && f.path == failuresName(f.level) }

// isDone says that a file shows that its level is done.
func (f folderFile) isDone() bool { return f.level > 0 && f.path == doneName(f.level) }

func (f *folderFile) holds(v any) { f.data = func() []byte { return encodeFile(v, " ") } }

// projection is all files of the folder of a wave in its present state. They are
// to be written in their order, then what must not be there is to go: what a file
// speaks of is there before it and goes after it, and state.json speaks of all.
// Equal states make equal bytes. rows are all tasks as declared, orders those of
// the wave; statuses tells what a task comes to. former saves work where the graph
// has not changed since.
func projection(w hub.Wave, rows []hub.WaveRow, orders []hub.WaveOrder, former *graphMemo, statuses func(hub.WaveRow) standing) []folderFile {
	p := projectedOf(w, rows, statuses)
	p.head = headOf(w, former.sum(p, orders))
	files := []folderFile{p.graphFile(orders)}
	for i := range p.levels {
		files = append(files, p.done(i+1), p.failures(i+1))
	}
	return append(files, p.marker(), p.state())
}

// projected is a wave at one moment. levels are the indexes of its tasks by level.
type projected struct {
	wave      hub.Wave
	head      fileHead
	rows      []hub.WaveRow
	levels    [][]int
	standings []standing
	doneThere []bool  // by level, from 0
	current   int     // the lowest level that is not done, from 1
	after     [][]int // see followers
}

func projectedOf(w hub.Wave, rows []hub.WaveRow, statuses func(hub.WaveRow) standing) *projected {
	p := &projected{wave: w, rows: rows, levels: levelsOf(rows), standings: make([]standing, len(rows))}
	for i, r := range rows {
		p.standings[i] = statuses(r)
	}
	p.doneThere = make([]bool, len(p.levels))
	for i, level := range p.levels {
		p.doneThere[i] = !slices.ContainsFunc(level, func(i int) bool { return p.standings[i].status != hub.WaveCompleted })
	}
	if p.current = slices.Index(p.doneThere, false) + 1; p.current == 0 {
		p.current = len(p.levels) + 1
	}
	return p
}

func levelsOf(rows []hub.WaveRow) [][]int {
	var levels [][]int
	for i, r := range rows {
		for len(levels) < r.Level {
			levels = append(levels, nil)
		}
		levels[r.Level-1] = append(levels[r.Level-1], i)
	}
	return levels
}

// done is the done.json of a level.
func (p *projected) done(level int) folderFile {
	f := folderFile{path: doneName(level), level: level}
	if p.doneThere[level-1] {
		f.key = p.evidenceKey(level)
		f.data = func() []byte { return encodeFile(p.doneFile(level), " ") }
	}
	return f
}

func (p *projected) doneFile(level int) doneFile {
	d := doneFile{fileHead: p.head, Level: level}
	for _, i := range p.levels[level-1] {
		e := evidenceOf(p.rows[i])
		d.Tasks, d.CompletedAt = append(d.Tasks, e), max(d.CompletedAt, e.CompletedAt)
	}
	return d
}

// evidenceKey covers what evidence is made of: a Dispatch is what its version says,
// and the result of a completed Task does not change without it.
func (p *projected) evidenceKey(level int) (key [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintln(h, p.head)
	for _, i := range p.levels[level-1] {
		keyRow(h, p.rows[i])
	}
	h.Sum(key[:0])
	return key
}

func keyRow(h io.Writer, r hub.WaveRow) {
	fmt.Fprintln(h, r.Entry.Token, r.Task, r.Attempts, r.CompletedAt, len(r.Result), len(r.ResultData))
	if d := r.Dispatch; d != nil {
		fmt.Fprintln(h, d.ID, d.State, d.Version)
	}
}

// updatedAt is when what state.json says came about, as far as the store knows.
func (p *projected) updatedAt() hub.Micros {
	at := max(p.wave.CreatedAt, p.wave.StartedAt, p.wave.CompletedAt)
	if p.wave.Ending != nil {
		at = max(at, p.wave.Ending.At)
	}
	for level := 1; level < p.current; level++ {
		for _, i := range p.levels[level-1] {
			at = max(at, completedAt(p.rows[i]))
		}
	}
	return at
}

func (p *projected) state() folderFile {
	s := stateFile{
		fileHead: p.head, Run: p.wave.Run, Goal: p.wave.Goal, Status: p.wave.Status, Current: p.current, Total: len(p.levels),
		Iteration: p.wave.Iteration, MaxIterations: p.wave.Policy.MaxIterations, UpdatedAt: p.updatedAt(),
	}
	if p.wave.Ending != nil {
		s.Reason = p.wave.Ending.Reason
	}
	f := folderFile{path: stateName}
	f.holds(s)
	return f
}
