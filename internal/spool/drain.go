package spool

import (
	"bytes"
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/safefile"
)

// Entry is one line as it was found. Err says why it cannot be read: then Line is
// empty. Raw is the line without its line feed; it is empty for an Err about the
// whole file.
type Entry struct {
	Raw  []byte
	Line Line
	Err  error
	read record
}

// ProvenBy reports whether the entry was written by somebody who has the token.
func (e Entry) ProvenBy(token string) bool {
	return e.Err == nil && hmac.Equal([]byte(e.read.MAC), []byte(e.read.mac(token)))
}

// Drain hands the lines to take, in their order and under the lock, and removes
// those that it returned nil for. It stops at the first error and returns it; that
// line and all behind it stay. A crash in between removes nothing. A file that is
// too large or not private is handed over as one entry with an Err and then set
// aside. ctx bounds the wait for the lock.
func Drain(ctx context.Context, p Place, take func(Entry) error) (err error) {
	lock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	raw, err := p.read()
	if errors.Is(err, safefile.ErrTooLarge) || errors.Is(err, safefile.ErrUnsafe) {
		return p.setAside(take, err)
	}
	if err != nil {
		return err
	}
	taken := 0
	for _, e := range split(raw) {
		if err = take(e); err != nil {
			break
		}
		taken += len(e.Raw) + 1
	}
	return errors.Join(err, p.cut(whole(raw), taken))
}

// split is the whole lines; a torn last one is ignored.
func split(raw []byte) []Entry {
	var out []Entry
	for line := range bytes.Lines(whole(raw)) {
		e := Entry{Raw: bytes.TrimSuffix(line, []byte("\n"))}
		e.read, e.Err = decode(e.Raw)
		e.Line = e.read.line()
		out = append(out, e)
	}
	return out
}

// cut removes what was taken from the front: the spool is replaced as a whole.
func (p Place) cut(there []byte, taken int) error {
	switch {
	case taken == len(there):
		return p.clear()
	case taken == 0:
		return nil
	}
	return safefile.WriteAtomic(p.File(), there[taken:], 0o600)
}

// setAside takes a spool that cannot be read out of the way, in the place of one
// that was set aside before.
func (p Place) setAside(take func(Entry) error, cause error) error {
	if err := take(Entry{Err: cause}); err != nil {
		return err
	}
	folder := filepath.Join(p.folder(), rejectedFolder)
	if err := safefile.PrivateDir(folder); err != nil {
		return err
	}
	target := filepath.Join(folder, string(p.Dispatch)+"-whole")
	if err := os.RemoveAll(target); err != nil {
		return fmt.Errorf("removing a spool that was set aside: %w", err)
	}
	if err := os.Rename(p.File(), target); err != nil {
		return fmt.Errorf("setting a spool aside: %w", err)
	}
	if err := safefile.SyncDir(folder); err != nil {
		return err
	}
	return p.clear()
}
