package terminal

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/safetext"
)

const (
	maxText     = 256 // bytes of a title or of an agent's state
	maxSequence = 512 // bytes of a sequence that are kept; what is longer is cut
)

// Control characters with a meaning here.
const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
)

// scanState is where in a sequence the scanner is.
type scanState uint8

const (
	inText    scanState = iota
	inEscape            // after ESC
	inCharset           // after ESC and an intermediate byte
	inControl           // a control sequence: ESC [
	inCommand           // an operating system command: ESC ]
	inEnd               // after ESC in a command: a backslash ends it, all else drops it
	inString            // a string without a meaning here: DCS, SOS, PM, APC
)

// scanner finds in the output of a pseudo terminal what its supervisor answers
// or keeps: it is no emulator. Sequences may be split between calls in any way.
// It keeps at most one cut sequence. One goroutine uses it.
type scanner struct {
	state scanState
	seq   []byte // of the sequence so far
	cut   bool   // it was longer than is kept
	term  terminalText
}

// terminalText is what the process last said of itself.
type terminalText struct {
	title, agent string
	paste        bool // bracketed
}

// scan reads the next bytes of output and returns what the terminal answers.
func (s *scanner) scan(p []byte) (answers []byte) {
	for len(p) > 0 {
		if s.state == inText {
			at := bytes.IndexByte(p, esc)
			if at < 0 {
				return answers
			}
			s.begin(inEscape)
			p = p[at+1:]
			continue
		}
		answers = s.step(p[0], answers)
		p = p[1:]
	}
	return answers
}

// begin enters a state with an empty sequence.
func (s *scanner) begin(state scanState) { s.state, s.seq, s.cut = state, s.seq[:0], false }

// step reads one byte that is not text.
func (s *scanner) step(b byte, answers []byte) []byte {
	switch {
	case b == can || b == sub:
		s.begin(inText)
	case b == esc && s.state == inCommand:
		s.state = inEnd
	case b == '\\' && s.state == inEnd:
		answers = s.command(answers, "\x1b\\")
		s.begin(inText)
	case b == esc:
		s.begin(inEscape)
	default:
		answers = s.inside(b, answers)
	}
	return answers
}

// inside reads a byte that neither begins nor aborts a sequence.
func (s *scanner) inside(b byte, answers []byte) []byte {
	switch s.state {
	case inEscape, inEnd:
		s.escape(b)
	case inCharset:
		if b >= 0x30 {
			s.begin(inText)
		}
	case inControl:
		if b < 0x40 || b > 0x7e {
			s.keep(b)
			break
		}
		answers = s.control(b, answers)
		s.begin(inText)
	case inCommand:
		if b == bel {
			answers = s.command(answers, "\x07")
			s.begin(inText)
			break
		}
		s.keep(b)
	}
	return answers
}

// keep appends to the sequence, which leaves out control characters.
func (s *scanner) keep(b byte) {
	switch {
	case b < 0x20 || b == 0x7f:
	case len(s.seq) == maxSequence:
		s.cut = true
	default:
		s.seq = append(s.seq, b)
	}
}

// escape reads the byte after ESC.
func (s *scanner) escape(b byte) {
	switch {
	case b == '[':
		s.begin(inControl)
	case b == ']':
		s.begin(inCommand)
	case strings.IndexByte("PX^_", b) >= 0:
		s.begin(inString)
	case b == 'c': // reset
		s.term.paste = false
		s.begin(inText)
	case b >= 0x20 && b <= 0x2f:
		s.begin(inCharset)
	case b >= 0x20:
		s.begin(inText)
	}
}

// control acts on a control sequence: seq is what is before its final byte.
func (s *scanner) control(final byte, answers []byte) []byte {
	if s.cut {
		return answers
	}
	seq := string(s.seq) + string(final)
	if modes, ok := strings.CutPrefix(string(s.seq), "?"); ok && (final == 'h' || final == 'l') {
		for mode := range strings.SplitSeq(modes, ";") {
			s.term.paste = s.term.paste && mode != "2004" || mode == "2004" && final == 'h'
		}
		return answers
	}
	if mode, ok := strings.CutSuffix(seq, "$p"); ok {
		return append(answers, s.mode(mode)...)
	}
	return append(answers, controlAnswers[seq]...)
}

// controlAnswers are the answers to control sequences: those of a terminal that
// can do little and is where its cursor would be after a reset.
var controlAnswers = map[string]string{
	"c": "\x1b[?62;22c", "0c": "\x1b[?62;22c", // primary attributes: VT220 with colour
	">c": "\x1b[>1;10;0c", ">0c": "\x1b[>1;10;0c", // secondary attributes
	"5n":  "\x1b[0n",                                             // status: ready
	"6n":  "\x1b[1;1R",                                           // cursor position
	"?6n": "\x1b[?1;1R",                                          // the same, extended
	"?u":  "\x1b[?0u",                                            // keyboard enhancements: none is in force
	">q":  "\x1bP>|wavehub\x1b\\", ">0q": "\x1bP>|wavehub\x1b\\", // name and version
}

// mode answers a query for a mode: bracketed paste is set or reset, any other
// is not recognised.
func (s *scanner) mode(mode string) string {
	digits := strings.TrimPrefix(mode, "?")
	if digits == "" || len(digits) > 5 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	value := "0"
	if mode == "?2004" {
		value = "2"
		if s.term.paste {
			value = "1"
		}
	}
	return "\x1b[" + mode + ";" + value + "$y"
}

// command acts on an operating system command. An answer ends as the query did.
func (s *scanner) command(answers []byte, end string) []byte {
	number, text, _ := strings.Cut(string(s.seq), ";")
	switch number {
	case "0", "2":
		s.term.title = plainLine(text)
	case "7501":
		s.term.agent = plainLine(text)
	default:
		if colour, ok := colours[number]; ok && text == "?" {
			answers = append(answers, "\x1b]"+number+";rgb:"+colour+end...)
		}
	}
	return answers
}

// colours are the default ones: light text on a dark ground.
var colours = map[string]string{
	"10": "e6e6/e6e6/e6e6", // text
	"11": "0000/0000/0000", // background
	"12": "e6e6/e6e6/e6e6", // cursor
}

// plainLine is what a process wrote as one line of at most maxText bytes, safe
// to show.
func plainLine(s string) string {
	s = safetext.Line(s, maxText)
	for n := maxText; len(s) > maxText; n-- {
		if utf8.RuneStart(s[n]) {
			return s[:n]
		}
	}
	return s
}
