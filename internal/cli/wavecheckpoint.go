package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/wavehub/wavehub/client"
)

// The files of a checkpoint folder.
const (
	checkpointGraph     = "graph.json"
	checkpointState     = "state.json"
	checkpointLevels    = "waves"
	checkpointDone      = "done.json"
	checkpointExhausted = "MAX_ITERATIONS_REACHED"
)

// readCheckpoint reads the files of a wave's checkpoint folder as they are; the hub
// judges them. The folder above will do where it holds those of one wave.
func readCheckpoint(dir string) (*client.WaveCheckpoint, error) {
	dir, err := checkpointOf(dir)
	if err != nil {
		return nil, err
	}
	r := &checkpointReader{dir: dir, left: maxTasks}
	out := &client.WaveCheckpoint{Graph: r.need(checkpointGraph), State: r.text(checkpointState), Done: map[string]string{}}
	for _, level := range r.levels() {
		if text, ok := r.read(filepath.Join(checkpointLevels, level, checkpointDone)); ok {
			out.Done[level] = text
		}
	}
	_, out.Exhausted = r.read(checkpointExhausted)
	if r.err != nil {
		return nil, usage("from-checkpoint", "--from-checkpoint: %v", r.err)
	}
	return out, nil
}

// checkpointOf is the folder of the one wave that dir is or holds.
func checkpointOf(dir string) (string, error) {
	if exists(filepath.Join(dir, checkpointGraph)) {
		return dir, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", usage("from-checkpoint", "--from-checkpoint: %v", err)
	}
	var found []string
	for _, e := range entries {
		if below := filepath.Join(dir, e.Name()); exists(filepath.Join(below, checkpointGraph)) {
			found = append(found, below)
		}
	}
	switch len(found) {
	case 0:
		return "", usage("from-checkpoint", "--from-checkpoint: there is no %s in %s", checkpointGraph, dir)
	case 1:
		return found[0], nil
	}
	return "", usage("from-checkpoint", "--from-checkpoint: %s holds those of %d waves; name one, such as %s", dir, len(found), found[0])
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkpointReader reads files of one folder until the first failure; left bounds
// all of them together, in bytes.
type checkpointReader struct {
	dir  string
	left int
	err  error
}

// read is the text of a file; false where there is none.
func (r *checkpointReader) read(name string) (text string, ok bool) {
	if r.err != nil {
		return "", false
	}
	raw, err := readFile(filepath.Join(r.dir, name), r.left)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	if err != nil {
		r.err = err
		return "", false
	}
	r.left -= len(raw)
	return string(raw), true
}

func (r *checkpointReader) text(name string) string {
	text, _ := r.read(name)
	return text
}

func (r *checkpointReader) need(name string) string {
	text, ok := r.read(name)
	if !ok && r.err == nil {
		r.err = &fs.PathError{Op: "open", Path: filepath.Join(r.dir, name), Err: fs.ErrNotExist}
	}
	return text
}

// levels are the names of the folders of levels: whole numbers from 1.
func (r *checkpointReader) levels() []string {
	entries, err := os.ReadDir(filepath.Join(r.dir, checkpointLevels))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && r.err == nil {
		r.err = err
	}
	var names []string
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && strconv.Itoa(n) == e.Name() {
			names = append(names, e.Name())
		}
	}
	return names
}
