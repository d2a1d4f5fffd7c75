package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// platforms are the builds whose files the rules hold for.
var platforms = [][]string{
	{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1"},
	{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"},
	{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"},
	{"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"},
}

// imports maps a package's import path to the paths that it imports outside
// its tests.
type imports map[string][]string

func TestImports(t *testing.T) {
	all := imports{}
	for _, env := range platforms {
		for pkg, paths := range listImports(t, env) {
			all[pkg] = append(all[pkg], paths...)
		}
	}
	if len(all) < 5 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	report(t, checkInternal(all))
	report(t, checkThirdParty(all, dependencies(t)))
}

func TestImportCheckerFails(t *testing.T) {
	rows := []dependency{{module: "example.org/router/v5", importers: []string{"server", "openapi/..."}}, {module: "example.org/prop", importers: []string{"tests"}}}
	for name, c := range map[string]struct {
		pkg, imported string
		wrong         bool
	}{
		"server imports relay":              {"server", "relay", true},
		"server imports the store's ports":  {"server", "internal/store", false},
		"run imports its sibling":           {"internal/run", "internal/mail", true},
		"a leaf imports a leaf":             {"internal/safefile", "internal/id", true},
		"the hub imports a leaf but id":     {"internal/hub", "internal/clock", true},
		"the daemon imports all":            {"internal/daemon", "relay", false},
		"the daemon imports a test package": {"internal/daemon", "internal/testkit/fault", true},
		"an unknown package":                {"internal/util", "internal/hub", true},
		"a known module elsewhere":          {"internal/mail", "example.org/router/v5/middleware", true},
		"a known module at home":            {"openapi/api", "example.org/router/v5", false},
		"a test library in the product":     {"server", "example.org/prop", true},
		"a test library in the test kit":    {"internal/testkit", "example.org/prop", false},
		"a module nobody listed":            {"server", "example.org/routerish", true},
		"the standard library":              {"internal/hub", "encoding/json", false},
	} {
		imported := c.imported
		if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") && first != "encoding" {
			imported = modulePath + "/" + imported
		}
		all := imports{modulePath + "/" + c.pkg: {imported}}
		found := slices.Concat(checkInternal(all), checkThirdParty(all, rows))
		if (len(found) > 0) != c.wrong {
			t.Errorf("%s: wrong = %v expected, found %q", name, c.wrong, found)
		}
	}
}

func checkInternal(all imports) []string {
	var found []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		pkg := strings.TrimPrefix(path, modulePath+"/")
		allowed, known := allowedFor(pkg)
		if !known {
			found = append(found, fmt.Sprintf("%s is not in the table of import rules", pkg))
			continue
		}
		for _, imported := range unique(all[path]) {
			name, ours := strings.CutPrefix(imported, modulePath+"/")
			if ours && !mayImport(pkg, name, allowed) {
				found = append(found, fmt.Sprintf("%s must not import %s", pkg, name))
			}
		}
	}
	return found
}

func allowedFor(pkg string) ([]string, bool) {
	if slices.Contains(leaves, pkg) {
		return nil, true
	}
	for pattern, allowed := range importRules {
		if matches(pattern, pkg) {
			return allowed, true
		}
	}
	return nil, false
}

func mayImport(pkg, name string, allowed []string) bool {
	if matchesAny(testOnly, name) {
		return matchesAny(testOnly, pkg)
	}
	return slices.Contains(allowed, everything) || matchesAny(allowed, name)
}

// checkThirdParty holds every import from another module against the rows of
// the dependency list.
func checkThirdParty(all imports, rows []dependency) []string {
	var found []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		pkg := strings.TrimPrefix(path, modulePath+"/")
		for _, imported := range unique(all[path]) {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(imported, modulePath+"/") {
				continue
			}
			if row, ok := rowOf(imported, rows); !ok {
				found = append(found, fmt.Sprintf("%s imports %s, which %s does not list", pkg, imported, dependencyFile))
			} else if !row.mayBeImportedBy(pkg) {
				found = append(found, fmt.Sprintf("%s must not import %s: %s allows %s", pkg, imported, dependencyFile, strings.Join(row.importers, ", ")))
			}
		}
	}
	return found
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

func matches(pattern, pkg string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return pkg == base || below && strings.HasPrefix(pkg, base+"/")
}

func unique(s []string) []string { return slices.Compact(slices.Sorted(slices.Values(s))) }

// listImports asks the go command, which answers also for packages that do not
// compile.
func listImports(t *testing.T, env []string) imports {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list with %v: %v\n%s", env, err, stderr.Bytes())
	}
	all := imports{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p.Imports
	}
}

func report(t *testing.T, found []string) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}
