package safefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// tempPrefix begins the names of files that are not whole yet.
const tempPrefix = ".tmp-"

// WriteAtomic replaces path by a file with the data and exactly the mode. The
// data is on the disk before the name changes and the name before WriteAtomic
// returns: a crash leaves the former file or the new one, whole. A symlink at
// path is replaced, not followed. On failure the former file is untouched.
func WriteAtomic(path string, data []byte, mode fs.FileMode) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+rand.Text())
	if err := writeNew(temp, data, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := replace(temp, path); err != nil {
		return errors.Join(fmt.Errorf("replacing %s: %w", path, err), os.Remove(temp))
	}
	return SyncDir(filepath.Dir(path))
}

// CreateExclusive makes a new file with the data and exactly the mode, and
// fails with fs.ErrExist when there is anything at path, a dangling link
// included. When it returns nil, file and name are on the disk. A crash before
// that may leave the file short; an error leaves no file of ours.
func CreateExclusive(path string, data []byte, mode fs.FileMode) error {
	if err := writeNew(path, data, mode); err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

func writeNew(path string, data []byte, mode fs.FileMode) error {
	f, err := createNew(path, mode)
	if err != nil {
		return err
	}
	if err := fill(f, data); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func fill(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
