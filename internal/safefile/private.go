package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// PrivateDir makes sure that path is a folder that only we can write: it
// creates it with mode 0700, and missing parents likewise, or checks the one
// that is there. A symlink, another owner, or a folder that others can write
// is refused with an *UnsafeError (errors.Is ErrUnsafe); nothing is repaired.
func PrivateDir(path string) error {
	err := checkDir(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("creating the parent of %s: %w", path, err)
	}
	if err := mkdirPrivate(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	if err := SyncDir(parent); err != nil {
		return err
	}
	return checkDir(path)
}

// ReadPrivate returns the content of a file that only we can have written and
// only we can read. Links, other kinds of files, other owners and open modes
// are refused with an *UnsafeError, files above limit bytes with ErrTooLarge,
// a missing file with fs.ErrNotExist. The checks are made on the opened file.
func ReadPrivate(path string, limit int64) ([]byte, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return nil, err
	}
	data, err := readChecked(f, path, limit)
	return data, errors.Join(err, f.Close())
}

func readChecked(f *os.File, path string, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkFile(f, info, path); err != nil {
		return nil, err
	}
	return readBounded(f, path, limit)
}

// readBounded reads a regular file.
func readBounded(f *os.File, path string, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &UnsafeError{path, "is not a regular file", "replace it by a regular file"}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, limit, ErrTooLarge)
	}
	return data, nil
}

func checkDir(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return &UnsafeError{path, "is a symbolic link", "name the real folder"}
	}
	if !info.IsDir() {
		return &UnsafeError{path, "is not a folder", "move it away or name another folder"}
	}
	return checkDirOwner(path, info)
}
