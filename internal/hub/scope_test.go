package hub

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCleanPath(t *testing.T) {
	for given, want := range map[string]string{
		"a": "a", "./a": "a", "a/": "a", "a//b": "a/b", `a\b`: "a/b", `.\a\.\b`: "a/b", "a/../b": "b", ".": ".", "./": ".",
		"a/..": ".", "src/**/*.go": "src/**/*.go", "..a": "..a", "a..": "a..", " a": " a", "...": "...",
	} {
		if got, err := CleanPath("f", given); err != nil || got != want {
			t.Errorf("%q gives %q %v, want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"", "  ", "..", "../a", "a/../..", `..\a`, `a\..\..\b`, "/", "/a", `\a`, `\\host\share`, `C:\a`, "c:a", "c:/a", "**/..", "a/**/../b"} {
		if got, err := CleanPath("f", given); !IsCode(err, CodeInvalidArgument) {
			t.Errorf("%q gives %q %v", given, got, err)
		}
	}
}

func TestScopeCovers(t *testing.T) {
	for _, c := range []struct {
		entry, path string
		want        bool
	}{
		{"src", "src", true}, {"src", "src/a/b.go", true}, {"src", "srcs/a", false}, {"src", "a/src", false},
		{"src/a.go", "src/a.go", true}, {"src/a.go", "src", false}, {".", "anything/at all", true},
		{"*.go", "a.go", true}, {"*.go", "a.go.txt", false}, {"*.go", "src/a.go", false}, {"**/*.go", "a.go", true},
		{"**/*.go", "x/y/a.go", true}, {"**/*.go", "x/y/a.txt", false}, {"docs/*", "docs/a/b", true}, {"docs/*", "docs", false},
		{"docs/**", "docs/a/b", true}, {"docs/**", "doc", false}, {"a/**/z", "a/z", true}, {"a/**/z", "a/b/c/z/below", true},
		{"a/**/z", "a/b/c", false}, {"?.txt", "a.txt", true}, {"?.txt", "ab.txt", false}, {"?.txt", "ä.txt", true}, {"a*c*e", "abcde", true},
		{"a*c*e", "abced", false}, {"[a].txt", "a.txt", false}, {"[a].txt", "[a].txt", true},
		{"caf\u00e9", "cafe\u0301/menu", true}, {"cafe\u0301", "caf\u00e9", true}, {"Src", "src/a", false},
	} {
		if got := NewScope(false, ".", []string{c.entry}).Covers(c.path); got != c.want {
			t.Errorf("%q covers %q: %v", c.entry, c.path, got)
		}
	}
	if NewScope(false, ".", nil).Covers("a") {
		t.Error("no entry covers something")
	}
}

func TestScopeFoldsCaseWhereItIsTold(t *testing.T) {
	s := NewScope(true, ".", []string{"Src/ÄÖ*.GO"})
	if !s.Covers("sRC/äöx.go") || s.Covers("sRC/aox.go") {
		t.Error("letters are not compared without their case")
	}
	if NewScope(false, ".", []string{"Src"}).Covers("src/a") {
		t.Error("case is folded unasked")
	}
}

// A folder's name is no pattern, and entries of several folders add up.
func TestScopeBelowAFolder(t *testing.T) {
	s := NewScope(false, "we*rd", []string{"a", "b/*.go"})
	for path, want := range map[string]bool{"we*rd/a/x": true, "weird/a": false, "we*rd/b/x.go": true, "a": false, "other/c": false} {
		if s.Covers(path) != want {
			t.Errorf("%q: %v expected", path, want)
		}
	}
	if u := s.With("other", []string{"."}); !u.Covers("other/c") || !u.Covers("we*rd/a") || s.Covers("other/c") {
		t.Error("scopes do not add up")
	}
}

func TestCleanScopeBounds(t *testing.T) {
	if got, err := CleanScope([]string{"a/", `a`, "./b"}); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q %v", got, err)
	}
	for name, entries := range map[string][]string{
		"many": slices.Repeat([]string{"a"}, MaxScopeEntries+1), "long": {strings.Repeat("x", MaxScopeBytes), "y"},
		"deep": {strings.Repeat("a/", maxScopeSegments) + "a"}, "NUL": {"a\x00b"}, "bytes": {"a\xff"},
	} {
		if _, err := CleanScope(entries); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// The matcher agrees with a plain one by recursion.
func TestScopeModel(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "ab", "*", "?", "a*", "*b", "**"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SliceOfN(part, 1, 5).Draw(t, "pattern")
		path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "ba", "aab"}), 1, 6).Draw(t, "path")
		got := NewScope(false, ".", []string{strings.Join(pattern, "/")}).Covers(strings.Join(path, "/"))
		if want := slowCovers(pattern, path); got != want {
			t.Errorf("%q covers %q: %v", pattern, path, got)
		}
	})
}

func slowCovers(pattern, path []string) bool {
	switch {
	case len(pattern) == 0:
		return true
	case pattern[0] == "**":
		return slowCovers(pattern[1:], path) || len(path) > 0 && slowCovers(pattern, path[1:])
	case len(path) == 0:
		return false
	}
	return slowMatches(pattern[0], path[0]) && slowCovers(pattern[1:], path[1:])
}

