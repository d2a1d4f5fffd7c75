package house

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const dependencyFile = "deploy/DEPENDENCIES.md"

// dependency is a row of the table: why a module is used, under which licence,
// and which packages may import it.
type dependency struct {
	module, reason, licence string
	importers               []string
}

// inTests stands for tests and the test-only packages in a row's last column.
const inTests = "tests"

func (d dependency) mayBeImportedBy(pkg string) bool {
	return matchesAny(d.importers, pkg) || slices.Contains(d.importers, inTests) && matchesAny(testOnly, pkg)
}

func TestDependenciesAreListed(t *testing.T) {
	gomod := read(t, "go.mod")
	report(t, checkDependencies(gomod, dependencies(t)))
}

func TestDependencyCheckerFails(t *testing.T) {
	gomod := "module m\n\nrequire one.example/a v1.0.0\n\nrequire (\n\ttwo.example/b v1.0.0\n\tthree.example/c v1.0.0 // indirect\n)\n"
	rows := []dependency{{module: "one.example/a", reason: "r", licence: "MIT", importers: []string{"server"}}, {module: "four.example/d", reason: "r"}}
	found := strings.Join(checkDependencies(gomod, rows), "\n")
	for _, want := range []string{"two.example/b is missing", "four.example/d is not in go.mod", "four.example/d has an empty column"} {
		if !strings.Contains(found, want) {
			t.Errorf("%q is not found in:\n%s", want, found)
		}
	}
	if strings.Contains(found, "one.example") || strings.Contains(found, "three.example") {
		t.Errorf("found too much:\n%s", found)
	}
}

func checkDependencies(gomod string, rows []dependency) []string {
	direct, indirect := requires(gomod)
	var found []string
	for _, module := range direct {
		if !slices.ContainsFunc(rows, func(d dependency) bool { return d.module == module }) {
			found = append(found, dependencyFile+": "+module+" is missing")
		}
	}
	for _, d := range rows {
		if !slices.Contains(direct, d.module) && !slices.Contains(indirect, d.module) {
			found = append(found, dependencyFile+": "+d.module+" is not in go.mod")
		}
		if d.reason == "" || d.licence == "" || len(d.importers) == 0 {
			found = append(found, dependencyFile+": "+d.module+" has an empty column")
		}
	}
	return found
}

// requires returns the modules that a go.mod names, without their versions.
func requires(gomod string) (direct, indirect []string) {
	block := false
	for line := range strings.Lines(gomod) {
		line = strings.TrimSpace(line)
		rest, single := strings.CutPrefix(line, "require ")
		switch {
		case rest == "(":
			block = true
		case line == ")":
			block = false
		case (block || single) && rest != "":
			module, tail, _ := strings.Cut(rest, " ")
			if strings.Contains(tail, "// indirect") {
				indirect = append(indirect, module)
			} else {
				direct = append(direct, module)
			}
		}
	}
	return direct, indirect
}

// rowOf finds the row of the module that holds an import path: the longest
// module path that is a prefix of it.
func rowOf(imported string, rows []dependency) (dependency, bool) {
	var best dependency
	for _, d := range rows {
		if matches(d.module+"/...", imported) && len(d.module) > len(best.module) {
			best = d
		}
	}
	return best, best.module != ""
}

// dependencies reads the first table of the file: module, reason, licence,
// importers.
func dependencies(t *testing.T) []dependency {
	t.Helper()
	var rows []dependency
	for line := range strings.Lines(read(t, dependencyFile)) {
		if strings.HasPrefix(line, "## ") && len(rows) > 0 {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.Contains(cells[0], "`") {
			continue
		}
		d := dependency{module: strings.Trim(cells[0], " `"), reason: strings.TrimSpace(cells[1]), licence: strings.TrimSpace(cells[2])}
		for name := range strings.SplitSeq(cells[3], ",") {
			if name = strings.Trim(name, " `"); name != "" {
				d.importers = append(d.importers, name)
			}
		}
		rows = append(rows, d)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table", dependencyFile)
	}
	return rows
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
