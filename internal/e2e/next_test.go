//go:build unix

package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// printed is a state in which the product prints commands.
type printed struct {
	by   Caller // who they were printed to
	next [][]string
	// during happens while a command runs.
	during func(t *testing.T)
	// mend ends a state in which requests are refused, or their outcome is not
	// known, for the time being: what repeats one then has to succeed.
	mend func(t *testing.T)
	// cured is what was refused, and works when the command was run.
	cured []string
}

// advice is one way to have commands printed.
type advice struct {
	sites   string                               // "package.function …" that print them
	provoke func(t *testing.T, s *stage) printed // such a state, anew with each call
	exits   []int                                // beside 0, what the commands document for such a state
	duo     bool                                 // it has the stage's pair of hubs alone
}

// advices are all of them by name.
func advices() map[string]advice {
	all := map[string]advice{}
	for _, some := range []map[string]advice{soloAdvice, recoveryAdvice, peerAdvice, startAdvice, attachedAdvice, agentAdvice, waveAdvice} {
		maps.Copy(all, some)
	}
	return all
}

// TestEveryNextCommandRuns provokes everything that prints commands and runs
// each as it was printed, in the state that printed it and by the same caller.
func TestEveryNextCommandRuns(t *testing.T) {
	t.Parallel()
	all, s := advices(), newStage(t)
	checkSites(t, all)
	for name, a := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.follow(t, s)
		})
	}
}

// checkSites holds the functions of the product that print commands against
// those that are provoked.
func checkSites(t *testing.T, all map[string]advice) {
	t.Helper()
	provoked := map[string]bool{}
	for _, a := range all {
		for site := range strings.FieldsSeq(a.sites) {
			provoked[site] = true
		}
	}
	found := sitesOf(t)
	for site := range found {
		if !provoked[site] {
			t.Errorf("%s prints commands, and nothing here runs them", site)
		}
	}
	for site := range provoked {
		if !found[site] {
			t.Errorf("%s is said to print commands, and prints none", site)
		}
	}
}

func (a advice) follow(t *testing.T, s *stage) {
	if a.duo {
		s.alone.Lock()
		defer s.alone.Unlock()
	}
	p := a.provoke(t, s)
	if len(p.next) == 0 {
		t.Fatal("no command was printed")
	}
	for i, used := 0, false; i < len(p.next); i++ {
		if used {
			p = a.provoke(t, s)
		}
		r := p.run(t, p.next[i])
		if r.Code != 0 && !slices.Contains(a.exits, r.Code) {
			t.Errorf("%q: exit %d\n%s%s", p.next[i], r.Code, r.Stdout, r.Stderr)
		}
		used = changes(p.next[i])
		if r.Code != 0 && p.mend != nil {
			p.again(t, p.next[i])
			used = true
		}
	}
	if p.cured != nil {
		if r := p.by.CLI(p.cured...); r.Code != 0 {
			t.Errorf("%q, when all was run: exit %d\n%s", p.cured, r.Code, r.Stderr)
		}
	}
}

// again ends the state and runs a command that it refused.
func (p printed) again(t *testing.T, argv []string) {
	t.Helper()
	p.mend(t)
	if r := p.run(t, argv); r.Code != 0 {
		t.Errorf("%q, when the cause is gone: exit %d\n%s%s", argv, r.Code, r.Stdout, r.Stderr)
	}
}

// run runs a command as it was printed.
func (p printed) run(t *testing.T, argv []string) Result {
	t.Helper()
	for _, arg := range argv {
		if strings.ContainsAny(arg, "<>…") {
			t.Errorf("%q has a placeholder", argv)
		}
	}
	if p.during == nil {
		return p.by.paste(`exec "$@"`, argv...)
	}
	var side sync.WaitGroup
	defer side.Wait()
	side.Go(func() { p.during(t) })
	return p.by.paste(`exec "$@"`, argv...)
}

// changes says whether a command does more than to look.
func changes(argv []string) bool {
	return !slices.ContainsFunc(argv, func(arg string) bool { return arg == "show" || arg == "list" })
}

// printers are the functions whose callers print the commands that they make.
var printers = []string{"inspectCommands", "resumeCommand"}

// sitesOf finds the functions of the product that print commands: those that
// build one, beginning with the program's name, and the callers of printers.
func sitesOf(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, root := range []string{"client", "internal", "relay", "server"} {
		must(t, filepath.WalkDir(filepath.Join(moduleRoot, root), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			return addSites(found, name)
		}))
	}
	return found
}

func addSites(found map[string]bool, name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && !slices.Contains(printers, f.Name.Name) && printsCommands(f) {
			found[file.Name.Name+"."+f.Name.Name] = true
		}
	}
	return nil
}

func printsCommands(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			found = found || slices.ContainsFunc(n.Elts, isProgram)
		case *ast.CallExpr:
			name := calledName(n)
			found = found || slices.Contains(printers, name) || name == "WithNext" && slices.ContainsFunc(n.Args, isProgram)
		}
		return true
	})
	return found
}

func isProgram(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Value == `"wavehub"`
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
