package intake

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wavehub/wavehub/internal/hub"
)

func FuzzTasksJSON(f *testing.F)  { fuzzFormat(f, FormatTasksJSON) }
func FuzzSpecKit(f *testing.F)    { fuzzFormat(f, FormatSpecKit) }
func FuzzGSD(f *testing.F)        { fuzzFormat(f, FormatGSD) }
func FuzzTaskmaster(f *testing.F) { fuzzFormat(f, FormatTaskmaster) }
func FuzzAuto(f *testing.F)       { fuzzFormat(f, FormatAuto) }

// fuzzFormat: whatever the text, reading it ends in the same tasks and notes each
// time, with lines that the text has.
func fuzzFormat(f *testing.F, format string) {
	for name, text := range samples(f) {
		f.Add(name, text)
	}
	for _, c := range hostile(200) {
		f.Add("tasks.md", c[1])
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		got := read(format, name, text)
		if diff := cmp.Diff(got, read(format, name, text)); diff != "" {
			t.Errorf("another time it is:\n%s", diff)
		}
		last := 1 + strings.Count(text, "\n")
		for _, f := range append(got.Findings, got.Warnings...) {
			if f.Line < 1 && f.Detail != "" && !strings.Contains(f.Detail, " more ") || f.Line > last || f.Code == "" || f.Detail == "" || f.Tasks == nil {
				t.Errorf("a note of a text of %d lines: %+v", last, f)
			}
			if f.Code == hub.FindFileInvalid && len(got.Tasks) > 0 && f.Line > 0 {
				t.Errorf("%d tasks of a file with %+v", len(got.Tasks), f)
			}
		}
		for _, e := range got.Tasks {
			if e.Token == "" || format != FormatTasksJSON && format != FormatAuto && !hub.ValidToken(e.Token) && !strings.HasPrefix(e.Token, "T") {
				t.Errorf("the token %q", e.Token)
			}
		}
	})
}
