package keystore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

const maxFile = 64 << 10

// writeNew creates the file with mode 0600 and syncs it and its folder; it
// never replaces one.
func writeNew(dir, name string, content []byte) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// syncDir makes new names durable; Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return nil
}

// readPrivate reads a regular file that is its owner's alone.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("looking at %s: %w", path, err)
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s may be opened by others (mode %04o): chmod 600 it", path, info.Mode().Perm())
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s is too large", path)
	}
	return os.ReadFile(path)
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// unfinished ends the name of a file that is to replace another.
const unfinished = ".next"

// replaceFile replaces dir/name: the content is on disk before the name changes,
// and the name before it returns. A crash leaves the former content or the new
// one, whole. at is told of each file operation before it; it may be nil.
func replaceFile(dir, name string, content []byte, at func(op string)) error {
	if at == nil {
		at = func(string) {}
	}
	next := filepath.Join(dir, name+unfinished)
	at("remove " + name)
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an unfinished %s: %w", name, err)
	}
	at("write " + name)
	if err := writeNew(dir, name+unfinished, content); err != nil {
		return err
	}
	at("rename " + name)
	if err := os.Rename(next, filepath.Join(dir, name)); err != nil {
		return errors.Join(fmt.Errorf("replacing %s: %w", name, err), os.Remove(next))
	}
	at("sync " + name)
	return syncDir(dir)
}

// removeUnfinished removes what was to replace the files of an identity and
// never did.
func removeUnfinished(dir string) error {
	for _, name := range []string{keyFile, certFile} {
		if err := os.Remove(filepath.Join(dir, name+unfinished)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an unfinished %s: %w", name, err)
		}
	}
	return nil
}
