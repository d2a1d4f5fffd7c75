//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// checkpointFile is what the files of a checkpoint folder say; each has a part of it.
type checkpointFile struct {
	Mark    string `json:"wave_sha256"`
	Graph   string `json:"graph_sha256"`
	Status  string
	Level   int `json:"wave"`
	Current int `json:"current_wave"`
	Tasks   []struct {
		Task   string `json:"task_id"`
		Status string
	}
}

// folderReader reads a wave's folder again and again, as any program may: whenever
// it looks, each file is whole, and every level below current_wave has its done.json.
type folderReader struct {
	dir  string
	stop chan struct{}
	over chan struct{}

	mu      sync.Mutex // guards what follows
	looks   int
	current int
	wrong   error
}

func readFolder(t testing.TB, dir string) *folderReader {
	r := &folderReader{dir: dir, stop: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(r.over)
		for !closed(r.stop) {
			current, err := r.look()
			r.mu.Lock()
			r.looks++
			if r.wrong = errors.Join(r.wrong, err); current < r.current {
				r.wrong = errors.Join(r.wrong, fmt.Errorf("current_wave went from %d back to %d", r.current, current))
			}
			r.current = max(r.current, current)
			enough := r.wrong != nil
			r.mu.Unlock()
			if enough {
				return
			}
		}
	}()
	t.Cleanup(func() { r.end() })
	return r
}

// end ends the reading and tells how often it looked and what was wrong.
func (r *folderReader) end() (looks int, wrong error) {
	r.mu.Lock()
	if !closed(r.stop) {
		close(r.stop)
	}
	r.mu.Unlock()
	<-r.over
	return r.looks, r.wrong
}

// level is the current_wave that was seen last.
func (r *folderReader) level() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

func (r *folderReader) look() (current int, err error) {
	state, err := r.read("state.json")
	if errors.Is(err, fs.ErrNotExist) && r.level() == 0 {
		return 0, nil // it has not begun
	}
	if err != nil {
		return 0, err
	}
	graph, err := r.read("graph.json")
	if err != nil || graph.Mark != state.Mark || graph.Graph != state.Graph {
		return 0, fmt.Errorf("graph.json: %w: %+v beside %+v", err, graph, state)
	}
	for level := 1; level < state.Current; level++ {
		done, err := r.read(filepath.Join("waves", itoa(level), "done.json"))
		if err != nil || done.Graph != state.Graph || done.Level != level || len(done.Tasks) == 0 {
			return 0, fmt.Errorf("done.json of level %d: %w: %+v", level, err, done)
		}
	}
	return state.Current, nil
}

func (r *folderReader) read(name string) (f checkpointFile, err error) {
	raw, err := os.ReadFile(filepath.Join(r.dir, name))
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	return f, err
}

// doneIn are the tasks of the levels that have their done.json.
func (r *folderReader) doneIn(t testing.TB) (tokens []string) {
	t.Helper()
	state, err := r.read("state.json")
	must(t, err)
	for level := 1; level < state.Current; level++ {
		done, err := r.read(filepath.Join("waves", itoa(level), "done.json"))
		must(t, err)
		for _, task := range done.Tasks {
			tokens = append(tokens, task.Task)
		}
	}
	return tokens
}

const checkpointLevels, checkpointWidth = 6, 3

// witnessed are tasks in levels that note the wave in which they run, and their name.
func witnessed(t testing.TB, ran string) (tasks []waveEntry) {
	t.Helper()
	var before []string
	for level := range checkpointLevels {
		var here []string
		for i := range checkpointWidth {
			id := fmt.Sprintf("t%d-%d", level+1, i)
			tasks, here = append(tasks, shTask(t, id, noting(ran, `"$WAVEHUB_WAVE_ID/`+id+`"`)+done+"fine", before...)), append(here, id)
		}
		before = here
	}
	return tasks
}

// ranIn are the tasks that ran in a wave, as often as they did.
func ranIn(t testing.TB, ran, wave string) (tokens []string) {
	t.Helper()
	if !exists(ran) {
		return nil
	}
	for line := range strings.Lines(read(t, ran)) {
		if token, ok := strings.CutPrefix(strings.TrimSpace(line), wave+"/"); ok {
			tokens = append(tokens, token)
		}
	}
	slices.Sort(tokens)
	return tokens
}

