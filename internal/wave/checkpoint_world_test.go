package wave

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
)

// checkpointWorld is a wave that changes as the engine may have it change, and a
// little beyond.
type checkpointWorld struct {
	wave      hub.Wave
	rows      []hub.WaveRow
	orders    []hub.WaveOrder
	standings map[string]standing
	rand      *rand.Rand
	clock     hub.Micros
}

// newCheckpointWorld makes a wave of n tasks whose dependencies are earlier ones.
func newCheckpointWorld(seed uint64, n int) *checkpointWorld {
	x := &checkpointWorld{rand: rand.New(rand.NewPCG(seed, 1)), standings: map[string]standing{}, clock: 1_700_000_000_000_000}
	policy, err := hub.DefaultWavePolicy(hub.DefaultLiveness).Clean()
	if err != nil {
		panic(err)
	}
	if x.rand.IntN(2) == 0 {
		policy.Order = hub.OrderBarrier
	}
	x.wave = hub.Wave{
		ID: "Wave_1", UID: "wave_uid", Run: "run_1", Goal: "do <it>", Status: hub.WaveRunning, Policy: policy, Total: n, Iteration: 1,
		CheckpointDir: "/checkpoints", CreatedAt: x.clock, StartedAt: x.clock + 1,
	}
	for i := range n {
		x.addTask(i)
	}
	if n > 1 {
		x.orders = []hub.WaveOrder{{First: 0, Second: n - 1, Path: "src/a"}}
	}
	return x
}

func (x *checkpointWorld) addTask(i int) {
	r := hub.WaveRow{State: hub.TaskReady}
	r.Wave, r.Index, r.Level, r.Task, r.Iteration = x.wave.ID, i, 1, hub.TaskID("task_"+string(rune('a'+i%26))), 1
	r.Entry = hub.WaveEntry{Token: "t" + string(rune('a'+i%26)) + strings.Repeat("x", i/26), Goal: "goal", Worker: "w-1"}
	if x.rand.IntN(2) == 0 {
		r.Entry.WriteScope = []string{}
	}
	for j := range i {
		if x.rand.IntN(3) == 0 {
			r.Entry.Dependencies = append(r.Entry.Dependencies, x.rows[j].Entry.Token)
			r.Level = max(r.Level, x.rows[j].Level+1)
		}
	}
	r.Sub = x.rand.IntN(3)
	x.rows = append(x.rows, r)
	x.standings[r.Entry.Token] = standing{status: hub.WavePending}
}

func (x *checkpointWorld) statuses(r hub.WaveRow) standing { return x.standings[r.Entry.Token] }

func (x *checkpointWorld) files() []folderFile {
	return projection(x.wave, x.rows, x.orders, nil, x.statuses)
}

// change changes one thing.
func (x *checkpointWorld) change() {
	x.clock += 1_000_000
	i := x.rand.IntN(len(x.rows))
	r := &x.rows[i]
	open := x.standings[r.Entry.Token].status == hub.WavePending
	switch k := x.rand.IntN(20); {
	case k < 12 && open && x.dependenciesDone(*r):
		x.complete(r)
	case k < 15 && open:
		x.fail(r)
	case k == 15:
		x.retry()
	case k == 16:
		x.wave.Policy.MaxIterations = 3 + x.rand.IntN(900) // another graph
	case k == 17:
		x.wave.Exhausted = !x.wave.Exhausted
	case k == 18 && open:
		r.Entry.Goal += "." // another graph
	}
}

func (x *checkpointWorld) dependenciesDone(r hub.WaveRow) bool {
	return !slices.ContainsFunc(r.Entry.Dependencies, func(d string) bool { return x.standings[d].status != hub.WaveCompleted })
}

func (x *checkpointWorld) complete(r *hub.WaveRow) {
	code := 0
	r.State, r.CompletedAt, r.Attempts, r.Result = hub.TaskCompleted, x.clock, r.Attempts+1, "did it"
	r.Dispatch = &hub.Dispatch{
		ID: hub.DispatchID("dispatch_" + r.Entry.Token), State: hub.Succeeded, SettledAt: x.clock,
		Findings: &hub.Findings{
			VerifyResult: hub.VerifyPassed, VerifiedBy: hub.VerifiedByHub, Handoff: &hub.Handoff{Present: true, Bytes: 3, SHA256: "abc"},
			Verification: &hub.Verification{Command: "make test", ExitCode: &code, OutputTail: "ok\n", Attempts: 1},
		},
	}
	x.standings[r.Entry.Token] = standing{status: hub.WaveCompleted}
}

func (x *checkpointWorld) fail(r *hub.WaveRow) {
	code := 7
	r.State, r.CompletedAt, r.Attempts, r.Result = hub.TaskFailed, x.clock, r.Attempts+1, "could not"
	r.Dispatch = &hub.Dispatch{ID: "dispatch_f", State: hub.Failed, Reason: "exit", ExitCode: &code, SettledAt: x.clock}
	x.standings[r.Entry.Token] = standing{status: hub.WaveFailed, reason: "exit"}
	x.wave.Status = hub.WaveFailed
	x.wave.Ending = &hub.WaveEnding{As: hub.WaveFailed, Reason: hub.EndTaskFailed, At: x.clock}
}

