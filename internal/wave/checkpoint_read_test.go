package wave

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

// TestProjectionIsReadBack: what is restored from any state is its tasks and its
// policy, and the levels that are done and rest on none that is not.
func TestProjectionIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawCheckpointWorld(t)
		r, err := readCheckpoint(collected(contents(x.files())), rapid.Bool().Draw(t, "required"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Policy != x.wave.Policy || r.Goal != x.wave.Goal || r.Iteration != passes(x.wave) || r.Exhausted != x.wave.Exhausted {
			t.Fatalf("restored %+v of %+v", r, x.wave)
		}
		var entries []hub.WaveEntry
		for _, row := range x.rows {
			entries = append(entries, row.Entry)
		}
		if err := matchCheckpoint(r, entries); err != nil {
			t.Fatal(err)
		}
		running := slices.ContainsFunc(r.Warnings, func(f hub.Finding) bool { return f.Code == hub.WarnSourceRunning })
		if running != (x.wave.Status == hub.WaveRunning) {
			t.Fatalf("%s: warnings are %v", x.wave.Status, r.Warnings)
		}
		if got, want := slices.Sorted(maps.Keys(r.Done)), x.counted(); !slices.Equal(got, want) {
			t.Fatalf("restored are %q, want %q", got, want)
		}
	})
}

// counted are the tasks of the levels that count, found out by leaving levels away
// until nothing completed rests on something that is not.
// passes is how many iterations a wave has come to the end of.
func passes(w hub.Wave) int {
	if w.Status == hub.WaveRunning {
		return max(w.Iteration-1, 0)
	}
	return w.Iteration
}

func (x *checkpointWorld) counted() []string {
	done := x.doneLevels()
	level := map[string]int{}
	for _, r := range x.rows {
		level[r.Entry.Token] = r.Level
	}
	for range x.rows {
		for _, r := range x.rows {
			for _, d := range r.Entry.Dependencies {
				done[r.Level] = done[r.Level] && done[level[d]]
			}
		}
	}
	var tokens []string
	for _, r := range x.rows {
		if done[r.Level] {
			tokens = append(tokens, r.Entry.Token)
		}
	}
	slices.Sort(tokens)
	return tokens
}

func TestProjectionIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, changes := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 40).Draw(t, "changes")
		var twice [2]map[string][]byte
		for i := range twice {
			x := newCheckpointWorld(seed, 10)
			for range changes {
				x.change()
			}
			twice[i] = contents(x.files())
		}
		if !maps.EqualFunc(twice[0], twice[1], bytes.Equal) {
			t.Fatal("equal states have different files")
		}
	})
}

// finishedWave is a completed wave of three levels: a, then b and c, then d.
func finishedWave() *checkpointWorld {
	x := newCheckpointWorld(1, 0)
	x.wave.Policy.Order = hub.OrderDAG
	for i, deps := range [][]string{nil, {"a"}, {"a"}, {"b", "c"}} {
		r := hub.WaveRow{}
		r.Index, r.Level, r.Task, r.Iteration = i, 1, hub.TaskID(fmt.Sprintf("task_%d", i)), 1
		r.Entry = hub.WaveEntry{Token: string(rune('a' + i)), Goal: "goal", Worker: "w-1", Dependencies: deps, WriteScope: []string{"src"}}
		if i > 0 {
			r.Level = 2 + i/3
		}
		x.rows = append(x.rows, r)
		x.complete(&x.rows[i])
	}
	x.rows[2].Sub, x.rows[1].Sub = 2, 1
	x.orders = []hub.WaveOrder{{First: 1, Second: 2, Path: "src"}}
	x.wave.Status, x.wave.Total = hub.WaveCompleted, 4
	return x
}

func (x *checkpointWorld) checkpoint() Checkpoint { return collected(contents(x.files())) }

