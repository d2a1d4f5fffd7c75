package main

import (
	"strings"
	"testing"
)

func TestTheCatalogueIsComplete(t *testing.T) {
	entries, err := load("../../openapi/errors.yaml")
	if err != nil || len(entries) < 80 {
		t.Fatalf("%d codes, %v", len(entries), err)
	}
}

func TestIncompleteCataloguesAreRefused(t *testing.T) {
	good := entry{Code: "a_code", Status: 400, Exit: 2, Retry: "never", Title: "T", Next: "do"}
	for what, spoil := range map[string]func(e *entry){
		"no code":     func(e *entry) { e.Code = "A code" },
		"twice":       func(e *entry) { e.Code = "other" },
		"retry":       func(e *entry) { e.Retry = "perhaps" },
		"no title":    func(e *entry) { e.Title = "" },
		"no next":     func(e *entry) { e.Next = "" },
		"a full stop": func(e *entry) { e.Next = "do it." },
	} {
		other, bad := good, good
		other.Code = "other"
		spoil(&bad)
		if err := check([]entry{other, bad}); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if err := check([]entry{good}); err != nil {
		t.Error(err)
	}
}

func TestPage(t *testing.T) {
	text := string(page([]entry{
		{Code: "first", Status: 409, Exit: 5, Retry: "never", Title: "One | two", Next: "do this"},
		{Code: "local", Exit: 6, Retry: "same_request", Title: "Local", Next: "start it"},
		{Code: "later", Status: 404, Exit: 3, Retry: "never", Title: "Later", Next: "wait", Future: "waves"},
	}))
	for _, want := range []string{
		"## 409 Conflict\n", "| `first` | 409 | 5 | `never` | One \\| two | Do this. |\n",
		"## Without an answer", "| `local` | 0 | 6 | `same_request` | Local | Start it. |\n",
		"## Reserved\n", "| `later` | waves | 404 | 3 | `never` | Later | Wait. |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if strings.Contains(text, "## 404") {
		t.Error("a status of reserved codes alone has a table")
	}
}