func (x *checkpointWorld) retry() {
	x.wave.Iteration, x.wave.Status, x.wave.Ending, x.wave.StartedAt = x.wave.Iteration%1000+1, hub.WaveRunning, nil, x.clock
	for i := range x.rows {
		if r := &x.rows[i]; x.standings[r.Entry.Token].status == hub.WaveFailed {
			r.State, r.Iteration = hub.TaskReady, x.wave.Iteration
			x.standings[r.Entry.Token] = standing{status: hub.WavePending}
		}
	}
}

// doneLevels are the levels all of whose tasks are completed.
func (x *checkpointWorld) doneLevels() map[int]bool {
	done := map[int]bool{}
	for _, r := range x.rows {
		if _, ok := done[r.Level]; !ok {
			done[r.Level] = true
		}
		done[r.Level] = done[r.Level] && x.standings[r.Entry.Token].status == hub.WaveCompleted
	}
	return done
}

// collected are files as the command line collects them.
func collected(files map[string][]byte) Checkpoint {
	c := Checkpoint{Graph: string(files[graphName]), State: string(files[stateName]), Done: map[int]string{}}
	_, c.Exhausted = files[markerName]
	for level := 1; level <= 64; level++ {
		if data, ok := files[doneName(level)]; ok {
			c.Done[level] = string(data)
		}
	}
	return c
}

// contents are the files that must be there.
func contents(files []folderFile) map[string][]byte {
	out := map[string][]byte{}
	for _, f := range files {
		if f.data != nil {
			out[f.path] = f.data()
		}
	}
	return out
}

var errKilled = errors.New("killed")

// memoryFiles is a Files that stops before its n-th change, in the middle of one if
// half says so: then the change is made and nobody learns it. left below 0 never
// stops.
type memoryFiles struct {
	files   map[string][]byte
	left    int
	half    bool
	changes int
	writes  []string
}

func newMemory() *memoryFiles { return &memoryFiles{files: map[string][]byte{}, left: -1} }

// stop counts a change. The change is made unless it returns an error at once.
func (m *memoryFiles) stop(change func()) error {
	if m.left == 0 {
		return errKilled
	}
	m.left--
	m.changes++
	if change(); m.left == 0 && m.half {
		return errKilled
	}
	return nil
}

func (m *memoryFiles) Settle(string) error { return nil }

func (m *memoryFiles) Read(name string, limit int64) ([]byte, error) {
	data, ok := m.files[path.Clean(name)]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case int64(len(data)) > limit:
		return nil, safefile.ErrTooLarge
	}
	return data, nil
}

func (m *memoryFiles) Write(name string, data []byte) error {
	return m.stop(func() { m.files[name], m.writes = data, append(m.writes, path.Base(name)) })
}

func (m *memoryFiles) Rename(from, to string) error {
	if _, ok := m.files[from]; !ok {
		return fs.ErrNotExist
	}
	return m.stop(func() {
		m.files[to] = m.files[from]
		delete(m.files, from)
	})
}

func (m *memoryFiles) Remove(name string) error { return m.stop(func() { delete(m.files, name) }) }

// below are the files below a folder, by the names of a projection.
func (m *memoryFiles) below(root string) map[string][]byte {
	out := map[string][]byte{}
	for name, data := range m.files {
		if rest, ok := strings.CutPrefix(name, root+"/"); ok {
			out[rest] = data
		}
	}
	return out
}

// mustBeStory fails unless files that were read one after the other while nothing
// changed tell one story.
func mustBeStory(t *testing.T, files map[string][]byte) {
	t.Helper()
	var state stateFile
	if files[stateName] == nil {
		return
	}
	if err := json.Unmarshal(files[stateName], &state); err != nil {
		t.Fatalf("state.json is torn: %v", err)
	}
	r, err := readCheckpoint(collected(files), false)
	if err != nil {
		t.Fatal(err)
	}
	var graph graphFile
	if err := json.Unmarshal(files[graphName], &graph); err != nil || graph.Graph != state.Graph {
		return // being written anew: state.json comes last
	}
	for _, l := range graph.Levels {
		for _, token := range l.Tasks {
			if _, done := r.Done[token]; l.Wave < state.Current && !done {
				t.Fatalf("state.json says that wave %d is the current one, but %s of %d is not done; warnings %v", state.Current, token, l.Wave, r.Warnings)
			}
		}
	}
}

func drawCheckpointWorld(t *rapid.T) *checkpointWorld {
	x := newCheckpointWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 14).Draw(t, "tasks"))
	for range rapid.IntRange(0, 40).Draw(t, "changes") {
		x.change()
	}
	return x
}
