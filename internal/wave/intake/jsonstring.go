package intake

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// str reads a text in quotes.
func (d *document) str() string {
	d.at++
	start := d.at
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; {
		case c == '"':
			d.at++
			return d.text[start : d.at-1]
		case c == '\\':
			return d.escaped(d.text[start:d.at])
		case c < ' ':
			d.fail("the closing quote, or an escape such as \\n")
			return ""
		}
	}
	d.fail("the closing quote")
	return ""
}

// escaped reads the rest of a text that begins with before, from its first escape
// on.
func (d *document) escaped(before string) string {
	var out strings.Builder
	out.WriteString(before)
	for d.at < len(d.text) {
		switch c := d.text[d.at]; {
		case c == '"':
			d.at++
			return out.String()
		case c == '\\':
			d.escape(&out)
		case c < ' ':
			d.fail("the closing quote, or an escape such as \\n")
			return ""
		default:
			out.WriteByte(c)
			d.at++
		}
	}
	d.fail("the closing quote")
	return ""
}

const (
	escapes  = `"\/bfnrt`
	escapeds = "\"\\/\b\f\n\r\t"
)

func (d *document) escape(out *strings.Builder) {
	d.at++
	if d.is('u') {
		d.at++
		d.unicode(out)
		return
	}
	if d.at < len(d.text) {
		if i := strings.IndexByte(escapes, d.text[d.at]); i >= 0 {
			out.WriteByte(escapeds[i])
			d.at++
			return
		}
	}
	d.fail(`one of "\/bfnrtu after a backslash`)
}

// unicode reads the digits of \u, and the second half of a pair.
func (d *document) unicode(out *strings.Builder) {
	r := d.hex()
	if r >= 0 && utf16.IsSurrogate(r) {
		if !strings.HasPrefix(d.text[d.at:], `\u`) {
			d.fail(`the other half of a pair of \u`)
			return
		}
		d.at += 2
		if r = utf16.DecodeRune(r, d.hex()); r == '\ufffd' {
			d.refuse(`two \u in a row are no pair`)
			return
		}
	}
	if r >= 0 {
		out.WriteRune(r)
	}
}

// hex reads four digits, -1 if there are none.
func (d *document) hex() rune {
	digits := d.text[d.at:min(d.at+4, len(d.text))]
	n, err := strconv.ParseUint(digits, 16, 16)
	if err != nil || len(digits) < 4 {
		d.fail("four hexadecimal digits")
		return -1
	}
	d.at += 4
	return rune(n)
}
