package wave

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxCheckpointFile bounds each file that is read.
const maxCheckpointFile = 64 << 20

// restored is what a wave is made of that goes on where another one was. Done are
// the tasks that are completed, by token; each of their dependencies is too.
type restored struct {
	Entries   []hub.WaveEntry
	Policy    hub.WavePolicy
	Goal      string
	Iteration int  // how many the source has come to the end of
	Exhausted bool // the source had no iteration left
	Done      map[string]evidence
	Warnings  []hub.Finding
}

// readCheckpoint reads the files of a checkpoint folder. graph.json has to be whole
// and to have the sum that it says; what is torn, of another wave, or of a format
// that this hub does not know is refused with the file as the field. A level counts
// as completed if its done.json repeats the graph's sum, shows each task passed where
// verification is required, there or by verifyRequired, and every level that its
// tasks depend on counts. Other levels are redone whole, with a warning where there
// was a done.json.
func readCheckpoint(c Checkpoint, verifyRequired bool) (restored, error) {
	var g graphFile
	if err := readCheckpointFile(fieldGraph, c.Graph, &g); err != nil {
		return restored{}, err
	}
	planned, err := g.check()
	if err != nil {
		return restored{}, err
	}
	policy, err := g.Policy.Clean()
	if err != nil {
		return restored{}, unreadable(fieldGraph, "policy: %v", err)
	}
	r := restored{Entries: g.Tasks, Policy: policy, Goal: g.Goal, Exhausted: c.Exhausted, Done: map[string]evidence{}}
	if err := r.readState(g, c.State); err != nil {
		return restored{}, err
	}
	l := levelReader{graph: g, planned: planned, required: verifyRequired || g.Policy.Verify == hub.VerifyRequired, into: &r}
	return r, l.read(c.Done)
}

// Fields of the request that hold the files.
const (
	fieldGraph = "checkpoint.graph"
	fieldState = "checkpoint.state"
)

func fieldDone(level int) string { return fmt.Sprintf("checkpoint.done.%d", level) }

// readCheckpointFile reads one file strictly.
func readCheckpointFile(field, text string, into any) error {
	if len(text) > maxCheckpointFile {
		e := hub.Errorf(hub.CodeTooLarge, "%s: %d bytes; at most %d are read", field, len(text), maxCheckpointFile)
		e.Field = field
		return e
	}
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return unreadable(field, "it is no whole file of a checkpoint: %v", err)
	}
	if head.Format != checkpointFormat {
		return unreadable(field, "its format is %q; this hub reads %s", hub.Cut(head.Format, 64), checkpointFormat)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return unreadable(field, "%v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return unreadable(field, "something follows its end")
	}
	return nil
}

func unreadable(field, format string, args ...any) error {
	e := hub.Invalid(field, format, args...)
	e.Hint = "name a folder as a hub wrote it, and copy it whole"
	return e
}

func mismatched(field, format string, args ...any) *hub.Error {
	e := hub.Errorf(hub.CodeCheckpointMismatch, field+": "+format, args...)
	e.Field = field
	return e
}

// check refuses a graph that no hub wrote. It returns the tasks of each level, from
// 1 at 0, as declared.
func (g graphFile) check() ([][]string, error) {
	if len(g.Tasks) > hub.MaxWaveTasks {
		e := hub.Errorf(hub.CodeTooLarge, "%s: %d tasks; a wave has at most %d", fieldGraph, len(g.Tasks), hub.MaxWaveTasks)
		e.Field = fieldGraph
		return nil, e
	}
	if graphSum(g.graphBody) != g.Graph || tasksSum(g.Tasks) != g.TasksSum {
		e := mismatched(fieldGraph, "its content does not have the sum that it says: it was changed, or not copied whole")
		e.Hint = "take the folder as the hub wrote it; tasks are changed in the new wave, by wave task update"
		return nil, e
	}
	return g.levels()
}

// levels are the tasks by level. A level is above those that it depends on.
func (g graphFile) levels() ([][]string, error) {
	of := map[string]int{}
	for _, part := range g.Levels {
		for _, token := range part.Tasks {
			of[token] = part.Wave
		}
	}
	if len(of) != len(g.Tasks) {
		return nil, unreadable(fieldGraph, "its levels do not hold exactly its tasks")
	}
	planned := make([][]string, 0, len(g.Levels))
	for _, t := range g.Tasks {
		level := of[t.Token]
		if level < 1 || level > len(g.Levels) {
			return nil, unreadable(fieldGraph, "the task %q has no level", hub.Cut(t.Token, hub.MaxWaveToken))
		}
		for _, d := range t.Dependencies {
			if before, ok := of[d]; ok && before >= level { // one that is unknown is the planner's finding
				return nil, unreadable(fieldGraph, "the task %s is not on a later level than its dependency %s", t.Token, d)
			}
		}
		for len(planned) < level {
			planned = append(planned, nil)
		}
		planned[level-1] = append(planned[level-1], t.Token)
	}
	return planned, nil
}

