package intake

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wavehub/wavehub/internal/hub"
)

var update = flag.Bool("update", false, "write the golden files")

// samples are the files of tasks in testdata by their names, which end with format
// and extension.
func samples(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.json", "*.md"} {
		paths, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(path)] = string(raw)
		}
	}
	if len(all) < 5 {
		t.Fatalf("%d samples only", len(all))
	}
	return all
}

// shot is all that is read of a file.
type shot struct {
	Tasks              []hub.WaveEntry
	Findings, Warnings []hub.Finding
}

func read(format, name, text string) shot {
	var s shot
	s.Tasks, s.Findings, s.Warnings = Read(format, name, text)
	return s
}

func TestGolden(t *testing.T) {
	for name, text := range samples(t) {
		t.Run(name, func(t *testing.T) {
			parts := strings.Split(name, ".")
			format := parts[len(parts)-2]
			asked := strings.Replace(name, "."+format, "", 1)
			got := read(format, asked, text)
			if diff := cmp.Diff(got, read(FormatAuto, asked, text)); diff != "" {
				t.Errorf("auto reads something else:\n%s", diff)
			}
			checkGolden(t, name, got)
		})
	}
}

func checkGolden(t *testing.T, name string, s shot) {
	t.Helper()
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("differs from %s (-update writes it):\n%s", path, diff)
	}
}
