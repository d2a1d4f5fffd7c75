package transcript

import (
	"context"
	"encoding/json"
	"io"

	"github.com/wavehub/wavehub/internal/hub"
)

// Tail returns the last messages of a file that nobody writes any more: at most
// that many, of the last MaxScan bytes, with at most MaxText bytes of text. A
// message that was replaced is not among them. A last line without its newline
// counts if it is whole. There is no next page. Errors are those of Read.
func Tail(ctx context.Context, src io.ReaderAt, size int64, provider string, messages int) (Page, error) {
	q := Query{Messages: messages}
	if err := q.check(); err != nil {
		return Page{}, err
	}
	return tailOf(ctx, src, size, provider, standard(q.Messages))
}

func tailOf(ctx context.Context, src io.ReaderAt, size int64, provider string, b bounds) (Page, error) {
	t := tail{bounds: b}
	f, err := formOf(src, size, provider)
	if err != nil {
		return Page{}, err
	}
	var at Position
	if f == formLines && size > b.scan {
		at = Position{Offset: size - b.scan, Skipping: true}
		t.dropped = true
	}
	end, err := scan(ctx, src, size, provider, at, b, t.take)
	if err == nil && !end.document && !end.at.Skipping {
		err = t.takeTorn(src, size, provider, end.at)
	}
	if err != nil {
		return Page{}, err
	}
	return t.page(end), nil
}

// tail keeps the end of what passes by.
type tail struct {
	bounds
	kept             []message
	size             int
	skipped, invalid int
	dropped          bool
}

func (t *tail) take(d decoded, st status) (int, bool) {
	if st == tooLong {
		t.skipped++
	}
	if d.invalid {
		t.invalid++
	}
	for _, m := range d.messages {
		t.kept = append(t.kept, m)
		t.size += m.size
		for len(t.kept) > t.messages || t.size > t.text && len(t.kept) > 1 {
			t.size -= t.kept[0].size
			t.kept[0] = message{} // so that its text is not held on to
			t.kept, t.dropped = t.kept[1:], true
		}
	}
	return len(d.messages), true
}

// takeTorn takes the line that the agent did not end, if only its newline is
// missing.
func (t *tail) takeTorn(src io.ReaderAt, size int64, provider string, at Position) error {
	if n := size - at.Offset; n <= 0 || n > int64(t.record) {
		return nil
	}
	raw := make([]byte, size-at.Offset)
	if n, err := src.ReadAt(raw, at.Offset); n < len(raw) {
		return shortRead(err)
	}
	if json.Valid(raw) {
		t.take(decode(provider, record{raw: raw, place: at.Offset, carry: at.Carry}), whole)
	}
	return nil
}

func (t *tail) page(end ending) Page {
	p := Page{Messages: []hub.TranscriptMessage{}, AtEnd: true, Skipped: t.skipped, Invalid: t.invalid, Warnings: []string{}}
	last := map[string]int{}
	for n, m := range t.kept {
		last[m.ID] = n
	}
	for n, m := range t.kept {
		if last[m.ID] == n {
			p.Messages = append(p.Messages, m.TranscriptMessage)
			p.Cut += m.cut
		}
	}
	p.Limited = t.dropped
	p.finish(end.beyond)
	return p
}
