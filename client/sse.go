package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxEvent bounds one server-sent event, in bytes.
const maxEvent = 16 << 20

var errTooLongEvent = fmt.Errorf("an event of the hub has more than %d bytes", maxEvent)

// sseEvent is one server-sent event. ID is "" for one without an id of its own.
type sseEvent struct {
	id, name string
	data     []byte
}

// sseReader reads server-sent events as the HTML standard writes them, but for a
// carriage return that ends a line alone. It holds one event at a time.
type sseReader struct {
	r     *bufio.Reader
	begun bool
}

func newSSEReader(r io.Reader) *sseReader { return &sseReader{r: bufio.NewReaderSize(r, 16<<10)} }

// next is the next event that has data; io.EOF ends the stream between two events,
// and one that it cuts is io.ErrUnexpectedEOF.
func (s *sseReader) next() (sseEvent, error) {
	var e sseEvent
	size, some, data := 0, false, false
	for {
		line, err := s.line(maxEvent - size)
		switch {
		case errors.Is(err, io.EOF) && !some && len(line) == 0:
			return e, io.EOF
		case errors.Is(err, io.EOF):
			return e, io.ErrUnexpectedEOF
		case err != nil:
			return e, err
		case len(line) == 0 && data:
			return e, nil
		case len(line) == 0:
			e, size, some = sseEvent{}, 0, false
			continue
		}
		size, some = size+len(line)+1, true
		data = e.field(line, data) || data
	}
}

// field adds a line to the event and reports whether it is one of data; more says
// that there was one before.
func (e *sseEvent) field(line []byte, more bool) (data bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		if !bytes.ContainsRune(value, 0) {
			e.id = string(value)
		}
	case "event":
		e.name = string(value)
	case "data":
		if more {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		return true
	}
	return false
}

// line is the next line without its end; with an error, what there was of it.
func (s *sseReader) line(room int) ([]byte, error) {
	var line []byte
	for {
		part, err := s.r.ReadSlice('\n')
		if len(line)+len(part) > room+len("\r\n") {
			return nil, errTooLongEvent
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return line, err
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if !s.begun {
			s.begun, line = true, bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		return line, nil
	}
}

// isEventStream reports whether a content type is that of server-sent events.
func isEventStream(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}
