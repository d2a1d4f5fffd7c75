package server

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestEveryOperationRefuses is made from the document: what every operation
// with a body, or every operation, has to refuse.
func TestEveryOperationRefuses(t *testing.T) {
	w := newWorld(t)
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	for _, o := range w.server.apiOps {
		if o.allowed&anyone != 0 {
			continue
		}
		bad := map[string]func(*request){
			"invalid_token/missing":   func(q *request) {},
			"invalid_token/unknown":   func(q *request) { q.token = tokenOf("whu_", "somebody") },
			"invalid_token/malformed": func(q *request) { q.token = w.operator + "x" },
			"invalid_token/consumer":  func(q *request) { q.token = tokenOf("whc_", "somebody") },
			"invalid_argument/query":  func(q *request) { q.token = w.allowed(o); q.path += "?no_such_parameter=1" },
			"method_not_allowed/":     func(q *request) { q.method, q.body = "DELETE", "" },
			"host_forbidden/":         func(q *request) { q.host = "evil.example" },
			"origin_forbidden/":       func(q *request) { q.header = map[string]string{"Origin": "https://evil.example"} },
		}
		if o.body != nil {
			for name, body := range map[string]string{
				"invalid_json/duplicate": `{"x":1,"x":2}`,
				"invalid_json/nested":    `{"x":` + deep + `}`,
				"invalid_json/trailing":  `{} {}`,
				"invalid_json/cut":       `{"x":`,
				"invalid_json/number":    `{"x":1e309}`,
				"invalid_json/text":      "{\"x\":\"\xff\"}",
				"too_large/":             `{"x":"` + strings.Repeat("y", int(o.maxBody)) + `"}`,
			} {
				bad[name] = func(q *request) { q.token, q.body = w.first(o), body }
			}
			bad["unsupported_media_type/"] = func(q *request) { q.token, q.header = w.first(o), map[string]string{"Content-Type": "text/plain"} }
			bad["unsupported_media_type/encoding"] = func(q *request) {
				q.token, q.header = w.first(o), map[string]string{"Content-Encoding": "gzip"}
			}
			bad["invalid_argument/unknown"] = func(q *request) { q.token, q.body = w.allowed(o), `{"no_such_field":1}` }
			bad["invalid_argument/type"] = func(q *request) { q.token, q.body = w.allowed(o), `[]` }
		} else {
			bad["invalid_argument/body"] = func(q *request) { q.token, q.body = w.allowed(o), `{}` }
		}
		for name, change := range bad {
			q := example(o)
			change(&q)
			code, _, _ := strings.Cut(name, "/")
			if got := w.do(q); got.code() != code || code == "invalid_argument" && got.text("field") == "" {
				t.Errorf("%s: %s: %d %s", o.id, name, got.status, got.raw)
			}
		}
	}
	if log := w.log.all(); strings.Contains(log, "ERROR") {
		t.Errorf("a refusal is logged as an error:\n%s", log)
	}
}

// first is the credential that the operation looks at before the body.
func (w *world) first(o *operation) string {
	if o.large() {
		return w.allowed(o)
	}
	return ""
}

// allowed is a credential that may use the operation.
func (w *world) allowed(o *operation) string {
	if o.allowed&operator != 0 {
		return w.operator
	}
	if o.allowed&worker == 0 {
		return w.attached
	}
	return w.capability
}

// TestEveryPropertyIsChecked takes the schema of each body: a value of the
// wrong type for each property names that property.
func TestEveryPropertyIsChecked(t *testing.T) {
	w := newWorld(t)
	checked := 0
	for _, o := range w.server.apiOps {
		if o.body == nil {
			continue
		}
		for name, schema := range o.body.Properties {
			if schema.Value.Type == nil {
				continue // any JSON
			}
			value := `"text"`
			if schema.Value.Type.Is("string") {
				value = "7"
			}
			q := example(o)
			q.token, q.body = w.allowed(o), withRequired(o, name, value)
			got := w.do(q)
			if got.code() != "invalid_argument" || got.text("field") != name {
				t.Errorf("%s: %s = %s: %d %s", o.id, name, value, got.status, got.raw)
			}
			checked++
		}
	}
	if checked < 40 {
		t.Errorf("only %d properties were found", checked)
	}
}

