package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrUncertain says that an Append failed and could not be taken back: what it
// wrote may be there.
var ErrUncertain = errors.New("what was written may be there")

// Append writes data behind the first keep bytes of a private file and cuts off
// whatever else lies there; a missing file is made with mode 0600. When it
// returns nil, data and name are on the disk. A crash before that leaves any
// part of data behind keep. After an error the file has keep bytes again, but
// for one that matches ErrUncertain. Links, other kinds of files, other owners
// and open modes are refused with an *UnsafeError. Callers that append to one
// file at the same time need a lock of their own.
func Append(path string, keep int64, data []byte) error {
	f, err := openToAppend(path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	if err := checkAppended(f, path, keep); err != nil {
		return errors.Join(err, f.Close())
	}
	err = appendTo(f, keep, data)
	if err != nil {
		err = errors.Join(err, takeBack(f, keep))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// openToAppend opens the file, or makes it: then its name is on the disk.
func openToAppend(path string) (*os.File, error) {
	f, err := openNoFollowRW(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f, err = createNew(path, 0o600); err != nil {
		return nil, err
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkAppended(f *os.File, path string, keep int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &UnsafeError{path, "is not a regular file", "replace it by a regular file"}
	}
	if info.Size() < keep {
		return fmt.Errorf("%s has %d bytes only, less than %d", path, info.Size(), keep)
	}
	return checkFile(f, info, path)
}

func appendTo(f *os.File, keep int64, data []byte) error {
	if err := f.Truncate(keep); err != nil {
		return err
	}
	if _, err := f.WriteAt(data, keep); err != nil {
		return err
	}
	return f.Sync()
}

// takeBack makes an Append that failed one that has written nothing.
func takeBack(f *os.File, keep int64) error {
	err := f.Truncate(keep)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(ErrUncertain, err)
	}
	return nil
}
