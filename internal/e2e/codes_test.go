//go:build unix

package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

type errorCode struct {
	Code   string `yaml:"code"`
	Status int    `yaml:"status"`
	Exit   int    `yaml:"exit"`
	Retry  string `yaml:"retry"`
	Title  string `yaml:"title"`
	Future string `yaml:"future"`
}

var catalogue = sync.OnceValues(func() (map[string]errorCode, error) {
	raw, err := os.ReadFile(filepath.Join(moduleRoot, "openapi", "errors.yaml"))
	if err != nil {
		return nil, err
	}
	var doc struct {
		Errors []errorCode `yaml:"errors"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	out := map[string]errorCode{}
	for _, e := range doc.Errors {
		out[e.Code] = e
	}
	return out, nil
})

// exitOf is the exit code that the catalogue gives to an error code.
func exitOf(t testing.TB, code string) int {
	t.Helper()
	all, err := catalogue()
	must(t, err)
	e, ok := all[code]
	if !ok {
		t.Fatalf("openapi/errors.yaml has no %q", code)
	}
	return e.Exit
}

// scenario provokes an error with the real binary and returns how the command
// line, which had --json, ended.
type scenario func(t *testing.T, s *stage) Result

// scenarios are those of all codes that can be provoked from outside.
func scenarios() map[string]scenario {
	all := map[string]scenario{}
	for _, some := range []map[string]scenario{soloCodes, workerCodes, edgeCodes, peerCodes, startCodes, attachedCodes, agentCodes, waveCodes} {
		maps.Copy(all, some)
	}
	return all
}

// elsewhere names the tests of the codes that need conditions which only the
// package that owns them can make.
var elsewhere = map[string]string{
	"invite_not_found":         "internal/sqlite.TestInvitesThatAreNotThere",
	"resource_server_mismatch": "server.TestADispatchIsAttachedOnce",
	"peer_duplicate":           "relay.TestNewerProcessEndsTheOlder",
	"worker_identity_changed":  "internal/work.TestACursorIsPinned",
	"storage_full":             "internal/sqlite.TestFreeSpaceWatermark",
	"cursor_expired":           "server.TestEventsExpire",
}

// TestEveryCodeIsProduced: each code of the catalogue that is not reserved for
// a later feature comes about, with the status, exit code, retry and title that
// the catalogue says.
func TestEveryCodeIsProduced(t *testing.T) {
	t.Parallel()
	all, err := catalogue()
	must(t, err)
	here, s := scenarios(), newStage(t)
	for code, e := range all {
		_, provoked := here[code]
		_, named := elsewhere[code]
		if e.Future != "" && (provoked || named) {
			t.Errorf("%s is reserved for %s, but produced", code, e.Future)
		}
		if e.Future == "" && provoked == named {
			t.Errorf("%s needs one evidence: provoked here %v, elsewhere %v", code, provoked, named)
		}
	}
	for code, provoke := range here {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			provoke(t, s).follows(t, all[code])
		})
	}
	for code, test := range elsewhere {
		if err := mentions(test, constantOf(code)); err != "" {
			t.Errorf("%s: %s", code, err)
		}
	}
}

// follows holds the problem that a command line printed against the catalogue.
func (r Result) follows(t testing.TB, want errorCode) {
	t.Helper()
	p := r.problem(t, want.Code) // checks the exit code too
	if p.Status != want.Status || string(p.Retry) != want.Retry || p.Title != want.Title || p.Hint == "" {
		t.Errorf("%q: %+v, want %+v", r.Args, p, want)
	}
}

func constantOf(code string) string {
	name := "Code"
	for part := range strings.SplitSeq(code, "_") {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	return name
}

// mentions says why "package.Test" is no test that uses the constant, "" if it
// is one.
func mentions(test, constant string) string {
	dir, name, _ := strings.Cut(test, ".")
	pkgs, err := filepath.Glob(filepath.Join(moduleRoot, filepath.FromSlash(dir), "*_test.go"))
	if err != nil || len(pkgs) == 0 {
		return "there is no test in " + dir
	}
	for _, path := range pkgs {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err.Error()
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name {
				if !uses(f, constant) {
					return test + " does not mention " + constant
				}
				return ""
			}
		}
	}
	return "there is no " + test
}

func uses(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

func TestTheEvidenceOfCodesIsChecked(t *testing.T) {
	for test, want := range map[string]string{
		"internal/e2e.TestTheEvidenceOfCodesIsChecked": "does not mention", "internal/e2e.TestNone": "there is no", "internal/none.TestX": "there is no test",
	} {
		if got := mentions(test, "CodeNowhere"); !strings.Contains(got, want) {
			t.Errorf("%s: %q", test, got)
		}
	}
	if got := mentions("internal/e2e.TestTheEvidenceOfCodesIsChecked", "mentions"); got != "" {
		t.Error(got)
	}
	if got := constantOf("run_not_found"); got != "CodeRunNotFound" {
		t.Error(got)
	}
}
