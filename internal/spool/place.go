package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
)

const (
	filePrefix, fileSuffix = "spool-", ".jsonl"
	lockSuffix             = ".lock"
	markFolder             = "spooled"
	rejectedFolder         = "rejected"
)

// Place is where the spool of one Dispatch lies. Root holds the terminals'
// private folders.
type Place struct {
	Root     string
	Terminal hub.TerminalID
	Dispatch hub.DispatchID
}

// File is the path of the spool, in the folder of the capability.
func (p Place) File() string {
	return filepath.Join(p.folder(), filePrefix+string(p.Dispatch)+fileSuffix)
}

func (p Place) folder() string { return filepath.Join(p.Root, string(p.Terminal)) }

// PlaceOf is the place whose File is path.
func PlaceOf(path string) (Place, error) {
	folder := filepath.Dir(path)
	id, begins := strings.CutPrefix(filepath.Base(path), filePrefix)
	id, ends := strings.CutSuffix(id, fileSuffix)
	p := Place{Root: filepath.Dir(folder), Terminal: hub.TerminalID(filepath.Base(folder)), Dispatch: hub.DispatchID(id)}
	known := hub.ValidID(hub.PrefixTerminal, string(p.Terminal)) && hub.ValidID(hub.PrefixDispatch, id)
	if !begins || !ends || !known || !filepath.IsAbs(path) {
		return Place{}, fmt.Errorf("%s is no path of a spool", path)
	}
	return p, nil
}

// Waits reports whether the Dispatch may have a spool to be drained. It costs
// one look at one name, so that it can be asked before each message.
func Waits(root string, id hub.DispatchID) (bool, error) {
	_, err := os.Lstat(mark(root, id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Waiting are the Dispatches that may have a spool to be drained: one reading of
// one folder, however many Dispatches there are.
func Waiting(root string) ([]hub.DispatchID, error) {
	entries, err := os.ReadDir(filepath.Join(root, markFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []hub.DispatchID
	for _, e := range entries {
		if hub.ValidID(hub.PrefixDispatch, e.Name()) {
			ids = append(ids, hub.DispatchID(e.Name()))
		}
	}
	return ids, err
}

func mark(root string, id hub.DispatchID) string {
	return filepath.Join(root, markFolder, string(id))
}

// raise marks the Dispatch for Waiting, on the disk before the spool has a line.
func (p Place) raise() error {
	if err := safefile.PrivateDir(filepath.Join(p.Root, markFolder)); err != nil {
		return err
	}
	return safefile.WriteAtomic(mark(p.Root, p.Dispatch), nil, 0o600)
}

// clear removes an empty spool; its mark goes last, so that a crash leaves a mark
// too many and never one too few.
func (p Place) clear() error {
	switch err := os.Remove(p.File()); {
	case err == nil:
		if err := safefile.SyncDir(p.folder()); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("removing the drained spool: %w", err)
	}
	if err := os.Remove(mark(p.Root, p.Dispatch)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the mark of a drained spool: %w", err)
	}
	return nil
}
