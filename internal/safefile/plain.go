package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Files and folders that need not be private. What returns nil here is on the disk.

// MakeDirs makes a folder and its missing parents, which others may read.
func MakeDirs(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a folder", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if err := MakeDirs(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := SyncDir(parent); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Settle makes the names in a folder, and its own, durable and removes what cut
// calls of WriteAtomic left there; nobody else may be writing in it. A folder that
// is not there is settled.
func Settle(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for what was left: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("removing what was left: %w", err)
			}
		}
	}
	return errors.Join(SyncDir(dir), SyncDir(filepath.Dir(dir)))
}

// Move renames a file within its folder, in the place of one that is there.
func Move(from, to string) error {
	if err := replace(from, to); err != nil {
		return fmt.Errorf("renaming %s: %w", from, err)
	}
	return SyncDir(filepath.Dir(to))
}

// Remove removes a file, if it is there.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// ReadRegular returns the content of a regular file, whoever may read or write
// it. Links and other kinds of files are refused with an *UnsafeError, files above
// limit bytes with ErrTooLarge, a missing file with fs.ErrNotExist.
func ReadRegular(path string, limit int64) ([]byte, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return nil, err
	}
	data, err := readBounded(f, path, limit)
	return data, errors.Join(err, f.Close())
}