func mustRestore(t *testing.T, c Checkpoint, required bool) restored {
	t.Helper()
	r, err := readCheckpoint(c, required)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequiredVerificationIsShownPassed(t *testing.T) {
	for result, trusted := range map[string]bool{hub.VerifyPassed: true, hub.VerifyFailed: false, hub.VerifyMissing: false, "": false} {
		x := finishedWave()
		x.rows[1].Dispatch.Findings.VerifyResult = result
		for _, byPolicy := range []bool{false, true} {
			if byPolicy {
				x.wave.Policy.Verify = hub.VerifyRequired
			}
			r := mustRestore(t, x.checkpoint(), !byPolicy)
			want := []string{"a"} // d rests on b
			if trusted {
				want = []string{"a", "b", "c", "d"}
			}
			if got := slices.Sorted(maps.Keys(r.Done)); !slices.Equal(got, want) {
				t.Errorf("%q, by policy %v: restored are %q, want %q; %v", result, byPolicy, got, want, r.Warnings)
			}
			if (len(r.Warnings) == 0) != trusted || !trusted && r.Warnings[0].Code != hub.WarnLevelRedone {
				t.Errorf("%q: warnings are %v", result, r.Warnings)
			}
		}
	}
	x := finishedWave()
	x.rows[1].Dispatch.Findings = nil
	if r := mustRestore(t, x.checkpoint(), false); len(r.Done) != 4 {
		t.Errorf("without the requirement %d are restored", len(r.Done))
	}
}

// TestSetCompletedByAPerson: what was found out about an attempt that failed is no
// evidence for the task.
func TestSetCompletedByAPerson(t *testing.T) {
	x := finishedWave()
	x.rows[0].Dispatch.State = hub.Failed
	if r := mustRestore(t, x.checkpoint(), true); len(r.Done) != 0 || len(r.Warnings) != 3 {
		t.Errorf("restored are %v, %v", r.Done, r.Warnings)
	}
}

// TestEvidenceOutlivesHubs: a wave that was restored writes a checkpoint from which
// the next hub restores the same, under required too.
func TestEvidenceOutlivesHubs(t *testing.T) {
	x := finishedWave()
	first := mustRestore(t, x.checkpoint(), true)
	if e := first.Done["b"]; e.Source != sourceCheckpoint || e.Verification.Command != "make test" || e.Handoff.SHA256 != "abc" || e.Dispatch != "dispatch_b" {
		t.Errorf("restored is %+v", e)
	}
	for i := range x.rows {
		r := &x.rows[i]
		r.Dispatch, r.Attempts, r.Task = nil, 0, "task_new"
		r.Result, r.ResultData = first.Done[r.Entry.Token].taskResult()
		if !strings.HasPrefix(r.Result, "source: checkpoint") {
			t.Errorf("the result is %q", r.Result)
		}
	}
	x.wave.UID, x.wave.ID = "wave_2", "w2"
	second := mustRestore(t, x.checkpoint(), true)
	for token, e := range second.Done {
		want := first.Done[token]
		want.Task = "task_new"
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("%s: %s", token, diff)
		}
	}
	if len(second.Done) != 4 {
		t.Errorf("restored are %v", second.Done)
	}
	// A worker that says so is not believed.
	x.rows[0].Dispatch = &hub.Dispatch{ID: "dispatch_z", State: hub.Succeeded}
	if r := mustRestore(t, x.checkpoint(), true); len(r.Done) != 0 {
		t.Errorf("restored are %v", r.Done)
	}
}

func TestTextsAreBounded(t *testing.T) {
	x := finishedWave()
	for i := range x.rows {
		x.rows[i].Result = strings.Repeat("é", hub.MaxWaveResult/2)
		x.rows[i].Dispatch.Findings.Verification.OutputTail = strings.Repeat("é", hub.MaxOutputTail/2-1) + "!"
	}
	e := mustRestore(t, x.checkpoint(), false).Done["a"]
	tail := e.Verification.OutputTail
	if len(e.Result) > maxEvidenceText || len(tail) > maxEvidenceText || !strings.HasSuffix(tail, "é!") || strings.ContainsRune(e.Result+tail, '\uFFFD') {
		t.Errorf("the evidence is %+v", e)
	}
}

