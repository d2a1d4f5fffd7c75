package transcript

import (
	"context"
	"errors"
	"io"

	"github.com/wavehub/wavehub/internal/hub"
)

// Read returns the page of messages at a position. It reads src up to size and
// no further than the bounds of one call; memory is bounded too, whatever the
// file. The messages of a transcript are the same and in the same order however
// it is divided into pages and however much it grows in between: none twice,
// none lost. A page may have no messages and not be at the end: read on.
//
// Errors: ErrChanged; invalid_argument for an unknown provider, a query over
// its limit or a position that was never given; what src or ctx says.
func Read(ctx context.Context, src io.ReaderAt, size int64, provider string, at Position, q Query) (Page, error) {
	if err := q.check(); err != nil {
		return Page{}, err
	}
	return read(ctx, src, size, provider, at, standard(q.Messages))
}

func read(ctx context.Context, src io.ReaderAt, size int64, provider string, at Position, b bounds) (Page, error) {
	page := Page{Messages: []hub.TranscriptMessage{}, Next: at, Warnings: []string{}}
	end, err := scan(ctx, src, size, provider, at, b, func(d decoded, st status) (int, bool) {
		if st == tooLong {
			page.Skipped++
			return 0, true
		}
		n := page.take(d.messages, b)
		if d.invalid && n > 0 {
			page.Invalid++
		}
		return n, n == len(d.messages) && len(page.Messages) < b.messages
	})
	if err != nil {
		return Page{}, err
	}
	page.Next = end.at
	page.AtEnd = end.atEnd
	page.Limited = page.Limited || end.status == scanned
	page.finish(end.beyond)
	return page, nil
}

// ending is how far a scan came.
type ending struct {
	at               Position
	status           status // why it ended; whole: it was told to
	atEnd            bool
	document, beyond bool // it was one, and it goes on where it is not read
}

// sink is given what each record says, and every record that is too long. It
// returns how many of the messages it took and whether it wants more; it takes
// all if it does.
type sink func(d decoded, st status) (taken int, more bool)

// scan feeds the records from a position on to a sink.
func scan(ctx context.Context, src io.ReaderAt, size int64, provider string, at Position, b bounds, to sink) (ending, error) {
	if err := errors.Join(checkProvider(provider), at.check(size)); err != nil {
		return ending{}, err
	}
	f, err := formOf(src, size, provider)
	switch {
	case err != nil:
		return ending{}, err
	case f == formUnclear && at == Position{}:
		return ending{status: torn, atEnd: true}, nil
	case f == formUnclear:
		return ending{}, ErrChanged
	case f == formDocument:
		return scanDocument(ctx, src, size, at, b, to)
	}
	if err := checkStart(src, at); err != nil {
		return ending{}, err
	}
	return scanLines(ctx, src, size, provider, at, b, to)
}

// checkStart sees that a line begins at a position, as it did when the
// position was given.
func checkStart(src io.ReaderAt, at Position) error {
	if at.Offset == 0 || at.Skipping {
		return nil
	}
	var before [1]byte
	if _, err := src.ReadAt(before[:], at.Offset-1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if before[0] != '\n' {
		return ErrChanged
	}
	return nil
}

func scanLines(ctx context.Context, src io.ReaderAt, size int64, provider string, at Position, b bounds, to sink) (ending, error) {
	l := newLines(ctx, src, size, at, b)
	for {
		line, st, err := l.next()
		switch {
		case err != nil:
			return ending{}, err
		case st == tooLong:
			at = Position{Offset: l.offset, Skipping: l.skipping, Carry: at.Carry}
			to(decoded{}, tooLong)
			continue
		case st != whole:
			// The index stays: the line, if there is one, was not passed.
			at.Offset, at.Skipping = l.offset, l.skipping
			return ending{at: at, status: st, atEnd: st == torn}, nil
		}
		d := decode(provider, record{raw: line, place: l.start, carry: at.Carry})
		if at.Index > 0 && at.Index >= len(d.messages) {
			return ending{}, ErrChanged
		}
		d.messages = d.messages[at.Index:]
		taken, more := to(d, whole)
		if taken < len(d.messages) {
			return ending{at: Position{Offset: l.start, Index: at.Index + taken, Carry: at.Carry}}, nil
		}
		at = Position{Offset: l.offset, Carry: d.carry}
		if !more {
			return ending{at: at, atEnd: at.Offset == size}, nil
		}
	}
}
