package wave

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
)

// diskFiles is the Files of this host. Others may read what it writes, as far as the
// folder lets them.
type diskFiles struct{}

func (diskFiles) Settle(dir string) error { return safefile.Settle(dir) }

func (diskFiles) Read(path string, limit int64) ([]byte, error) {
	return safefile.ReadRegular(path, limit)
}

func (diskFiles) Write(path string, data []byte) error {
	if err := safefile.MakeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	return safefile.WriteAtomic(path, data, 0o644)
}

func (diskFiles) Rename(from, to string) error { return safefile.Move(from, to) }

func (diskFiles) Remove(path string) error { return safefile.Remove(path) }

// checkFolder refuses the checkpoint folder of a wave that is about to be made: one
// that is not absolute or cannot be written, or where a wave of that name has files
// already; none has the name that is still to be minted, "". It leaves nothing behind.
// A request that is replayed is not to ask it: the files are the wave's own by then.
func checkFolder(dir string, id hub.WaveID) error {
	if !filepath.IsAbs(dir) {
		return hub.Invalid("checkpoint_dir", "must be absolute")
	}
	if id == "" {
		return tryFolder(dir)
	}
	folder := waveFolder(dir, id)
	for _, name := range []string{graphName, stateName, markerName, levelsName} {
		_, err := os.Lstat(filepath.Join(folder, name))
		switch {
		case err == nil:
			e := hub.Invalid("checkpoint_dir", "%s has the files of another wave of that name", folder)
			e.Hint = "name another folder or another wave; --from-checkpoint continues what is there"
			return e
		case !errors.Is(err, fs.ErrNotExist):
			return unwritable(err)
		}
	}
	return tryFolder(folder)
}

// tryFolder writes a file into a folder, and takes it and what was made for it back.
func tryFolder(folder string) error {
	made := missingFolders(folder)
	probe := filepath.Join(folder, "probe")
	err := diskFiles{}.Write(probe, nil)
	if err == nil {
		err = diskFiles{}.Remove(probe)
	}
	for _, dir := range made {
		if gone := os.Remove(dir); gone != nil && !errors.Is(gone, fs.ErrNotExist) && !errors.Is(gone, fs.ErrExist) { // not empty: in use by now
			err = errors.Join(err, gone)
		}
	}
	return unwritable(err)
}

// missingFolders are the folders on the way to one that are not there, the deepest first.
func missingFolders(dir string) []string {
	var out []string
	for parent := filepath.Dir(dir); dir != parent; dir, parent = parent, filepath.Dir(parent) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		out = append(out, dir)
	}
	return out
}

func unwritable(err error) error {
	if err == nil {
		return nil
	}
	e := hub.Invalid("checkpoint_dir", "checkpoints cannot be written there")
	e.Hint, e.Err = "name a folder on the hub's host in which the hub may make files", err
	return e
}