func slowMatches(p, s string) bool {
	switch {
	case p == "":
		return s == ""
	case p[0] == '*':
		return slowMatches(p[1:], s) || s != "" && slowMatches(p, s[1:])
	}
	return s != "" && (p[0] == '?' || p[0] == s[0]) && slowMatches(p[1:], s[1:])
}

// TestNoScopeCoversTheRepository: git names .git only where another one was put in
// its place.
func TestNoScopeCoversTheRepository(t *testing.T) {
	for _, pattern := range []string{".", ".git", "**", "*"} {
		if s := NewScope(false, ".", []string{pattern}); s.Covers(".git") || pattern != ".git" && !s.Covers("a") {
			t.Errorf("%s covers .git: %v, a: %v", pattern, s.Covers(".git"), s.Covers("a"))
		}
	}
}

func TestConclude_AnAttachedWorkerGradesItself(t *testing.T) {
	task := Task{Verify: VerifyRequired, VerifyCmd: "c"}
	for result, want := range map[string]Outcome{VerifyPassed: OutcomeSucceeded, VerifyFailed: OutcomeFailed, "": OutcomeFailed} {
		r := Report{Outcome: OutcomeSucceeded, Findings: Findings{VerifyResult: result, VerifiedBy: VerifiedByWorker}}
		if got := task.Conclude(r, true); got.Outcome != want {
			t.Errorf("a claim of %q: %s, want %s", result, got.Outcome, want)
		}
	}
}

func TestConclude(t *testing.T) {
	ok, bad := Findings{VerifyResult: VerifyPassed, VerifiedBy: VerifiedByHub}, Findings{VerifyResult: VerifyFailed, VerifiedBy: VerifiedByHub}
	claim := Findings{VerifyResult: VerifyPassed, VerifiedBy: VerifiedByWorker}
	out := Findings{ScopeCheck: ScopeViolated, Violations: []string{"x"}, ViolationCount: 1}
	required, enforced := Task{Verify: VerifyRequired, VerifyCmd: "c"}, Task{Scope: ScopeEnforce, WriteScope: []string{"a"}}
	for _, c := range []struct {
		name   string
		task   Task
		f      Findings
		reason string
	}{
		{"passed", required, ok, ""}, {"failed", required, bad, ReasonVerificationFailed}, {"nothing", required, Findings{}, ReasonVerificationFailed},
		{"only claimed", required, claim, ReasonVerificationFailed}, {"missing", required, Findings{VerifyResult: VerifyMissing, VerifiedBy: VerifiedByHub}, ReasonVerificationFailed},
		{"recorded", Task{Verify: VerifyRecord, VerifyCmd: "c"}, bad, ""}, {"outside", enforced, out, ReasonScopeViolation},
		{"unavailable", enforced, Findings{ScopeCheck: ScopeUnavailable, Violations: []string{"x"}, ViolationCount: 1}, ""},
		{"advisory", Task{Scope: ScopeAdvisory, WriteScope: []string{"a"}}, out, ""},
	} {
		got := c.task.Conclude(Report{Outcome: OutcomeSucceeded, Findings: c.f}, false)
		if got.Reason != c.reason || (got.Outcome == OutcomeFailed) != (c.reason != "") {
			t.Errorf("%s: %s %q", c.name, got.Outcome, got.Reason)
		}
		if c.reason == ReasonVerificationFailed && got.VerifyResult == "" {
			t.Errorf("%s: a failed verification has no result", c.name)
		}
		if got := c.task.Conclude(Report{Outcome: OutcomeCancelled, Findings: c.f}, false); got.Outcome != OutcomeCancelled || got.Reason != "" {
			t.Errorf("%s: what has not succeeded became %s %q", c.name, got.Outcome, got.Reason)
		}
	}
}

func TestOutsideIsBounded(t *testing.T) {
	var f Findings
	paths := []string{"in/a"}
	for i := range 3 * MaxViolations {
		paths = append(paths, "out/"+strings.Repeat("x", i%50)+"\xff")
	}
	f.Outside(NewScope(false, ".", []string{"in"}), paths)
	if f.ViolationCount != 3*MaxViolations || len(f.Violations) > MaxViolations || len(f.Violations) == 0 || f.Check() != nil {
		t.Errorf("%d of %d, %v", len(f.Violations), f.ViolationCount, f.Check())
	}
	long := f
	long.ScopeReason = strings.Repeat("x", MaxReasonBytes+1)
	loud := f
	loud.Verification = &Verification{OutputTail: strings.Repeat("x", MaxOutputTail+1)}
	for name, bad := range map[string]Findings{"reason": long, "tail": loud, "result": {VerifyResult: "fine"}, "check": {ScopeCheck: "fine"}, "by": {VerifiedBy: "me"}, "count": {Violations: []string{"x"}}} {
		if bad.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	f.Verification = &Verification{Command: "c", OutputTail: "t"}
	for again := true; again; {
		f, again = f.Smaller()
	}
	if f.ViolationCount != 3*MaxViolations || len(f.Violations) > 0 || f.Verification.OutputTail != "" {
		t.Errorf("the smallest is %+v", f)
	}
}
