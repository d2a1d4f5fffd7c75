package wave

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// filed is a world whose wave w1 has a folder, ran and was cancelled; nothing of that
// is in the folder yet.
func filed(t *testing.T) (*world, *memoryFiles) {
	t.Helper()
	w, m := newWorld(t), newMemory()
	w.Service.Files = m
	in := w.input("w1", entry("a"))
	in.Plan.Policy.MaxIterations = 1
	w.spawned(in)
	w.update(func(tx store.Tx) error {
		v, err := tx.Wave("w1")
		v.CheckpointDir, v.Status, v.Ending = "/c", hub.WaveCancelled, &hub.WaveEnding{As: hub.WaveCancelled, Reason: hub.EndCancelled}
		return errors.Join(err, tx.SaveWave(v))
	})
	return w, m
}

// comesUp is what the engine of a hub does when it begins, until it is done.
func (w *world) comesUp() {
	w.Helper()
	var loops sync.WaitGroup
	if err := w.begin(w.Context(), &loops, true); err != nil {
		w.Fatal(err)
	}
	loops.Wait()
}

func state(t *testing.T, m *memoryFiles) (s stateFile) {
	t.Helper()
	if err := json.Unmarshal(m.files["/c/w1/"+stateName], &s); err != nil {
		t.Fatalf("state.json: %v", err)
	}
	return s
}

// A hub that ended between the end of a wave and its last checkpoint writes it when
// it comes up, and then no more.
func TestTheLastCheckpointIsWrittenByTheNextHub(t *testing.T) {
	w, m := filed(t)
	w.comesUp()
	if got := state(t, m).Status; got != hub.WaveCancelled {
		t.Errorf("state.json says %s", got)
	}
	m.files = map[string][]byte{}
	w.comesUp()
	if len(m.files) > 0 {
		t.Error("a folder that shows the end of its wave is written again")
	}
}

// Who asks for an iteration beyond the limit finds the marker in the folder.
func TestTheMarkerIsWrittenWhenNoIterationIsLeft(t *testing.T) {
	w, m := filed(t)
	w.comesUp()
	_, err := w.Retry(t.Context(), w.request("wave_retry", 1), "w1", RetryInput{})
	refused(t, hub.CodeMaxIterationsReached, err)
	var loops sync.WaitGroup
	w.told(t.Context(), &loops, hub.TopicWave, []string{"w1"})
	loops.Wait()
	if m.files["/c/w1/"+markerName] == nil {
		t.Error("there is no marker")
	}
}

// That a checkpoint failed is told once, and not lost when the store has no room.
func TestAFailedCheckpointIsToldOnce(t *testing.T) {
	w, m := filed(t)
	m.left = 0
	l := newLoop(w.Service, "w1")
	if err := l.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.store.failing(func(int) error { return hub.Errorf(hub.CodeStorageFull, "no room") })
	refused(t, hub.CodeStorageFull, l.file(t.Context()))
	w.store.failing(nil)
	for range 3 {
		l.files.retryAt = 0
		if err := l.file(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	w.view(func(rx store.Rx) error {
		es, err := rx.Events(store.EventFilter{Wave: "w1"}, 0, 100)
		for _, e := range es {
			if e.Type == hub.EventWarning {
				told++
			}
		}
		return err
	})
	if told != 1 {
		t.Errorf("it is told %d times", told)
	}
}