// readState takes over what state.json says; a folder that was cut early has none.
func (r *restored) readState(g graphFile, text string) error {
	if text == "" {
		return nil
	}
	var s stateFile
	if err := readCheckpointFile(fieldState, text, &s); err != nil {
		return err
	}
	switch {
	case !s.sameWave(g.fileHead):
		return mismatched(fieldState, "it is of another wave than graph.json")
	case s.Iteration < 0 || s.Iteration > hub.MaxIterations:
		return unreadable(fieldState, "iteration_count must be 0 to %d", hub.MaxIterations)
	}
	if r.Iteration = s.Iteration; s.Status == hub.WaveRunning { // it was cut, and goes on in the same iteration
		r.Iteration = max(s.Iteration-1, 0)
		r.warn(hub.WarnSourceRunning, nil, "state.json says that %s is running: it may still be, on the hub that wrote it", g.Wave)
	} else if s.Graph != g.Graph {
		r.warn(hub.WarnSourceRunning, nil, "state.json is of another state of %s than graph.json: the hub that wrote them was cut, or is still writing", g.Wave)
	}
	return nil
}

func (h fileHead) sameWave(g fileHead) bool { return h.Wave == g.Wave && h.Mark == g.Mark }

func (r *restored) warn(code string, tasks []string, format string, args ...any) {
	if tasks == nil {
		tasks = []string{}
	}
	r.Warnings = append(r.Warnings, hub.Finding{Code: code, Tasks: tasks, Detail: fmt.Sprintf(format, args...)})
}

// levelReader reads the done.json of each level, from the lowest.
type levelReader struct {
	graph    graphFile
	planned  [][]string
	required bool
	into     *restored
}

func (l levelReader) read(done map[int]string) error {
	entries := map[string]hub.WaveEntry{}
	for _, e := range l.graph.Tasks {
		entries[e.Token] = e
	}
	for _, level := range slices.Sorted(maps.Keys(done)) {
		d, err := l.doneFile(level, done[level])
		if err != nil {
			return err
		}
		if task, why := l.distrust(d, entries); why != "" {
			l.into.warn(hub.WarnLevelRedone, task, "level %d is redone: %s", level, why)
			continue
		}
		for _, e := range d.Tasks {
			e.Source = sourceCheckpoint
			l.into.Done[e.Token] = e
		}
	}
	return nil
}

// doneFile reads one done.json. One of this graph has exactly the tasks of its
// level.
func (l levelReader) doneFile(level int, text string) (doneFile, error) {
	var d doneFile
	field := fieldDone(level)
	if err := readCheckpointFile(field, text, &d); err != nil {
		return d, err
	}
	switch {
	case !d.sameWave(l.graph.fileHead):
		return d, mismatched(field, "it is of another wave than graph.json")
	case d.Level != level:
		return d, mismatched(field, "it is the one of level %d", d.Level)
	case d.Graph == l.graph.Graph && (level < 1 || level > len(l.planned)):
		return d, mismatched(field, "graph.json has %d levels", len(l.planned))
	case d.Graph == l.graph.Graph && !slices.EqualFunc(d.Tasks, l.planned[level-1], isOf):
		return d, mismatched(field, "it does not show exactly the tasks of its level as completed")
	}
	return d, nil
}

func isOf(e evidence, token string) bool {
	return e.Token == token && e.Status == hub.WaveCompleted
}

// distrust tells why a level does not count, and by which task; "" if it does.
func (l levelReader) distrust(d doneFile, entries map[string]hub.WaveEntry) (task []string, why string) {
	if d.Graph != l.graph.Graph {
		return nil, "its done.json is of another state of the graph"
	}
	for _, e := range d.Tasks {
		if l.required && e.VerifyResult != hub.VerifyPassed {
			return []string{e.Token}, e.Token + " does not show that its verification passed, which is required"
		}
		for _, dep := range entries[e.Token].Dependencies {
			if _, ok := l.into.Done[dep]; !ok {
				return []string{e.Token}, e.Token + " depends on " + dep + ", which is redone"
			}
		}
	}
	return nil, ""
}