// spoiled are checkpoints that are refused: by what, and as what.
func spoiled(t *testing.T) map[string]struct {
	c     Checkpoint
	code  hub.Code
	field string
} {
	t.Helper()
	type spoil = struct {
		c     Checkpoint
		code  hub.Code
		field string
	}
	with := func(code hub.Code, field string, change func(*Checkpoint)) spoil {
		c := finishedWave().checkpoint()
		change(&c)
		return spoil{c, code, field}
	}
	other := finishedWave()
	other.wave.UID = "wave_other"
	replaced := func(in *string, old, new string) {
		if !strings.Contains(*in, old) {
			t.Fatalf("%q is not in\n%s", old, *in)
		}
		*in = strings.Replace(*in, old, new, 1)
	}
	done := func(c *Checkpoint, level int, old, new string) {
		text := c.Done[level]
		replaced(&text, old, new)
		c.Done[level] = text
	}
	return map[string]spoil{
		"no graph":       with(hub.CodeInvalidArgument, fieldGraph, func(c *Checkpoint) { c.Graph = "" }),
		"torn graph":     with(hub.CodeInvalidArgument, fieldGraph, func(c *Checkpoint) { c.Graph = c.Graph[:len(c.Graph)/2] }),
		"torn state":     with(hub.CodeInvalidArgument, fieldState, func(c *Checkpoint) { c.State = c.State[:len(c.State)-4] }),
		"torn done":      with(hub.CodeInvalidArgument, "checkpoint.done.2", func(c *Checkpoint) { c.Done[2] = c.Done[2][:40] }),
		"more behind":    with(hub.CodeInvalidArgument, fieldGraph, func(c *Checkpoint) { c.Graph += "{}" }),
		"other format":   with(hub.CodeInvalidArgument, fieldGraph, func(c *Checkpoint) { replaced(&c.Graph, "checkpoint/1", "checkpoint/2") }),
		"unknown member": with(hub.CodeInvalidArgument, fieldState, func(c *Checkpoint) { replaced(&c.State, `"status"`, `"phase"`) }),
		"edited task":    with(hub.CodeCheckpointMismatch, fieldGraph, func(c *Checkpoint) { replaced(&c.Graph, `"goal": "goal"`, `"goal": "gaol"`) }),
		"edited policy":  with(hub.CodeCheckpointMismatch, fieldGraph, func(c *Checkpoint) { replaced(&c.Graph, `"max_iterations": 3`, `"max_iterations": 4`) }),
		"edited sum":     with(hub.CodeCheckpointMismatch, fieldGraph, func(c *Checkpoint) { replaced(&c.Graph, `"graph_sha256": "`, `"graph_sha256": "0`) }),
		"foreign state":  with(hub.CodeCheckpointMismatch, fieldState, func(c *Checkpoint) { c.State = other.checkpoint().State }),
		"foreign done":   with(hub.CodeCheckpointMismatch, "checkpoint.done.1", func(c *Checkpoint) { c.Done[1] = other.checkpoint().Done[1] }),
		"moved done":     with(hub.CodeCheckpointMismatch, "checkpoint.done.3", func(c *Checkpoint) { c.Done[3] = c.Done[2] }),
		"more levels": with(hub.CodeCheckpointMismatch, "checkpoint.done.4", func(c *Checkpoint) {
			c.Done[4] = strings.Replace(c.Done[3], `"wave": 3`, `"wave": 4`, 1)
		}),
		"level 0": with(hub.CodeCheckpointMismatch, "checkpoint.done.0", func(c *Checkpoint) {
			c.Done[0] = strings.Replace(c.Done[3], `"wave": 3`, `"wave": 0`, 1)
		}),
		"another task":    with(hub.CodeCheckpointMismatch, "checkpoint.done.2", func(c *Checkpoint) { done(c, 2, `"task_id": "b"`, `"task_id": "d"`) }),
		"not completed":   with(hub.CodeCheckpointMismatch, "checkpoint.done.2", func(c *Checkpoint) { done(c, 2, `"completed"`, `"failed"`) }),
		"iteration below": with(hub.CodeInvalidArgument, fieldState, func(c *Checkpoint) { replaced(&c.State, `"iteration_count": 1`, `"iteration_count": -1`) }),
		"iteration above": with(hub.CodeInvalidArgument, fieldState, func(c *Checkpoint) { replaced(&c.State, `"iteration_count": 1`, `"iteration_count": 1001`) }),
		"huge":            with(hub.CodeTooLarge, fieldState, func(c *Checkpoint) { c.State = strings.Repeat(" ", maxCheckpointFile+1) }),
	}
}

func TestSpoiledCheckpointsAreRefused(t *testing.T) {
	for name, s := range spoiled(t) {
		_, err := readCheckpoint(s.c, false)
		e, ok := errors.AsType[*hub.Error](err)
		if !ok || e.Code != s.code || e.Field != s.field || !strings.Contains(e.Message, s.field) {
			t.Errorf("%s: %v, want %s of %s", name, err, s.code, s.field)
		}
	}
}

// resummed writes a graph with the sums that its content has.
func resummed(t *testing.T, change func(*graphFile)) Checkpoint {
	t.Helper()
	c := finishedWave().checkpoint()
	var g graphFile
	if err := json.Unmarshal([]byte(c.Graph), &g); err != nil {
		t.Fatal(err)
	}
	change(&g)
	g.Graph, g.TasksSum = graphSum(g.graphBody), tasksSum(g.Tasks)
	return Checkpoint{Graph: string(encodeFile(g, " "))}
}

