// Package id mints and checks the text form of wavehub's identifiers: a kind
// prefix and a UUIDv7 as 26 lower-case Crockford base32 characters.
//
// Ids sort by the time they were minted. They are safe for concurrent use and
// carry no meaning beyond their kind: ordering that matters is by sequence.
package id

import (
	"strings"

	"github.com/google/uuid"
)

const (
	alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	textLen  = 26
)

// New returns prefix followed by a fresh UUIDv7 in text form.
func New(prefix string) string {
	return Format(prefix, uuid.Must(uuid.NewV7()))
}

// UUID returns a fresh UUID in the text form of others, for programs that take
// one from whoever starts them.
func UUID() string { return uuid.NewString() }

// Encode returns the 26-character text form of 128 bits.
func Encode(b [16]byte) string { return Format("", b) }

// Format returns prefix and the text form of 128 bits. Prefixes are short.
func Format(prefix string, b [16]byte) string {
	var room [2 * textLen]byte
	out := append(room[:0], prefix...)
	var acc uint32
	bits := 2 // 130 bits of text carry 128 of value: two leading zero bits
	for _, c := range b {
		acc = acc<<8 | uint32(c)
		bits += 8
		for bits >= 5 {
			bits -= 5
			out = append(out, alphabet[acc>>bits&31])
		}
	}
	return string(out)
}

// Valid reports whether s is prefix followed by one text form.
func Valid(prefix, s string) bool {
	text, ok := strings.CutPrefix(s, prefix)
	if !ok || len(text) != textLen || text[0] > '7' {
		return false
	}
	for i := range len(text) {
		if values[text[i]] == none {
			return false
		}
	}
	return true
}

// none marks the bytes that are not of the alphabet.
const none = 0xff

// values has the value of each character of the alphabet.
var values = func() (v [256]byte) {
	for c := range v {
		v[c] = none
	}
	for i := range len(alphabet) {
		v[alphabet[i]] = byte(i)
	}
	return v
}()

// Parse returns the 128 bits behind the prefix; false for what is not Valid.
// Prefix and Encode of them are s again.
func Parse(prefix, s string) (b [16]byte, ok bool) {
	if !Valid(prefix, s) {
		return b, false
	}
	var acc uint32
	bits, n := -2, 0 // the two leading zero bits of 130
	for _, c := range []byte(s[len(prefix):]) {
		acc = acc<<5 | uint32(values[c])
		if bits += 5; bits >= 8 {
			bits -= 8
			b[n] = byte(acc >> bits)
			n++
		}
	}
	return b, true
}

// timeChars are the characters of a text form that hold its time.
const timeChars = 10

// Millis is when an id was minted, in milliseconds since 1970 by the clock of
// whoever minted it; false for what is no id.
func Millis(s string) (int64, bool) {
	at := strings.LastIndexByte(s, '_') + 1
	if !Valid(s[:at], s) {
		return 0, false
	}
	ms := int64(0)
	for _, c := range []byte(s[at : at+timeChars]) {
		ms = ms<<5 | int64(values[c])
	}
	return ms, true
}
