package hub

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxPartBytes is longer than the name of any file.
const maxPartBytes = 1024

// Reach is what an entry of a scope reaches, in the form in which two are
// compared: its parts up to the first **. What comes behind a ** never keeps two
// entries apart, since a path covers what is below it: a/**/x and a/b share a/b/x.
// A part that is too long to name a file ends it as a ** does.
type Reach []string

// Reaches returns the forms of a cleaned path: one, or two if it has letters that
// compose otherwise without their case. Scopes of systems with and without case
// are compared by all of them.
func Reaches(path string) []Reach {
	plain := strings.Map(folded, norm.NFC.String(path))
	composed := norm.NFC.String(plain)
	if composed == plain {
		return []Reach{reach(plain)}
	}
	return []Reach{reach(plain), reach(composed)}
}

func reach(path string) Reach {
	if path == "." || path == "" {
		return nil
	}
	parts := strings.Split(path, "/")
	if i := slices.IndexFunc(parts, func(p string) bool { return p == "**" || len(p) > maxPartBytes }); i >= 0 {
		parts = parts[:i]
	}
	return parts
}

// Meets reports whether there is a path that both reach. It is exact, but that it
// takes . and .. and letters that would compose for names.
func (r Reach) Meets(o Reach) bool {
	for i := range min(len(r), len(o)) {
		if !PartsMeet(r[i], o[i]) {
			return false
		}
	}
	return true
}

// ScopesOverlap reports whether two cleaned paths, with wildcards, have a path in
// common on some system: letters are compared in their composed form and without
// their case, since hubs of several systems share one target. Paths that a Scope of
// each covers are always found.
func ScopesOverlap(a, b string) bool {
	others := Reaches(b)
	return slices.ContainsFunc(Reaches(a), func(r Reach) bool { return slices.ContainsFunc(others, r.Meets) })
}

// Wild reports whether a part of a path has wildcards.
func Wild(part string) bool { return strings.ContainsAny(part, "*?") }

// PartsMeet reports whether one name matches both parts, in which * and ? stand
// for characters. It takes time in proportion to the product of their lengths at
// worst.
func PartsMeet(a, b string) bool {
	switch {
	case !Wild(a) && !Wild(b):
		return a == b
	case a == "" || b == "":
		return strings.Trim(a+b, "*") == ""
	case differ(a[0], b[0]) || differ(a[len(a)-1], b[len(b)-1]):
		return false
	}
	p, q := []rune(a), []rune(b)
	switch starred := slices.Contains(q, '*'); {
	case !slices.Contains(p, '*'):
		return meetsFixed(q, p)
	case !starred:
		return meetsFixed(p, q)
	}
	return endsMeet(p, q)
}

// differ reports whether no character that begins or ends with the one byte is also
// meant by the other.
func differ(a, b byte) bool { return a != b && a != '*' && a != '?' && b != '*' && b != '?' }

// endsMeet compares what is before the first and behind the last * of both. That
// decides it: the first * of each can take what the other has between.
func endsMeet(p, q []rune) bool {
	for i := 0; p[i] != '*' && q[i] != '*'; i++ {
		if !same(p[i], q[i]) {
			return false
		}
	}
	for i, j := len(p)-1, len(q)-1; p[i] != '*' && q[j] != '*'; i, j = i-1, j-1 {
		if !same(p[i], q[j]) {
			return false
		}
	}
	return true
}

// meetsFixed reports whether the pattern meets one without *. After a mismatch
// the last * takes one character more; earlier ones need not.
func meetsFixed(pattern, fixed []rune) bool {
	i, j, star, took := 0, 0, -1, 0
	for j < len(fixed) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, took = i, j
			i++
		case i < len(pattern) && same(pattern[i], fixed[j]):
			i++
			j++
		case star >= 0:
			took++
			i, j = star+1, took
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}

// same reports whether one character can stand for both.
func same(a, b rune) bool { return a == b || a == '?' || b == '?' }
