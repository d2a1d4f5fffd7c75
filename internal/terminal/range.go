package terminal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxRange bounds one Output, in bytes.
const maxRange = 8 << 20

// Output returns at most maxBytes, and never more than 8 MiB, of the terminal's
// output from an offset on, also after the process has ended and without a
// supervisor. It returns less where less is there and does not wait.
func (m *Manager) Output(ctx context.Context, terminal hub.TerminalID, from int64, maxBytes int) (hub.OutputRange, error) {
	dir, err := m.opened(ctx, terminal)
	if err != nil {
		return hub.OutputRange{}, err
	}
	if from < 0 {
		return hub.OutputRange{}, hub.Invalid("from", "%d is negative", from)
	}
	return readOutput(filepath.Join(dir, outputDir), from, int64(min(max(maxBytes, 0), maxRange)))
}

// readOutput returns at most limit bytes of the output in dir from an offset on.
func readOutput(dir string, from, limit int64) (hub.OutputRange, error) {
	for try := 1; ; try++ {
		r, err := outputOnce(dir, from, limit)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || try == tailTries {
			return hub.OutputRange{}, fmt.Errorf("reading the output: %w", err)
		}
	}
}

func outputOnce(dir string, from, limit int64) (hub.OutputRange, error) {
	found, err := segments(dir)
	if err != nil || len(found) == 0 {
		return hub.OutputRange{}, err
	}
	r := hub.OutputRange{First: found[0].start, Total: found[len(found)-1].end()}
	r.From = min(max(from, r.First), r.Total)
	r.Data, err = readSegments(dir, found, r.From, min(r.From+limit, r.Total))
	return r, err
}

// readSegments reads the bytes from one offset up to another.
func readSegments(dir string, found []segment, from, to int64) ([]byte, error) {
	data := make([]byte, 0, to-from)
	for _, s := range found {
		start, end := max(from, s.start), min(to, s.end())
		if start >= end {
			continue
		}
		var err error
		if data, err = readRange(data, s.path(dir), start-s.start, end-start); err != nil {
			return nil, err
		}
	}
	return data, nil
}
