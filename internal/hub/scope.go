package hub

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Limits of a write scope.
const (
	MaxScopeEntries  = 1000
	MaxScopeBytes    = 256 << 10
	maxScopeSegments = 128
)

// CleanScope cleans each path of a write scope and drops repetitions. A path
// that is absolute or leads out of the worktree is refused.
func CleanScope(entries []string) ([]string, error) {
	if len(entries) > MaxScopeEntries {
		return nil, Invalid("write_scope", "at most %d paths are taken", MaxScopeEntries)
	}
	var out []string
	size := 0
	for _, entry := range entries {
		if err := CheckText("write_scope", entry, MaxScopeBytes-size); err != nil {
			return nil, err
		}
		size += len(entry)
		path, err := cleanScopePath("write_scope", entry)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out, nil
}

// CheckScopePath refuses one path of a scope as CleanScope does.
func CheckScopePath(field, entry string) error {
	if err := CheckText(field, entry, MaxScopeBytes); err != nil {
		return err
	}
	_, err := cleanScopePath(field, entry)
	return err
}

func cleanScopePath(field, entry string) (string, error) {
	path, err := CleanPath(field, entry)
	if err == nil && strings.Count(path, "/") >= maxScopeSegments {
		err = Invalid(field, "%.64q… has more than %d parts", path, maxScopeSegments)
	}
	return path, err
}

// CleanPath is a path within a worktree in its one form: slashes, no empty and
// no . parts, .. resolved; "." is the worktree itself. One that is absolute, in
// the way of any system, or leads out is refused.
func CleanPath(field, path string) (string, error) {
	given := path
	path = strings.ReplaceAll(path, `\`, "/")
	switch {
	case strings.TrimSpace(path) == "":
		return "", Invalid(field, "a path is empty; . stands for the whole worktree")
	case strings.HasPrefix(path, "/") || len(path) > 1 && path[1] == ':':
		return "", Invalid(field, "%.64q is absolute; it must be relative to the worktree", given)
	}
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			parts = append(parts, part)
		case len(parts) == 0:
			return "", Invalid(field, "%.64q leads out of the worktree", given)
		case parts[len(parts)-1] == "**":
			return "", Invalid(field, "%.64q goes up from **, which may be anywhere", given)
		default:
			parts = parts[:len(parts)-1]
		}
	}
	if len(parts) == 0 {
		return ".", nil
	}
	return strings.Join(parts, "/"), nil
}

// Scope is a set of paths in a worktree. * and ? stand for characters of one
// part, ** for any number of parts; a path covers what is below it, and no entry
// covers nothing. Letters are compared in their composed form (NFC), and without
// their case where the file system does so.
type Scope struct {
	patterns [][]string
	fold     bool
}

// NewScope is the scope of cleaned paths, each below dir: "." or a cleaned path
// without wildcards.
func NewScope(fold bool, dir string, entries []string) Scope {
	return Scope{fold: fold}.With(dir, entries)
}

// With is s and the cleaned paths below dir.
func (s Scope) With(dir string, entries []string) Scope {
	base := literally(s.parts(dir))
	all := slices.Clone(s.patterns)
	for _, entry := range entries {
		all = append(all, slices.Concat(base, s.parts(entry)))
	}
	return Scope{patterns: all, fold: s.fold}
}

// literally makes a folder's own name stand for itself, whatever it consists of.
func literally(parts []string) []string {
	out := make([]string, len(parts))
	for i, part := range parts {
		out[i] = literal + part
	}
	return out
}

// literal begins a part that is compared as it is; no path can hold it.
const literal = "\x00"

// Covers reports whether a path, with slashes and relative to the worktree, is
// in the scope. No scope covers the repository itself.
func (s Scope) Covers(path string) bool {
	if path == ".git" {
		return false
	}
	parts := s.parts(path)
	return slices.ContainsFunc(s.patterns, func(p []string) bool { return covers(p, parts) })
}

// parts splits a path, in the form in which letters are compared.
func (s Scope) parts(path string) []string {
	if path == "." || path == "" {
		return nil
	}
	path = norm.NFC.String(path)
	if s.fold {
		path = norm.NFC.String(strings.Map(folded, path))
	}
	return strings.Split(path, "/")
}

// folded is the least of the letters that differ from r in nothing but case.
func folded(r rune) rune {
	least := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		least = min(least, o)
	}
	return least
}

// covers reports whether the whole pattern matches the beginning of the path.
// at holds which numbers of the path's parts the pattern so far can stand for.
func covers(pattern, path []string) bool {
	at := make([]bool, len(path)+1)
	at[0] = true
	for _, part := range pattern {
		if part == "**" {
			spread(at)
			continue
		}
		for i := len(path); i > 0; i-- {
			at[i] = at[i-1] && matches(part, path[i-1])
		}
		if at[0] = false; !slices.Contains(at, true) {
			return false
		}
	}
	return true
}

// spread lets a ** stand for any number of further parts.
func spread(at []bool) {
	for i := 1; i < len(at); i++ {
		at[i] = at[i] || at[i-1]
	}
}

// matches compares one part with * and ?. After a mismatch the last * takes one
// character more; earlier ones need not.
func matches(pattern, name string) bool {
	if own, ok := strings.CutPrefix(pattern, literal); ok {
		return own == name
	}
	p, n := []rune(pattern), []rune(name)
	i, j, star, took := 0, 0, -1, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, took = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			took++
			i, j = star+1, took
		default:
			return false
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}
