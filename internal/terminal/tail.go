package terminal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/wavehub/wavehub/internal/hub"
)

// tailTries bounds the retries while the supervisor drops segments.
const tailTries = 10

// readTail returns at most limit bytes of the end of the output in dir.
func readTail(dir string, limit int) (hub.OutputTail, error) {
	for try := 1; ; try++ {
		tail, err := tailOnce(dir, limit)
		if err == nil {
			return tail, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || try == tailTries {
			return hub.OutputTail{}, fmt.Errorf("reading the output: %w", err)
		}
	}
}

func tailOnce(dir string, limit int) (hub.OutputTail, error) {
	found, err := segments(dir)
	if err != nil || len(found) == 0 {
		return hub.OutputTail{}, err
	}
	total := found[len(found)-1].end()
	from := max(total-int64(max(limit, 0)), found[0].start)
	data, err := readSegments(dir, found, from, total)
	return hub.OutputTail{Total: total, Truncated: from > 0, Data: data}, err
}

// readRange appends n bytes of the file, from offset, to data.
func readRange(data []byte, path string, offset, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return data, err
	}
	defer f.Close()
	used := len(data)
	data = append(data, make([]byte, n)...)
	_, err = io.ReadFull(io.NewSectionReader(f, offset, n), data[used:])
	return data, err
}

// lastOutputAt returns when output was last written, 0 for never.
func lastOutputAt(dir string) (hub.Micros, error) {
	found, err := segments(dir)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	info, err := os.Stat(found[len(found)-1].path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // removed meanwhile
	}
	if err != nil {
		return 0, err
	}
	return hub.MicrosOf(info.ModTime()), nil
}
