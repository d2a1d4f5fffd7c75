package hub

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestScopesOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"src/a", "src/a", true}, {"src/a", "src/a/b", true}, {"src/a", "src/ab", false}, {"src/a", "src", true}, {".", "anything/at/all", true},
		{".", ".", true}, {"src", "docs", false}, {"src/*.go", "src/a.go", true}, {"src/*.go", "src/a.md", false}, {"src/*.go", "src/*.md", false},
		{"src/a*", "src/*b", true}, {"src/a*c", "src/ab*d", false}, {"src/a*x*c", "src/ab*c", true}, {"src/?", "src/ab", false}, {"src/??", "src/a?", true},
		{"*/x", "a/x", true}, {"*/x", "a/y", false}, {"**/x.go", "src", true}, {"**/*.go", "docs/a.md", true}, {"a/**/z", "a/b", true}, {"a/**/z", "b/z", false},
		{"a/b/**", "a/*/c", true}, {"a/b/**", "a/c*/c", false}, {"a?", "a*", true}, {"?a*", "b*", true}, {"?a*", "bb*", false}, {"*a", "*b", false}, {"*ab", "*bb", false}, {"ab*", "aa*", false}, {"*a?", "*bb", false}, {"*a?", "*ab", true},
		{"*", "*", true}, {"a*b", "ab", true}, {"a*b", "a", false}, {"ab*ab", "ab", false}, {"a**c", "abc", true},
		{"Src/A", "src/a", true}, {"caf\u00e9", "CAFE\u0301", true}, {"stra\u00dfe", "STRASSE", false}, {"\u212a", "k", true}, {"[ab]", "a", false},
		{"?\u03b9", "\u03b1\u03b9", true}, {"?\u0307", "i\u0307", true}, {strings.Repeat("x", maxPartBytes+1), strings.Repeat("y", maxPartBytes+1), true},
	} {
		if got := ScopesOverlap(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
		if ScopesOverlap(c.b, c.a) != c.want {
			t.Errorf("%q and %q: not the same the other way", c.b, c.a)
		}
	}
}

// someLetters have relatives: by case, by composing, or by both.
var someLetters = []rune("abABkK\u212aiI\u0130\u0131\u0307\u03b1\u03b9\u0345\u00e9e\u0301\u00df")

// A path that both scopes cover proves an overlap, on systems with and without
// case.
func TestScopesOverlapWhereAPathIsCoveredTwice(t *testing.T) {
	met := 0
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom(someLetters), 1, 3, -1), 1, 4).Draw(t, "path")
		a, b := patternOf(t, "a", path), patternOf(t, "b", path)
		for _, fold := range []bool{false, true} {
			whole := strings.Join(path, "/")
			if !NewScope(fold, ".", []string{a}).Covers(whole) || !NewScope(fold, ".", []string{b}).Covers(whole) {
				continue
			}
			met++
			if !ScopesOverlap(a, b) {
				t.Errorf("%q and %q both cover %q (fold %v)", a, b, whole, fold)
			}
		}
	})
	if met < 50 {
		t.Errorf("only %d paths were covered twice", met)
	}
}

// patternOf makes a pattern that likely covers the path: parts of it are replaced
// by wildcards, and it may end early.
func patternOf(t *rapid.T, label string, path []string) string {
	var parts []string
	for _, part := range path[:rapid.IntRange(1, len(path)).Draw(t, label+" parts")] {
		runes := []rune(part)
		switch at := rapid.IntRange(0, len(runes)-1).Draw(t, label+" at"); rapid.IntRange(0, 5).Draw(t, label+" how") {
		case 0:
			part = "**"
		case 1:
			part = string(runes[:at]) + "*"
		case 2:
			part = "*" + string(runes[at:])
		case 3:
			runes[at] = '?'
			part = string(runes)
		case 4:
			part = swapped(part)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "/")
}

func swapped(s string) string {
	if s == strings.ToUpper(s) {
		return strings.ToLower(s)
	}
	return strings.ToUpper(s)
}

// An overlap is not claimed without a path that both cover: a search through all
// short paths finds one.
func TestScopesOverlapIsExact(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "ab", "*", "?", "a*", "*b", "a*b", "?b", "b?", "**"})
	pattern := rapid.SliceOfN(part, 1, 3)
	paths := allPaths([]string{"a", "b", "ab", "bb"}, 6)
	overlaps, apart := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := pattern.Draw(t, "a"), pattern.Draw(t, "b")
		got := ScopesOverlap(strings.Join(a, "/"), strings.Join(b, "/"))
		want := false
		for _, p := range paths {
			if slowCovers(a, p) && slowCovers(b, p) {
				want = true
				break
			}
		}
		if got != want {
			t.Fatalf("%q and %q: %v", a, b, got)
		}
		if got {
			overlaps++
		} else {
			apart++
		}
	})
	if overlaps < 10 || apart < 10 {
		t.Errorf("%d overlaps and %d others were tried", overlaps, apart)
	}
}

// allPaths are the paths of up to deep parts of those names.
func allPaths(names []string, deep int) [][]string {
	level := [][]string{nil}
	var all [][]string
	for range deep {
		var next [][]string
		for _, p := range level {
			for _, name := range names {
				next = append(next, append(p[:len(p):len(p)], name))
			}
		}
		all = append(all, next...)
		level = next
	}
	return all
}

// Two parts meet exactly if a name matches both.
func TestPartsMeetModel(t *testing.T) {
	var names []string
	for _, path := range allPaths([]string{"a", "b", "c"}, 7) {
		names = append(names, strings.Join(path, ""))
	}
	part := rapid.StringMatching(`[ab*?]{1,4}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		want := false
		for _, name := range names {
			if slowMatches(a, name) && slowMatches(b, name) {
				want = true
				break
			}
		}
		if got := PartsMeet(a, b); got != want {
			t.Errorf("%q and %q: %v", a, b, got)
		}
	})
}

func FuzzScopesOverlap(f *testing.F) {
	for _, s := range [][3]string{{"a/*", "a/b", "a/b"}, {"**/x?*", "A", "a/xyz"}, {"?\u03b9", "\u03b1\u03b9", "\u03b1\u03b9"}, {"*a*b", "a?", "ab"}} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, a, b, path string) {
		a, errA := CleanPath("a", a)
		b, errB := CleanPath("b", b)
		path, errPath := CleanPath("path", path)
		if errA != nil || errB != nil || errPath != nil || CheckText("text", a+b+path, 1<<10) != nil {
			return
		}
		if ScopesOverlap(a, b) != ScopesOverlap(b, a) || !ScopesOverlap(a, a) {
			t.Errorf("%q and %q are not compared evenly", a, b)
		}
		for _, fold := range []bool{false, true} {
			if NewScope(fold, ".", []string{a}).Covers(path) && NewScope(fold, ".", []string{b}).Covers(path) && !ScopesOverlap(a, b) {
				t.Errorf("%q and %q both cover %q (fold %v)", a, b, path, fold)
			}
		}
	})
}
