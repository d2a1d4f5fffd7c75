package house

import (
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTestsNeitherSleepNorSkipSilently(t *testing.T) {
	tests := 0
	for _, s := range sources(t) {
		if s.isTest() {
			tests++
			report(t, badCalls(s))
		}
	}
	if tests == 0 {
		t.Fatal("no test file was found")
	}
}

func TestTrackedTextIsClean(t *testing.T) {
	for _, name := range tracked(t) {
		if isMadeOrData(name) {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted in the working tree, not yet in git
		}
		if err != nil {
			t.Fatal(err)
		}
		if utf8.Valid(raw) {
			report(t, badLines(name, string(raw)))
		}
	}
}

func TestHabitCheckerFails(t *testing.T) {
	for call, bad := range map[string]bool{
		`clock.Sleep(1)`:             true,
		`t.Skip` + `()`:              true,
		`t.Skip("")`:                 true,
		`t.Skip` + `Now()`:           true,
		`t.Skip("no terminal here")`: false,
		`synctest.Test(t, func(t *testing.T) { clock.Sleep(1) })`: false,
	} {
		text := `package p
import ("testing"; "testing/synctest"; clock "time")
func TestA(t *testing.T) { ` + call + ` }`
		if found := badCalls(parse(t, "a_test.go", text)); (len(found) > 0) != bad {
			t.Errorf("%s: bad = %v expected, found %q", call, bad, found)
		}
	}
	for line, bad := range map[string]bool{
		"// TO" + "DO later":              true,
		"// FIX" + "ME":                   true,
		"cd /wo" + "rk/main":              true,
		"see /tm" + "p/brief":             true,
		"from registry.np" + "mjs.org":    true,
		"https://proxy.go" + "lang.org/x": true,
		"a todo list":                     false,
		"/home/x/wo" + "rk/main":          false,
	} {
		if found := badLines("x", line); (len(found) > 0) != bad {
			t.Errorf("%q: bad = %v expected, found %q", line, bad, found)
		}
	}
}

// badCalls finds sleeps and skips without a message. A sleep in the bubble of
// synctest.Test moves a fake clock only and is allowed.
func badCalls(s source) []string {
	timeName, bubbleName := s.nameOf("time"), s.nameOf("testing/synctest")
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		on, name := selector(call)
		switch {
		case on == bubbleName && name == "Test":
			return false
		case on == timeName && name == "Sleep":
			found = append(found, s.at(call)+": a test sleeps")
		case name == "SkipNow", name == "Skip" && hasNoMessage(call):
			found = append(found, s.at(call)+": a skip without its reason")
		}
		return true
	})
	return found
}

// nameOf is the name under which a file imports a package, empty if it does not.
func (s source) nameOf(path string) string {
	for _, i := range s.file.Imports {
		if strings.Trim(i.Path.Value, `"`) != path {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// selector returns "x" and "F" of a call x.F(…).
func selector(call *ast.CallExpr) (on, name string) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		on = x.Name
	}
	return on, sel.Sel.Name
}

func hasNoMessage(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return true
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	return ok && len(call.Args) == 1 && strings.Trim(lit.Value, "\"` ") == ""
}

// The patterns are put together so that this file does not match itself.
var badPatterns = map[string]*regexp.Regexp{
	"an unfinished mark":    regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`),
	"a path of one machine": regexp.MustCompile(`(^|[^\w.~-])/(wo` + `rk/|tm` + `p/brief)|(^|[^\w.~-])/root/[\w.]`),
	"a registry's host":     regexp.MustCompile(`\b(proxy|sum)\.go` + `lang\.org|registry\.(np` + `mjs|yarn` + `pkg)\.|\bpy` + `pi\.org|files\.python` + `hosted|deb\.deb` + `ian\.org|crates\.` + `io\b`),
}

func badLines(name, text string) []string {
	var found []string
	number := 0
	for line := range strings.Lines(text) {
		number++
		for what, pattern := range badPatterns {
			if m := pattern.FindString(line); m != "" {
				found = append(found, fmt.Sprintf("%s:%d: %s: %q", name, number, what, m))
			}
		}
	}
	return found
}

// isMadeOrData says that a file is made by a tool or is a test's input.
func isMadeOrData(name string) bool {
	return strings.HasSuffix(name, "_gen.go") || slices.Contains(strings.Split(name, "/"), "testdata") || filepath.Base(name) == "go.sum"
}

// tracked lists the files that git knows, and the new ones that it would add.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("the files are not checked: git does not list them here: %v", err)
	}
	names := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	if len(names) < 5 {
		t.Fatalf("git lists %d files only", len(names))
	}
	return names
}
