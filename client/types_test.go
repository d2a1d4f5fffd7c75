package client

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every document that an exported function takes or returns has a name in this
// package: callers need not import the generated one.
func TestDocumentsHaveNamesHere(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named, used := map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				named[n.Name.Name] = true
			case *ast.FuncDecl:
				if n.Name.IsExported() {
					documents(n.Type, used)
				}
			}
			return true
		})
	}
	if len(used) < 20 {
		t.Fatalf("only %d documents were found", len(used))
	}
	for name := range used {
		if !named[name] {
			t.Errorf("api.%s has no name in this package", name)
		}
	}
}

// documents enters the names of the API's documents in a function's type.
func documents(f *ast.FuncType, into map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "api" {
				into[sel.Sel.Name] = true
			}
		}
		return true
	})
}
