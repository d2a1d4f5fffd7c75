package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// entriesDir, in the common git directory, holds one folder per linked worktree.
const entriesDir = "worktrees"

// maxEntryFile bounds what is read of a file of an entry.
const maxEntryFile = 64 << 10

// entry is git's record of one linked worktree.
type entry struct {
	name string // of the folder in entriesDir
	dir  string // the worktree's own git directory
}

// findEntries returns git's records of a worktree: those that are locked with
// its id, or that point to its folder. It needs no git, so that it also works
// when git was killed half-way. A file of one that cannot be read is an error: it
// could say anything.
func findEntries(common string, id hub.WorktreeID, path string) ([]entry, error) {
	dirs, err := os.ReadDir(filepath.Join(common, entriesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []entry
	for _, d := range dirs {
		e := entry{name: d.Name(), dir: filepath.Join(common, entriesDir, d.Name())}
		ours, err := e.isOf(id, path)
		if err != nil {
			return nil, err
		}
		if d.IsDir() && ours {
			found = append(found, e)
		}
	}
	return found, nil
}

func (e entry) isOf(id hub.WorktreeID, path string) (bool, error) {
	locked, err := e.says("locked", string(id))
	if err != nil || locked {
		return locked, err
	}
	return e.says("gitdir", filepath.ToSlash(filepath.Join(path, ".git")))
}

// says reports whether a file of the entry holds the text.
func (e entry) says(file, text string) (bool, error) {
	info, err := os.Stat(filepath.Join(e.dir, file))
	if missing(err) || err == nil && (!info.Mode().IsRegular() || info.Size() > maxEntryFile) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	raw, err := os.ReadFile(filepath.Join(e.dir, file))
	if missing(err) {
		return false, nil
	}
	return strings.TrimSpace(string(raw)) == text, err
}

// missing reports whether there is nothing at a path, also because a part of it
// is no folder.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, notFolder)
}

// removeEntries deletes git's records of the worktree and nothing through links.
func removeEntries(common string, id hub.WorktreeID, path string) error {
	found, err := findEntries(common, id, path)
	if err != nil || len(found) == 0 {
		return err
	}
	root, err := os.OpenRoot(common)
	if err != nil {
		return err
	}
	errs := []error{nil}
	for _, e := range found {
		errs = append(errs, root.RemoveAll(filepath.Join(entriesDir, e.name)))
	}
	return errors.Join(append(errs, root.Close())...)
}