// TestGraphsThatNoHubWrote have the right sums and are refused all the same.
func TestGraphsThatNoHubWrote(t *testing.T) {
	for name, change := range map[string]func(*graphFile){
		"level missing":     func(g *graphFile) { g.Levels = g.Levels[:2] },
		"level below":       func(g *graphFile) { g.Levels[0].Wave = 0 },
		"level far above":   func(g *graphFile) { g.Levels[3].Wave = math.MaxInt },
		"more in levels":    func(g *graphFile) { g.Levels[0].Tasks = append(g.Levels[0].Tasks, "z") },
		"the same level":    func(g *graphFile) { g.Levels[3].Wave = 2 },
		"on itself":         func(g *graphFile) { g.Tasks[0].Dependencies = []string{"a"} },
		"twice":             func(g *graphFile) { g.Tasks = append(g.Tasks, g.Tasks[0]) },
		"policy of no kind": func(g *graphFile) { g.Policy.Order = "sideways" },
	} {
		if _, err := readCheckpoint(resummed(t, change), false); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := resummed(t, func(g *graphFile) { g.Tasks = make([]hub.WaveEntry, hub.MaxWaveTasks+1) })
	if _, err := readCheckpoint(many, false); !hub.IsCode(err, hub.CodeTooLarge) {
		t.Errorf("too many tasks: %v", err)
	}
	if r := mustRestore(t, resummed(t, func(g *graphFile) { g.Tasks[0].Dependencies = []string{"unknown"} }), false); len(r.Entries) != 4 {
		t.Errorf("what the planner finds is refused here: %+v", r)
	}
}

// TestOlderGraph: a done.json from before a change of the graph is not trusted, and
// nothing is refused.
func TestOlderGraph(t *testing.T) {
	x := finishedWave()
	older := x.checkpoint()
	x.wave.Policy.MaxIterations = 7
	c := x.checkpoint()
	c.State, c.Done[2] = older.State, older.Done[2]
	r := mustRestore(t, c, false)
	if got := slices.Sorted(maps.Keys(r.Done)); !slices.Equal(got, []string{"a"}) || r.Policy.MaxIterations != 7 {
		t.Errorf("restored are %q, %+v", got, r.Policy)
	}
	var codes []string
	for _, f := range r.Warnings {
		codes = append(codes, f.Code)
	}
	if want := []string{hub.WarnSourceRunning, hub.WarnLevelRedone, hub.WarnLevelRedone}; !slices.Equal(codes, want) {
		t.Errorf("warnings are %v", r.Warnings)
	}
	c.State = ""
	if r := mustRestore(t, c, false); r.Iteration != 0 {
		t.Errorf("without state.json the iteration is %d", r.Iteration)
	}
}

func TestTasksMustBeTheSame(t *testing.T) {
	x := finishedWave()
	r := mustRestore(t, x.checkpoint(), false)
	for want, change := range map[string]func([]hub.WaveEntry) []hub.WaveEntry{
		"":                         func(es []hub.WaveEntry) []hub.WaveEntry { es[0].Dependencies = []string{}; return es },
		"a differs in write_scope": func(es []hub.WaveEntry) []hub.WaveEntry { es[0].WriteScope = nil; return es },
		"c differs in goal":        func(es []hub.WaveEntry) []hub.WaveEntry { es[2].Goal = "x"; return es },
		"b differs in start":       func(es []hub.WaveEntry) []hub.WaveEntry { es[1].Start = &hub.WaveStart{}; return es },
		"has a where b is given":   func(es []hub.WaveEntry) []hub.WaveEntry { es[0], es[1] = es[1], es[0]; return es },
		"d is missing":             func(es []hub.WaveEntry) []hub.WaveEntry { return es[:3] },
		"e is not in the checkpoint": func(es []hub.WaveEntry) []hub.WaveEntry {
			return append(es, hub.WaveEntry{Token: "e"})
		},
	} {
		err := matchCheckpoint(r, change(slices.Clone(r.Entries)))
		if want == "" && err != nil || want != "" && (!hub.IsCode(err, hub.CodeCheckpointMismatch) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func FuzzReadCheckpoint(f *testing.F) {
	c := finishedWave().checkpoint()
	f.Add(c.Graph, c.State, c.Done[1], 1)
	f.Add(`{"format":"wavehub-checkpoint/1"}`, "", "", -1)
	f.Fuzz(func(t *testing.T, graph, state, done string, level int) {
		r, err := readCheckpoint(Checkpoint{Graph: graph, State: state, Done: map[int]string{level: done}}, false)
		if err != nil {
			return
		}
		for _, e := range r.Entries {
			if _, ok := r.Done[e.Token]; !ok {
				continue
			}
			for _, d := range e.Dependencies {
				if _, ok := r.Done[d]; !ok {
					t.Errorf("%s is completed, and %s is not", e.Token, d)
				}
			}
		}
	})
}
