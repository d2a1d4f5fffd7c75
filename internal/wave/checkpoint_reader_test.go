package wave

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// readFolder reads a folder as any program does: one file after the other.
func readFolder(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	read := func(name string) error {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files[name] = data
		return err
	}
	if err := errors.Join(read(stateName), read(graphName), read(markerName)); err != nil {
		return nil, err
	}
	levels, err := os.ReadDir(filepath.Join(dir, levelsName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, l := range levels {
		err = errors.Join(err, read(levelsName+"/"+l.Name()+"/done.json"), read(levelsName+"/"+l.Name()+"/failures.json"))
	}
	return files, err
}

// TestReadersAtAnyInstant: while a thousand changes are written, every file is
// whole whenever it is read, what is read can be restored from, and where state.json
// and graph.json have not changed meanwhile it is one story.
func TestReadersAtAnyInstant(t *testing.T) {
	dir := t.TempDir()
	var ended atomic.Bool
	done := make(chan error, 1)
	go func() {
		defer ended.Store(true)
		done <- writeChanges(dir, 300)
	}()
	readings, stories := 0, 0
	for !ended.Load() || stories == 0 {
		files, err := readFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		readings++
		if mustBeWhole(t, files); files[graphName] == nil {
			continue
		}
		after, err := readFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(files[stateName], after[stateName]) && bytes.Equal(files[graphName], after[graphName]) {
			mustBeStory(t, files)
			stories++
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d readings, %d of them of one state", readings, stories)
}

// writeChanges writes the changes of one wave after the other, each into a folder
// that is begun anew.
func writeChanges(dir string, n int) error {
	var p *projector
	var x *checkpointWorld
	for i := range n {
		if i%40 == 0 {
			x = newCheckpointWorld(uint64(i), 10)
			p = newProjector(diskFiles{}, dir)
			p.claimed = true // one wave's folder goes to the next
		}
		x.change()
		if _, err := p.keep(context.Background(), x.files()); err != nil {
			return err
		}
	}
	return nil
}

func mustBeWhole(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		var head fileHead
		if err := json.Unmarshal(data, &head); err != nil || head.Format != checkpointFormat {
			t.Fatalf("%s is torn: %v, %q", name, err, data)
		}
	}
	if files[graphName] == nil {
		return
	}
	if _, err := readCheckpoint(collected(files), false); err != nil {
		t.Fatal(err)
	}
}
