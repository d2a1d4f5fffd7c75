package transcript

import (
	"errors"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
)

// Numbers of messages of a page.
const (
	DefaultMessages = 100
	MaxMessages     = 1000
)

// Bounds of what one call reads and answers, in bytes.
const (
	MaxRecord   = 2 << 20   // a longer record is skipped and counted
	MaxScan     = 8 << 20   // of a file of lines, by one call
	MaxText     = 512 << 10 // texts, inputs and names of one page
	MaxDocument = 64 << 20  // a document is read no further
)

// ErrChanged says that the file is not the one in which the position was
// given, or has become shorter: source_changed for whoever asked. Read again
// from the beginning.
var ErrChanged = errors.New("the transcript was replaced or cut off")

// Position is a place between two messages of one file. The zero Position is
// the beginning. It stays right while the file grows; it holds nothing of the
// file's text and at most 200 bytes of JSON.
type Position struct {
	Offset   int64  `json:"offset,omitempty"`   // of a line, in bytes; 0 for a document
	Index    int    `json:"index,omitempty"`    // messages read of that line, or of the document
	Skipping bool   `json:"skipping,omitempty"` // within a line that is too long, already counted
	Carry    string `json:"carry,omitempty"`    // the decoder's memory: a hash
}

// maxCarry is how long a Carry can be.
const maxCarry = 32

func (p Position) check(size int64) error {
	switch {
	case p.Offset < 0 || p.Index < 0 || len(p.Carry) > maxCarry:
		return hub.Invalid("position", "is none that was given")
	case p.Offset > size:
		return ErrChanged
	}
	return nil
}

// Query asks for a page.
type Query struct {
	Messages int // 0 means DefaultMessages
}

func (q Query) check() error {
	if q.Messages < 0 || q.Messages > MaxMessages {
		return hub.Invalid("messages", "must be 1 to %d", MaxMessages)
	}
	return nil
}

// Page is a part of a transcript. A message with the id of an earlier one, on
// this page or a former one, replaces it.
type Page struct {
	Messages []hub.TranscriptMessage
	Next     Position // where the next page begins
	// AtEnd: nothing more can be read until the file grows. A last line without
	// its newline waits until it has one.
	AtEnd bool
	// Limited: the page ended early by a bound other than the number of
	// messages, or something on it was skipped or cut.
	Limited  bool
	Skipped  int      // records over MaxRecord, none of whose text is shown
	Invalid  int      // records that are not JSON, kept as messages of role other
	Cut      int      // blocks that were cut or left out
	Warnings []string // the same for people; never nil

	size int
}

// bounds are the limits of one call; tests make them small.
type bounds struct {
	messages, record, text int
	scan, document         int64
}

func standard(messages int) bounds {
	if messages == 0 {
		messages = DefaultMessages
	}
	return bounds{messages: messages, record: MaxRecord, text: MaxText, scan: MaxScan, document: MaxDocument}
}

// take adds messages of a record as long as they fit and returns how many did.
// The first one of a page always does.
func (p *Page) take(all []message, b bounds) int {
	for n, m := range all {
		if len(p.Messages) == b.messages {
			return n
		}
		if len(p.Messages) > 0 && p.size+m.size > b.text {
			p.Limited = true
			return n
		}
		p.Messages = append(p.Messages, m.TranscriptMessage)
		p.size += m.size
		p.Cut += m.cut
	}
	return len(all)
}

func (p *Page) finish(tooLong bool) {
	p.warn(p.Skipped, "records of more than 2 MiB were skipped")
	p.warn(p.Invalid, "records are not JSON")
	p.warn(p.Cut, "texts were cut")
	if tooLong {
		p.Warnings = append(p.Warnings, "the document has more than 64 MiB; the rest is not read")
	}
	p.Limited = p.Limited || tooLong || p.Skipped+p.Cut > 0
}

func (p *Page) warn(n int, what string) {
	if n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: %d", what, n))
	}
}