// withRequired is a body with the operation's required texts and one more
// property.
func withRequired(o *operation, name, value string) string {
	parts := []string{`"` + name + `":` + value}
	for _, r := range o.body.Required {
		if r == name {
			continue
		}
		parts = append(parts, `"`+r+`":`+required(o.body.Properties[r].Value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// required is a value of the schema, with what is required of it.
func required(s *openapi3.Schema) string {
	switch {
	case len(s.Enum) > 0:
		return `"` + s.Enum[0].(string) + `"`
	case s.Type == nil || !s.Type.Is("object"):
		return `"x"`
	}
	var parts []string
	for _, r := range s.Required {
		parts = append(parts, `"`+r+`":`+required(s.Properties[r].Value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestRefusalsNameTheField(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ path, body, field string }{
		{"/v1/runs", `{}`, "objective"},
		{"/v1/runs", `{"objective":""}`, "objective"},
		{"/v1/runs", `{"objective":"x","bind":"maybe"}`, "bind"},
		{"/v1/runs", `{"objective":"x","nope":1}`, "nope"},
		{"/v1/runs", `{"objective":"` + strings.Repeat("x", 4097) + `"}`, "objective"},
		{"/v1/runs", ``, "body"},
		{"/v1/runs/r/tasks", `{"spec":"x","write_scope":["a",3]}`, "write_scope.1"},
		{"/v1/mailboxes/b/check", `{"limit":51}`, "limit"},
		{"/v1/mailboxes/b/check", `{"wait_ms":-1}`, "wait_ms"},
		{"/v1/mailboxes/b/check", `{"limit":1.5}`, "limit"},
		{"/v1/messages", `{"type":"answer"}`, "type"},
		{"/v1/messages", `{"type":"status","payload":[]}`, "payload"},
		{"/v1/pairing/invites", `{"ttl_ms":1}`, "ttl_ms"},
	} {
		q := request{method: "POST", path: c.path, body: c.body, token: w.operator, header: map[string]string{"Content-Type": "application/json"}}
		if got := w.must(400, q); got.text("field") != c.field {
			t.Errorf("%s %s: field %q, want %q: %s", c.path, c.body, got.text("field"), c.field, got.raw)
		}
	}
	for path, field := range map[string]string{
		"/v1/runs?limit=0":                              "limit",
		"/v1/runs?limit=201":                            "limit",
		"/v1/runs?limit=many":                           "limit",
		"/v1/runs?limit=1&limit=2":                      "limit",
		"/v1/runs?limits=1":                             "limits",
		"/v1/runs?cursor=x%zz":                          "query",
		"/v1/runs/r/tasks?state=gone":                   "state",
		"/v1/mailboxes/b/messages?mode=some":            "mode",
		"/v1/mailboxes/b/messages?types=status,nope":    "types.1",
		"/v1/dispatches?live=perhaps":                   "live",
		"/v1/dispatches?run=" + strings.Repeat("x", 65): "run",
		"/v1/runs/" + strings.Repeat("x", 65):           "run",
	} {
		if got := w.get(400, path); got.text("field") != field {
			t.Errorf("%s: field %q, want %q: %s", path, got.text("field"), field, got.raw)
		}
	}
}

func TestIdempotencyKeyIsChecked(t *testing.T) {
	w := newWorld(t)
	got := w.must(400, request{method: "POST", path: "/v1/runs", body: `{"objective":"x"}`, token: w.operator, key: "mine"})
	if got.text("field") != "Idempotency-Key" {
		t.Errorf("%s", got.raw)
	}
	q := request{method: "POST", path: "/v1/runs", body: `{"objective":"x"}`, token: w.operator}.http()
	q.Header["Idempotency-Key"] = []string{"req_a", "req_b"}
	if got := serve(t, w.server.API(), q); got.code() != "invalid_argument" {
		t.Errorf("two keys: %s", got.raw)
	}
}
