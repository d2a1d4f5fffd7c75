package safetext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxLine is how many characters of one line Clean shows.
const MaxLine = 4096

// Clean returns s for showing over several lines: control characters other
// than newline and tab, C1, DEL, bidirectional and invisible format characters
// and invalid UTF-8 are replaced by a visible form, CRLF becomes a newline, and
// each line is cut after MaxLine characters with a note of how many are left
// out. It never fails; cleaning twice changes nothing more where no line was cut.
func Clean(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		cleanLine(&out, strings.TrimSuffix(line, "\r"))
	}
	return out.String()
}

// Line returns s in one line of at most limit characters: as Clean, but
// newlines and tabs become a space each, and what is cut ends with "…".
func Line(s string, limit int) string {
	s = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(s)
	var out strings.Builder
	room := limit
	for rest := s; rest != ""; {
		shown, size := visible(rest)
		width := utf8.RuneCountInString(shown)
		rest = rest[size:]
		if width > room || (rest != "" && width == room) {
			return ellipsis(out.String(), limit)
		}
		out.WriteString(shown)
		room -= width
	}
	return out.String()
}

func ellipsis(s string, limit int) string {
	if limit < 1 {
		return ""
	}
	runes := []rune(s)
	return string(runes[:min(len(runes), limit-1)]) + "…"
}

func cleanLine(out *strings.Builder, line string) {
	written := 0
	for rest := line; rest != ""; {
		shown, size := visible(rest)
		width := utf8.RuneCountInString(shown)
		if written+width > MaxLine {
			fmt.Fprintf(out, "…[+%d]", utf8.RuneCountInString(rest))
			return
		}
		out.WriteString(shown)
		written += width
		rest = rest[size:]
	}
}

// visible returns the form of the first character of s and its size in bytes.
func visible(s string) (string, int) {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size <= 1:
		return fmt.Sprintf(`\x%02x`, s[0]), 1
	case r == '\t':
		return "\t", size
	case r < 0x20:
		return string(0x2400 + r), size
	case r == 0x7f:
		return "␡", size
	case hidden(r) && r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r), size
	case hidden(r):
		return fmt.Sprintf(`\u%04x`, r), size
	}
	return s[:size], size
}

// hidden are C1 and the characters that reorder, separate or hide text:
// bidirectional marks, embeddings and isolates, line and paragraph separators,
// zero-width space, word joiner and its kin, byte order mark, annotations and
// tags. The joiners of emoji and of Indic and Arabic writing stay.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f, r == 0xad, r == 0x61c, r == 0x180e,
		r == 0x200b, r == 0x200e, r == 0x200f,
		r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
		r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
