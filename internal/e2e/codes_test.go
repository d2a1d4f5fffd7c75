//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

type errorCode struct {
	Code   string `yaml:"code"`
	Status int    `yaml:"status"`
	Exit   int    `yaml:"exit"`
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