// TestAcceptance_V16_CheckpointsAreReadMidRun while the hub is killed: never torn. When
// the hub is gone, another one goes on from there without running again what is done.
func TestAcceptance_V16_CheckpointsAreReadMidRun(t *testing.T) {
	t.Parallel()
	kills := scaled(t, 3, 6, 12)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed: %d", seed)
	rng := rand.New(rand.NewPCG(seed, 16))
	h, other, dir := StartHub(t, "mac"), StartHub(t, "linux"), t.TempDir()
	run, ran := h.NewRun("checkpoints"), filepath.Join(dir, "ran")
	tasks := taskFile(t, witnessed(t, ran)...)
	w := run.newWave(t, "--order", "barrier", "--retry", "3", "--checkpoint-dir", dir, "--tasks", tasks) // a kill may cut a start
	folder := readFolder(t, filepath.Join(dir, w))
	get[api.WaveSnapshot](t, run.Caller, "wave", "spawn", w)
	for n := range kills {
		until := 1 + n*checkpointLevels*checkpointWidth*2/3/kills + rng.IntN(3)
		eventually(t, "tasks have run", waveLimit, func() bool { return len(ranIn(t, ran, w)) >= until })
		h.Restart()
	}
	eventually(t, "half of it is done", waveLimit, func() bool { return folder.level() > checkpointLevels/2 })
	h.Kill()
	kept := folder.doneIn(t)
	testRebuilt(t, other, filepath.Join(dir, w), tasks, ran, kept)

	h.Start()
	end := run.waveEnds(t, w, "completed")
	eventually(t, "the reader has seen the end", waveLimit, func() bool { return folder.level() > checkpointLevels })
	looks, wrong := folder.end()
	t.Logf("%d looks at the folder, %d kills", looks, kills+1)
	if wrong != nil || looks < 100 {
		t.Errorf("the folder: %d looks, %v", looks, wrong)
	}
	for _, task := range end.Tasks {
		if n := notedIn(t, ran, w+"/"+task.TaskId); n < 1 || n > task.Attempts {
			t.Errorf("%s ran %d times in %d attempts", task.TaskId, n, task.Attempts)
		}
	}
	testNothingLeft(t, other, ran, filepath.Join(dir, "rebuilt"), filepath.Join(dir, w))
}

// testRebuilt makes the wave anew on another hub, while its own is dead.
func testRebuilt(t *testing.T, h *Hub, dir, tasks, ran string, kept []string) {
	t.Helper()
	run := h.NewRun("rebuilt")
	made := get[api.WaveResult](t, run.Caller, "wave", "create", "--from-checkpoint", dir, "--tasks", tasks, "--id", "rebuilt", "--checkpoint-dir", filepath.Dir(dir), "--spawn")
	if !slices.ContainsFunc(made.Warnings, func(f api.PlanFinding) bool { return f.Code == "source_may_be_running" }) || made.Wave.Policy.Order != "barrier" {
		t.Errorf("created are %+v %+v", made.Wave, made.Warnings)
	}
	end := run.waveEnds(t, "rebuilt", "completed")
	var again []string
	for _, task := range end.Tasks {
		there := slices.Contains(kept, task.TaskId)
		if !there {
			again = append(again, task.TaskId)
		}
		if there != (task.Attempts == 0) || there != (orNone(task.Reason) == "checkpoint") {
			t.Errorf("%s, which the checkpoint has %v, is %+v", task.TaskId, there, task)
		}
	}
	if got := ranIn(t, ran, "rebuilt"); len(kept) < checkpointWidth*checkpointLevels/2 || !slices.Equal(got, again) {
		t.Errorf("%q were done, and then ran %q", kept, got)
	}
}

// testNothingLeft makes waves of folders of ones that have completed.
func testNothingLeft(t *testing.T, h *Hub, ran string, sources ...string) {
	t.Helper()
	run := h.NewRun("nothing left")
	for _, source := range sources {
		folderSays(t, source, "completed")
		w := run.newWave(t, "--from-checkpoint", source, "--spawn")
		end := run.waveEnds(t, w, "completed")
		if got := ranIn(t, ran, w); len(got) != 0 || end.Summary.Done != checkpointLevels*checkpointWidth {
			t.Errorf("%q ran again, %+v", got, end.Summary)
		}
	}
}

// folderSays waits until a wave's folder has its status.
func folderSays(t testing.TB, dir, status string) {
	t.Helper()
	eventually(t, "the folder says that it is "+status, waveLimit, func() bool {
		state, err := (&folderReader{dir: dir}).read("state.json")
		return err == nil && state.Status == status
	})
}

// TestCheckpoint_WhatCouldNotBeWrittenIsWrittenAfterARestart, also of a wave that had
// ended by then.
func TestCheckpoint_WhatCouldNotBeWrittenIsWrittenAfterARestart(t *testing.T) {
	t.Parallel()
	h, dir, g := StartHub(t, "mac"), t.TempDir(), newGate(t)
	run := h.NewRun("blocked")
	w := run.newWave(t, "--checkpoint-dir", dir, "--tasks", taskFile(t, shTask(t, "a", g.wait()+done+"fine")), "--spawn")
	state := filepath.Join(dir, w, "state.json")
	folderSays(t, filepath.Dir(state), "running")
	must(t, os.Remove(state))
	must(t, os.MkdirAll(filepath.Join(state, "in the way"), 0o700))
	g.open(t, 1)
	run.waveEnds(t, w, "completed")
	eventually(t, "the log says so", waveLimit, func() bool {
		return strings.Contains(run.CLI("events", "--wave", w).Stdout, "checkpoint_failed")
	})
	h.Kill()
	must(t, os.RemoveAll(state))
	h.Start()
	folderSays(t, filepath.Dir(state), "completed")
}
