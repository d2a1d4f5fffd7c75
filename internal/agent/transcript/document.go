package transcript

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
)

// form is how records lie in a file.
type form int

const (
	formUnclear form = iota // too little of the file is there to tell
	formLines
	formDocument // one JSON document with an array "messages"
)

const headBytes = 4 << 10

func formOf(src io.ReaderAt, size int64, provider string) (form, error) {
	if provider != OpenCode {
		return formLines, nil
	}
	head := make([]byte, min(size, headBytes))
	n, err := src.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return formUnclear, err
	}
	return formOfHead(head[:n]), nil
}

// formOfHead decides by the first name in the file: the events of run begin
// with their type, the document of export with info.
func formOfHead(head []byte) form {
	head = head[:min(len(head), headBytes)]
	unclear := formUnclear
	if len(head) == headBytes {
		unclear = formLines
	}
	rest := bytes.TrimLeft(head, space)
	if len(rest) > 0 && rest[0] != '{' {
		return formLines
	}
	rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte("{")), space)
	if len(rest) > 0 && rest[0] != '"' {
		return formLines
	}
	name, _, complete := strings.Cut(strings.TrimPrefix(string(rest), `"`), `"`)
	switch {
	case !complete:
		return unclear
	case name == "info" || name == "messages":
		return formDocument
	}
	return formLines
}

const space = " \t\r\n"

// scanDocument feeds the elements of a document's array of messages to a sink.
// The document is read from its beginning every time: when it is written anew,
// the numbers of its messages stay and their offsets do not.
func scanDocument(ctx context.Context, src io.ReaderAt, size int64, at Position, b bounds, to sink) (ending, error) {
	if at.Offset != 0 || at.Skipping || at.Carry != "" {
		return ending{}, ErrChanged
	}
	end := min(size, b.document)
	d := newDocument(newSource(ctx, src, 0, end), b.record)
	st, err := d.open()
	for n := 0; err == nil && st == whole; n++ {
		if st, err = d.next(n >= at.Index); err != nil || (st != whole && st != tooLong) {
			break
		}
		if n < at.Index {
			st = whole
			continue
		}
		if st == tooLong {
			to(decoded{}, tooLong)
			at.Index, st = n+1, whole
			continue
		}
		taken, more := to(decodeExport(record{raw: d.kept, place: int64(n)}), whole)
		at.Index += taken
		if !more {
			return ending{at: at, document: true}, nil
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return ending{}, err
	}
	if err != nil && d.src.read < end {
		return ending{}, ErrChanged
	}
	return ending{at: at, status: torn, atEnd: true, document: true, beyond: err != nil && end < size}, nil
}

// document finds the elements of the array "messages" of a JSON object. It
// looks at brackets and quotes only, so that it needs no memory but for the
// element that is kept. What is no such document has no elements.
type document struct {
	src   *source
	in    *bufio.Reader
	limit int
	kept  []byte
	seen  int
}

func newDocument(src *source, limit int) *document {
	return &document{src: src, in: bufio.NewReaderSize(src, readBuffer), limit: limit}
}

// open goes to the first element.
func (d *document) open() (status, error) {
	if c, err := d.solid(""); err != nil || c != '{' {
		return closed, err
	}
	for {
		c, err := d.solid(",")
		if err != nil || c != '"' {
			return closed, err
		}
		if err := d.value(c, true); err != nil {
			return closed, err
		}
		named := string(d.kept) == `"messages"`
		if c, err = d.solid(":"); err != nil {
			return closed, err
		}
		if named && c == '[' {
			return whole, nil
		}
		if err := d.value(c, false); err != nil {
			return closed, err
		}
	}
}

// next goes behind the next element, which is then in kept if that was asked
// for and the element is not too long.
func (d *document) next(keep bool) (status, error) {
	c, err := d.solid(",")
	if err != nil || c == ']' || c == '}' {
		return closed, err
	}
	if err := d.value(c, keep); err != nil {
		return closed, err
	}
	if d.seen > d.limit {
		return tooLong, nil
	}
	return whole, nil
}

// solid returns the next byte that is neither white space nor among those
// passed over.
func (d *document) solid(pass string) (byte, error) {
	for {
		c, err := d.in.ReadByte()
		if err != nil || strings.IndexByte(space+pass, c) < 0 {
			return c, err
		}
	}
}

// value reads the value that begins with c to its end.
func (d *document) value(c byte, keep bool) error {
	d.kept, d.seen = d.kept[:0], 0
	quoted, escaped, depth := false, false, 0
	for {
		d.seen++
		if keep && d.seen <= d.limit {
			d.kept = append(d.kept, c)
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		bare := depth == 0 && !quoted && c != '"' && c != '}' && c != ']'
		if depth <= 0 && !quoted && !bare {
			return nil
		}
		var err error
		if c, err = d.in.ReadByte(); err != nil {
			return err
		}
		if bare && strings.IndexByte(space+",:]}", c) >= 0 {
			return d.in.UnreadByte()
		}
	}
}
