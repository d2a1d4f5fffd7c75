package servertest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// failures collects what Validate reports.
type failures struct {
	testing.TB
	found []string
}

func (*failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.found = append(f.found, fmt.Sprintf(format, args...))
}

func TestValidateFindsWrongAnswers(t *testing.T) {
	const problem = `{"code":"not_found","title":"t","status":404,"retry":"never"}`
	for name, c := range map[string]struct {
		method, path, media, body string
		status                    int
		ok                        bool
	}{
		"a page":                    {"GET", "/v1/runs", "application/json", `{"runs":[],"next_cursor":null}`, 200, true},
		"white space before it":     {"GET", "/v1/runs", "application/json", `   {"runs":[],"next_cursor":null}`, 200, true},
		"a page without its cursor": {"GET", "/v1/runs", "application/json", `{"runs":[]}`, 200, false},
		"null for a list":           {"GET", "/v1/runs", "application/json", `{"runs":null,"next_cursor":null}`, 200, false},
		"no binding":                {"POST", "/v1/runs", "application/json", `{"run":{"run_id":"r","objective":"o","generation":0,"parent_run_id":null,"created_at":"2026-01-01T00:00:00Z"},"binding":null,"mutation":{"request_id":"q","replayed":false}}`, 201, true},
		"the wrong status":          {"GET", "/v1/runs", "application/json", `{"runs":[],"next_cursor":null}`, 201, false},
		"the wrong media type":      {"GET", "/v1/runs", "text/plain", `{"runs":[],"next_cursor":null}`, 200, false},
		"a problem":                 {"GET", "/v1/runs", "application/problem+json", problem, 404, true},
		"a problem nobody knows":    {"GET", "/v1/runs", "application/problem+json", strings.Replace(problem, "not_found", "oops", 1), 404, false},
		"a problem of no address":   {"GET", "/v9", "application/problem+json", problem, 404, true},
		"an answer of no address":   {"GET", "/v9", "application/json", "{}", 200, false},
		"a late problem":            {"POST", "/v1/mailboxes/b/check", "application/json", ` {"problem":` + problem + `}`, 200, true},
		"a late half problem":       {"POST", "/v1/mailboxes/b/check", "application/json", ` {"problem":{}}`, 200, false},
		"the document":              {"GET", "/openapi.yaml", "application/yaml", "anything", 200, true},
	} {
		f := &failures{TB: t}
		h := Validate(f, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.media)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, nil))
		if (len(f.found) == 0) != c.ok {
			t.Errorf("%s: %q", name, f.found)
		}
	}
}
