package intake

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep lists and objects may lie in each other.
const maxDepth = 32

// document reads the values of a JSON text one after the other, without keeping
// them. It keeps the first thing that is wrong with the text and is at its end from
// then on. Strings without escapes share the text's memory.
type document struct {
	text  string
	at    int
	line  int // of at, from 1
	depth int
	ended bool   // nothing more is read
	wrong string // why, "" where nothing is wrong
}

func newDocument(text string) *document { return &document{text: text, line: 1} }

// next is the byte that the next value or sign begins with, 0 at the end.
func (d *document) next() byte {
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; c {
		case '\n':
			d.line++
		case ' ', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// stop has the rest of the text left unread.
func (d *document) stop() { d.at, d.ended = len(d.text), true }

// fail says what the text should have had here, once.
func (d *document) fail(expected string) {
	found := "the end of the file"
	if d.at < len(d.text) {
		r, _ := utf8.DecodeRuneInString(d.text[d.at:])
		found = fmt.Sprintf("%q", r)
	}
	d.refuse("there should be " + expected + ", but there is " + found)
}

func (d *document) refuse(wrong string) {
	if !d.ended {
		d.wrong = wrong
	}
	d.stop()
}

// members reads an object; each reads the value of its key.
func (d *document) members(each func(key string, line int)) {
	for more := d.open('}'); more; more = d.more('}') {
		if d.next() != '"' {
			d.fail("a key in quotes")
			return
		}
		line, key := d.line, d.str()
		if d.next() != ':' {
			d.fail("a colon after the key")
			return
		}
		d.at++
		each(key, line)
	}
}

// elements reads a list; each reads one of its values.
func (d *document) elements(each func()) {
	for more := d.open(']'); more; more = d.more(']') {
		each()
	}
}

// open enters a list or an object; false: it is empty or too deep.
func (d *document) open(closing byte) bool {
	d.at++
	if d.depth++; d.depth > maxDepth {
		d.refuse(fmt.Sprintf("lists and objects lie more than %d deep in each other", maxDepth))
		return false
	}
	if d.next() == closing {
		d.at++
		d.depth--
		return false
	}
	return true
}

// more goes on to the next value of a list or object, or leaves it.
func (d *document) more(closing byte) bool {
	switch d.next() {
	case ',':
		d.at++
		return true
	case closing:
		d.at++
		d.depth--
	default:
		d.fail("a comma or " + string(rune(closing)))
	}
	return false
}

// end makes sure that nothing follows.
func (d *document) end() {
	if !d.ended && d.next() != 0 {
		d.fail("the end of the file")
	}
}

// skip reads any value.
func (d *document) skip() {
	switch c := d.next(); c {
	case '{':
		d.members(func(string, int) { d.skip() })
	case '[':
		d.elements(d.skip)
	case '"':
		d.str()
	case 't':
		d.literal("true")
	case 'f':
		d.literal("false")
	case 'n':
		d.literal("null")
	default:
		if c != '-' && !isDigit(c) {
			d.fail("a value")
			return
		}
		d.number()
	}
}

// kind says what the next value is.
func (d *document) kind() string {
	switch d.next() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

func (d *document) literal(word string) {
	if !strings.HasPrefix(d.text[d.at:], word) {
		d.fail(word)
		return
	}
	d.at += len(word)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number reads a number and returns it as it is written.
func (d *document) number() string {
	start := d.at
	if d.is('-') {
		d.at++
	}
	if d.is('0') {
		d.at++
	} else if !d.digits() {
		return ""
	}
	if d.is('.') {
		if d.at++; !d.digits() {
			return ""
		}
	}
	if d.is('e') || d.is('E') {
		if d.at++; d.is('+') || d.is('-') {
			d.at++
		}
		if !d.digits() {
			return ""
		}
	}
	return d.text[start:d.at]
}

// is reports whether the very next byte is c.
func (d *document) is(c byte) bool { return d.at < len(d.text) && d.text[d.at] == c }

func (d *document) digits() bool {
	start := d.at
	for d.at < len(d.text) && isDigit(d.text[d.at]) {
		d.at++
	}
	if d.at == start {
		d.fail("a digit")
		return false
	}
	return true
}
