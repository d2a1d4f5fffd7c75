package transcript

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

// status is what came of looking for the next record.
type status int

const (
	whole   status = iota // a record
	tooLong               // a record over the bound; what follows it comes next
	torn                  // the file's last record is not complete yet
	scanned               // the call has read as much as it may
	closed                // the document has ended
)

// source reads a part of a file, sees that the call has been given up and
// counts what came.
type source struct {
	ctx  context.Context
	r    io.Reader
	read int64
}

func newSource(ctx context.Context, src io.ReaderAt, from, to int64) *source {
	return &source{ctx: ctx, r: io.NewSectionReader(src, from, to-from)}
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	s.read += int64(n)
	return n, err
}

// lines finds the lines of a file between an offset and the end of what the
// call may read. Its memory is one record and a buffer.
type lines struct {
	src       *source
	in        *bufio.Reader
	from      int64 // where reading began
	end, size int64 // of what may be read, of the file
	start     int64 // of the line that next returned or looks for
	offset    int64 // behind what is passed
	skipping  bool
	limit     int
	long      []byte // a line that is longer than the buffer
}

const readBuffer = 64 << 10

func newLines(ctx context.Context, src io.ReaderAt, size int64, at Position, b bounds) *lines {
	end := min(size, at.Offset+b.scan)
	s := newSource(ctx, src, at.Offset, end)
	return &lines{src: s, in: bufio.NewReaderSize(s, readBuffer), from: at.Offset, end: end, size: size,
		offset: at.Offset, skipping: at.Skipping, limit: b.record}
}

// next returns the next line without its newline, valid until the next call.
// A line that is too long is told once, when that is known; the rest of it is
// passed over by later calls.
func (l *lines) next() ([]byte, status, error) {
	for l.skipping {
		if more, err := l.skip(); err != nil || !more {
			return nil, l.exhausted(), err
		}
	}
	l.start, l.long = l.offset, l.long[:0]
	for seen := 0; ; {
		part, err := l.in.ReadSlice('\n')
		seen += len(part)
		switch {
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			st, err := l.stop(err, seen)
			return nil, st, err
		case seen-newline(part) > l.limit:
			l.offset += int64(seen)
			l.skipping = err != nil
			return nil, tooLong, nil
		case err != nil:
			l.long = append(l.long, part...)
			continue
		}
		l.offset += int64(seen)
		if len(l.long) == 0 {
			return part, whole, nil
		}
		l.long = append(l.long, part...)
		return l.long, whole, nil
	}
}

func newline(part []byte) int {
	if bytes.HasSuffix(part, []byte("\n")) {
		return 1
	}
	return 0
}

// stop says why there is no complete line. What was seen of it is read again
// by the next call, unless it is already known to be too long.
func (l *lines) stop(err error, seen int) (status, error) {
	if err := l.short(err); err != nil {
		return 0, err
	}
	if seen > l.limit {
		l.offset += int64(seen)
		l.skipping = true
		return tooLong, nil
	}
	return l.exhausted(), nil
}

// skip passes over a piece of a line that is too long; there is no more when
// all that may be read is read.
func (l *lines) skip() (more bool, err error) {
	part, err := l.in.ReadSlice('\n')
	l.offset += int64(len(part))
	switch {
	case err == nil:
		l.skipping = false
		return true, nil
	case errors.Is(err, bufio.ErrBufferFull):
		return true, nil
	}
	return false, l.short(err)
}

// exhausted says whether the file or the call's share of it is at its end.
func (l *lines) exhausted() status {
	if l.end < l.size {
		return scanned
	}
	return torn
}

// short is nil at the end of what may be read, if all of it was there.
func (l *lines) short(err error) error {
	if errors.Is(err, io.EOF) && l.src.read == l.end-l.from {
		return nil
	}
	return shortRead(err)
}

// shortRead is the error of a file that has less than its size.
func shortRead(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrChanged
	}
	return err
}
