package servertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/wavehub/wavehub/openapi/api"
)

// outside are the addresses that the document itself does not describe.
var outside = map[string]bool{"/openapi.json": true, "/openapi.yaml": true, "/docs": true}

// Server-sent events are text.
func init() {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.RegisteredBodyDecoder("text/plain"))
}

// Validate returns a handler that answers as h does and fails the test for an
// answer that the API's document does not allow: status, media type, body. The
// bytes pass as they come, so waits and their white space stay as they are.
// The handler may be used from several goroutines until the test ends.
func Validate(t testing.TB, h http.Handler) http.Handler {
	t.Helper()
	doc, err := api.GetSpec()
	if err != nil {
		t.Fatalf("reading the API document: %v", err)
	}
	doc.OpenAPI, doc.Servers = "3.0.3", nil // the 3.0 checks know type lists too, and need no compiling per answer
	for _, ref := range doc.Components.Schemas {
		permitAnything(ref.Value)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatalf("routing the API document: %v", err)
	}
	v := validator{router, doc}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &copier{ResponseWriter: w}
		h.ServeHTTP(c, r)
		if err := v.check(r, c); err != nil {
			t.Errorf("%s %s answers %d: %v\n%s", r.Method, r.URL.Path, c.status, err, c.body.Bytes())
		}
	})
}

// permitAnything lets schemas that name no type take null, as 3.1 means them.
func permitAnything(s *openapi3.Schema) {
	for _, p := range s.Properties {
		if p.Ref != "" {
			continue
		}
		v := p.Value
		v.Nullable = v.Nullable || v.Type == nil && len(v.OneOf)+len(v.AnyOf)+len(v.AllOf)+len(v.Enum) == 0
		permitAnything(v)
	}
}

type validator struct {
	router routers.Router
	doc    *openapi3.T
}

func (v validator) check(r *http.Request, c *copier) error {
	if c.status == 0 || r.Context().Err() != nil || outside[r.URL.Path] {
		return nil // the client has left; or not described
	}
	raw := bytes.TrimSpace(c.body.Bytes())
	if c.status >= 400 {
		return v.schema("Problem", raw)
	}
	if c.status == http.StatusOK && bytes.HasPrefix(raw, []byte(`{"problem":`)) {
		return v.schema("WaitFailure", raw)
	}
	route, params, err := v.router.FindRoute(r)
	if err != nil {
		return fmt.Errorf("an answer without a route: %w", err)
	}
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 afterWait(route, c.status), Header: c.Header(), Body: io.NopCloser(bytes.NewReader(raw)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
}

// afterWait is the status that describes the body: that of a wait is always
// 200, though its operation may have another one.
func afterWait(route *routers.Route, status int) int {
	if responses := route.Operation.Responses; status == http.StatusOK && responses.Status(status) == nil {
		return http.StatusCreated
	}
	return status
}

func (v validator) schema(name string, raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	return v.doc.Components.Schemas[name].Value.VisitJSON(value)
}

// copier keeps what it passes on.
type copier struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader notes the status.
func (c *copier) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write notes the bytes.
func (c *copier) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	c.body.Write(b)
	return c.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (c *copier) Unwrap() http.ResponseWriter { return c.ResponseWriter }
