package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/wavehub/wavehub/internal/safefile"
)

// Limits of one spool: its lines, their bytes in all, and one line's, which a
// terminal report may have beyond both.
const (
	MaxLines = 1000
	MaxBytes = 8 << 20
	MaxLine  = 2 << 20
)

// ErrFull is what every refusal for lack of room matches with errors.Is.
var ErrFull = errors.New("the spool has no room for it")

// Pending reports whether something lies in the spool. It takes no lock: what it
// says may have changed.
func Pending(p Place) (bool, error) {
	info, err := os.Lstat(p.File())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() > 0, err
}

// Append adds the line behind all others. When it returns nil, the line is on the
// disk and its Dispatch is among Waiting. After an error nothing was added, but
// for one that matches safefile.ErrUncertain. ctx bounds the wait for the lock.
func Append(ctx context.Context, p Place, token string, l Line) error {
	_, err := add(ctx, p, token, l, false)
	return err
}

// AppendBehind is Append if there are lines already; false says that there are
// none any more and that nothing was added.
func AppendBehind(ctx context.Context, p Place, token string, l Line) (bool, error) {
	return add(ctx, p, token, l, true)
}

func add(ctx context.Context, p Place, token string, l Line, behind bool) (bool, error) {
	raw, err := l.encode(token)
	if err != nil {
		return false, err
	}
	lock, err := p.lock(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Close() }() // whatever Close says, the lock ends with this process
	old, err := p.read()
	if err != nil {
		return false, err
	}
	there := whole(old)
	if behind && len(there) == 0 {
		return false, nil
	}
	if err := room(there, len(raw), l.final()); err != nil {
		return false, err
	}
	if len(old) == 0 {
		if err := p.raise(); err != nil {
			return false, err
		}
	}
	return true, safefile.Append(p.File(), int64(len(there)), raw)
}

// read is what lies in the spool, nothing where there is none.
func (p Place) read() ([]byte, error) {
	raw, err := safefile.ReadPrivate(p.File(), MaxBytes+MaxLine)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// whole is raw without a last line that a crash has torn.
func whole(raw []byte) []byte { return raw[:bytes.LastIndexByte(raw, '\n')+1] }

// room refuses a line of size bytes behind those that are there, unless it is the
// one terminal report.
func room(there []byte, size int, final bool) error {
	lines := bytes.Count(there, []byte("\n"))
	if lines < MaxLines && len(there)+size <= MaxBytes {
		return nil
	}
	if final && !holdsFinal(there) {
		return nil
	}
	return fmt.Errorf("%d lines (%d bytes) wait there: %w", lines, len(there), ErrFull)
}

func holdsFinal(there []byte) bool {
	for _, e := range split(there) {
		if e.Err == nil && e.Line.final() {
			return true
		}
	}
	return false
}
