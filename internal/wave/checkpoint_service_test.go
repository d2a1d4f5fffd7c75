package wave

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// oneWave is a store of which a checkpoint reads one wave.
type oneWave struct {
	store.Store
	store.Rx
	orders   []hub.WaveOrder
	attempts []hub.Dispatch // the newest first
	views    int
	err      error
}

func (s *oneWave) View(_ context.Context, fn func(store.Rx) error) error {
	s.views++
	return fn(s)
}

func (s *oneWave) WaveOrders(hub.WaveID) ([]hub.WaveOrder, error) { return s.orders, s.err }

func (s *oneWave) DispatchList(f store.DispatchFilter, p store.Page) ([]hub.Dispatch, int64, error) {
	if f.Task == "" || p.Limit < len(s.attempts) {
		return nil, 0, errors.New("not the attempts of one task")
	}
	return s.attempts, 0, s.err
}

func checkpointService(x *checkpointWorld) (*Service, *oneWave, *memoryFiles) {
	s, m := &oneWave{orders: x.orders}, newMemory()
	return &Service{Config: Config{Store: s, Files: m}}, s, m
}

func TestCheckpointTellsHowFarItIsDone(t *testing.T) {
	x := finishedWave()
	x.wave.Status = hub.WaveRunning
	s, st, m := checkpointService(x)
	through, err := s.checkpoint(t.Context(), x.wave, x.rows)
	if err != nil || through != 3 {
		t.Fatalf("done through %d, %v", through, err)
	}
	mustHold(t, m.below(waveFolder(x.wave.CheckpointDir, x.wave.ID)), x.files())
	if _, err := s.checkpoint(t.Context(), x.wave, x.rows); err != nil || st.views != 1 {
		t.Errorf("the orders are read %d times, %v", st.views, err)
	}
}

// TestCheckpointFailsAndIsRetried: what is not on the disk does not count, and what
// is counts after an error too.
func TestCheckpointFailsAndIsRetried(t *testing.T) {
	x := finishedWave()
	s, st, m := checkpointService(x)
	st.err = errors.New("no store")
	if _, err := s.checkpoint(t.Context(), x.wave, x.rows); !errors.Is(err, st.err) {
		t.Fatalf("got %v", err)
	}
	st.err = nil
	for left, want := range []int{0, 0, 1, 2, 3} {
		m.files, m.left = map[string][]byte{}, left
		s.checkpoints = checkpoints{}
		through, err := s.checkpoint(t.Context(), x.wave, x.rows)
		if !errors.Is(err, errKilled) || through != want {
			t.Errorf("after %d changes: done through %d, want %d; %v", left, through, want, err)
		}
		if !strings.Contains(err.Error(), ".json") {
			t.Errorf("the error does not name the file: %v", err)
		}
	}
	m.left = -1
	if through, err := s.checkpoint(t.Context(), x.wave, x.rows); err != nil || through != 3 {
		t.Errorf("done through %d, %v", through, err)
	}
	if len(s.checkpoints.kept) != 0 {
		t.Error("a wave that has ended is remembered")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.checkpoint(ctx, x.wave, x.rows); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
}

// TestDueRetryIsNoFailure: a task of which another attempt is due has not failed
// yet, which the attempts of this iteration decide.
func TestDueRetryIsNoFailure(t *testing.T) {
	old, counted := hub.Dispatch{ID: "dispatch_old", State: hub.Failed}, hub.Dispatch{ID: "dispatch_2", State: hub.Failed, Reason: "exit"}
	pooled := hub.Dispatch{ID: "dispatch_3", State: hub.Failed, Reason: string(hub.ErrorRateLimited)}
	for name, c := range map[string]struct {
		attempts []hub.Dispatch
		failed   bool
	}{
		"the first":           {[]hub.Dispatch{{ID: "dispatch_1", State: hub.Failed}, old, old}, false},
		"one and a closed":    {[]hub.Dispatch{{ID: "dispatch_1", State: hub.Failed}, pooled, old}, false},
		"one and a stopped":   {[]hub.Dispatch{{ID: "dispatch_1", State: hub.Failed}, {ID: "dispatch_2", State: hub.Stopped}, old}, false},
		"as many as may fail": {[]hub.Dispatch{{ID: "dispatch_1", State: hub.Failed}, counted, old, old}, true},
	} {
		x := finishedWave()
		x.wave.Status, x.wave.Policy.Retry = hub.WaveRunning, 1
		r := &x.rows[3]
		r.State, r.Base, r.Dispatch = hub.TaskFailed, old.ID, &c.attempts[0]
		s, st, m := checkpointService(x)
		st.attempts = c.attempts
		for range 2 {
			if through, err := s.checkpoint(t.Context(), x.wave, x.rows); err != nil || through != 2 {
				t.Fatalf("%s: done through %d, %v", name, through, err)
			}
		}
		_, failed := m.below(waveFolder(x.wave.CheckpointDir, x.wave.ID))[failuresName(3)]
		if failed != c.failed || st.views != 2 {
			t.Errorf("%s: failed is %v, %d readings", name, failed, st.views)
		}
	}
}

// largeWave is a wave of n tasks in levels of 100, half of which are done.
func largeWave(n int) *checkpointWorld {
	x := newCheckpointWorld(1, 0)
	for i := range n {
		r := hub.WaveRow{State: hub.TaskReady}
		r.Index, r.Level, r.Task, r.Iteration = i, i/100+1, hub.TaskID(fmt.Sprintf("task_%024d", i)), 1
		r.Entry = hub.WaveEntry{
			Token: fmt.Sprintf("token-%d", i), Goal: strings.Repeat("what is to be done ", 10), Start: &hub.WaveStart{Agent: "codex", Repo: "demo"},
			WriteScope: []string{fmt.Sprintf("src/%d", i), "docs"}, VerifyCmd: "make test",
		}
		for j := i - 100; j >= 0 && j > i-103; j-- {
			r.Entry.Dependencies = append(r.Entry.Dependencies, fmt.Sprintf("token-%d", j))
		}
		x.rows = append(x.rows, r)
		if x.standings[r.Entry.Token] = (standing{status: hub.WavePending}); i < n/2 {
			x.complete(&x.rows[i])
		}
	}
	return x
}

// BenchmarkCheckpoint: one more task of 10 000 is completed.
func BenchmarkCheckpoint(b *testing.B) {
	x := largeWave(10_000)
	s, _, _ := checkpointService(x)
	next := len(x.rows) / 2
	for b.Loop() {
		if next < len(x.rows)-1 {
			x.complete(&x.rows[next])
			next++
		}
		if _, err := s.checkpoint(b.Context(), x.wave, x.rows); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadCheckpoint: 20 000 tasks, half of them done.
func BenchmarkReadCheckpoint(b *testing.B) {
	c := contents(largeWave(hub.MaxWaveTasks).files())
	text := Checkpoint{Graph: string(c[graphName]), State: string(c[stateName]), Done: map[int]string{}}
	for level := 1; c[doneName(level)] != nil; level++ {
		text.Done[level] = string(c[doneName(level)])
	}
	for b.Loop() {
		if r, err := readCheckpoint(text, true); err != nil || len(r.Done) != hub.MaxWaveTasks/2 {
			b.Fatal(len(r.Done), err)
		}
	}
}
