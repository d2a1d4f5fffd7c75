package house

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestExportedHaveComments(t *testing.T) {
	all := sources(t)
	for _, s := range all {
		report(t, undocumented(s))
	}
	report(t, packagesWithoutComment(all))
}

func TestCommentCheckerFails(t *testing.T) {
	text := `package p

type T struct{}
func (T) M() {}
func (t) N() {}
func F() {}
func f() {}
var V = 0
const (
	A = 1
	// B is documented.
	B = 2
)
// The kinds.
const (
	C = 1
	D = 2
)
`
	var names []string
	for _, f := range undocumented(parse(t, "p/p.go", text)) {
		names = append(names, f[strings.LastIndexByte(f, ' ')+1:])
	}
	if want := []string{"T", "M", "F", "V", "A"}; !slices.Equal(names, want) {
		t.Errorf("undocumented are %q, want %q", names, want)
	}
	if found := undocumented(parse(t, "p/p_test.go", text)); len(found) != 0 {
		t.Errorf("a test file is checked: %q", found)
	}
	if found := packagesWithoutComment([]source{parse(t, "p/p.go", text)}); len(found) != 1 {
		t.Errorf("a package without a comment: %q", found)
	}
}

func undocumented(s source) []string {
	if s.isTest() || s.isGenerated() {
		return nil
	}
	var found []string
	for _, d := range s.file.Decls {
		for _, name := range bareNames(d) {
			found = append(found, fmt.Sprintf("%s: no doc comment on exported %s", s.at(name), name.Name))
		}
	}
	return found
}

// bareNames returns the exported names of a declaration that no comment
// describes. A comment on a group of constants, variables or types describes them
// all; functions each have their own.
func bareNames(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && isOnExported(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var bare []*ast.Ident
		for _, spec := range d.Specs {
			bare = append(bare, bareSpec(d, spec)...)
		}
		return bare
	}
	return nil
}

func bareSpec(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Doc == nil && spec.Comment == nil && d.Doc == nil {
			names = []*ast.Ident{spec.Name}
		}
	case *ast.ValueSpec:
		if spec.Doc == nil && spec.Comment == nil && d.Doc == nil {
			names = slices.Clone(spec.Names)
		}
	}
	return slices.DeleteFunc(names, func(n *ast.Ident) bool { return !n.IsExported() })
}

// isOnExported says that a function is none of an unexported type's methods.
func isOnExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return true
		}
	}
}

func packagesWithoutComment(all []source) []string {
	has := map[string]bool{}
	for _, s := range all {
		if !s.isTest() {
			has[s.dir()] = has[s.dir()] || s.file.Doc != nil
		}
	}
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(has)) {
		if !has[dir] {
			found = append(found, dir+": no comment on the package")
		}
	}
	return found
}
