package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	defaultCap   = 64 << 20
	minCap       = 64 << 10
	maxSegment   = 4 << 20
	segmentParts = 8 // a segment is at most this part of the cap: what one drop loses
	segmentExt   = ".out"
)

// segment is a file of output whose name is the offset of its first byte in
// all output ever written.
type segment struct{ start, size int64 }

func (s segment) end() int64 { return s.start + s.size }

func (s segment) path(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", s.start, segmentExt))
}

// output appends a terminal's output to segments and drops the oldest so that
// at most limit bytes are kept. The names of the files carry the number of
// bytes ever written. One goroutine writes; result may be called by any.
type output struct {
	dir         string
	limit, part int64
	file        *os.File
	kept        []segment         // oldest first; the last is written to
	held        int64             // sum of their sizes
	written     func(total int64) // told after each append; nil for nobody

	mu   sync.Mutex // guards lost and err
	lost int64
	err  error
}

// newOutput creates the folder; limit 0 takes the default.
func newOutput(dir string, limit int64) (*output, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the output folder: %w", err)
	}
	if limit == 0 {
		limit = defaultCap
	}
	limit = max(limit, minCap)
	return &output{dir: dir, limit: limit, part: min(limit/segmentParts, maxSegment)}, nil
}

// append writes p. What cannot be written is counted as lost, and later output
// is tried again: a full disk must not stop the process that writes.
func (o *output) append(p []byte) {
	o.appendAll(p)
	if o.written != nil && len(o.kept) > 0 {
		o.written(o.last().end())
	}
}

func (o *output) appendAll(p []byte) {
	for len(p) > 0 {
		n, err := o.write(p)
		p = p[n:]
		if err != nil {
			o.mu.Lock()
			o.lost += int64(len(p))
			if o.err == nil {
				o.err = err
			}
			o.mu.Unlock()
			return
		}
	}
}

func (o *output) write(p []byte) (int, error) {
	if o.file == nil || o.last().size >= o.part {
		if err := o.roll(); err != nil {
			return 0, err
		}
	}
	p = p[:min(int64(len(p)), o.part-o.last().size)]
	if err := o.makeRoom(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := o.file.Write(p)
	o.last().size += int64(n)
	o.held += int64(n)
	return n, err
}

func (o *output) last() *segment { return &o.kept[len(o.kept)-1] }

// roll begins the next segment.
func (o *output) roll() error {
	next := segment{}
	if len(o.kept) > 0 {
		next.start = o.last().end()
	}
	f, err := os.OpenFile(next.path(o.dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if o.file != nil {
		err = o.file.Close()
	}
	o.file, o.kept = f, append(o.kept, next)
	return err
}

// makeRoom drops the oldest segments until n more bytes fit.
func (o *output) makeRoom(n int64) error {
	for len(o.kept) > 1 && o.held+n > o.limit {
		if err := removeIfThere(o.kept[0].path(o.dir)); err != nil {
			return err
		}
		o.held -= o.kept[0].size
		o.kept = slices.Delete(o.kept, 0, 1)
	}
	return nil
}

// result returns how many bytes were lost, and why the first were.
func (o *output) result() (lost int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost, o.err
}

// close makes the last segment durable; the writer has ended.
func (o *output) close() error {
	if o.file == nil {
		return nil
	}
	return errors.Join(o.file.Sync(), o.file.Close())
}

// segments lists the output in dir, oldest first; none when there is no dir.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir) // sorted by name, so by offset
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []segment
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), segmentExt)
		start, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, err
		}
		found = append(found, segment{start: start, size: info.Size()})
	}
	return found, nil
}
