package server

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/go-chi/chi/v5"

	"github.com/wavehub/wavehub/internal/hub"
)

var filterOptions = &openapi3filter.Options{SkipSettingDefaults: true}

// check holds a request against its operation's document: parameters and body.
func (o *operation) check(r *http.Request, c *call) error {
	query, err := o.checkQuery(r)
	if err != nil {
		return err
	}
	if err := o.checkHeaders(r.Header); err != nil {
		return err
	}
	path := pathParams(r)
	if err := plainParameters(path, query); err != nil {
		return err
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: path, QueryParams: query, Route: o.route, Options: filterOptions,
	}
	for _, p := range o.params {
		if err := openapi3filter.ValidateParameter(r.Context(), in, p.Value); err != nil {
			return schemaError(p.Value.Name, err)
		}
	}
	return o.checkBody(c)
}

// checkQuery refuses unknown and repeated parameters: a misspelt one would
// silently not count.
func (o *operation) checkQuery(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, hub.Invalid("query", "it is malformed")
	}
	for name, vs := range query {
		known := slices.ContainsFunc(o.params, func(p *openapi3.ParameterRef) bool {
			return p.Value.In == openapi3.ParameterInQuery && p.Value.Name == name
		})
		if !known {
			return nil, hub.Invalid(name, "%s has no such parameter", o.id)
		}
		if len(vs) > 1 {
			return nil, hub.Invalid(name, "is given twice")
		}
	}
	return query, nil
}

// checkHeaders refuses empty and repeated parameters: a condition or a key that
// came out empty would silently not count.
func (o *operation) checkHeaders(h http.Header) error {
	for _, p := range o.params {
		if p.Value.In != openapi3.ParameterInHeader {
			continue
		}
		switch vs := h.Values(p.Value.Name); {
		case len(vs) > 1:
			return hub.Invalid(p.Value.Name, "is given twice")
		case len(vs) == 1 && strings.TrimSpace(vs[0]) == "":
			return hub.Invalid(p.Value.Name, "is empty: give it a value, or leave it out")
		}
	}
	return nil
}

// pathParams are the unescaped values of the route's parameters.
func pathParams(r *http.Request) map[string]string {
	params := chi.RouteContext(r.Context()).URLParams
	out := make(map[string]string, len(params.Keys))
	for i, key := range params.Keys {
		out[key] = params.Values[i]
		if v, err := url.PathUnescape(params.Values[i]); err == nil {
			out[key] = v
		}
	}
	return out
}

func (o *operation) checkBody(c *call) error {
	switch {
	case o.body == nil:
		return nil
	case len(c.raw) == 0 && o.required:
		return hub.Invalid("body", "it is missing")
	case len(c.raw) == 0:
		return nil
	}
	if err := o.body.VisitJSON(c.value, openapi3.VisitAsRequest()); err != nil {
		return schemaError("", err)
	}
	return plainText(nil, c.value, o.body)
}

// schemaError names the field that a document refuses.
func schemaError(parameter string, err error) error {
	var path []string
	if parameter != "" {
		path = append(path, parameter)
	}
	schema, ok := errors.AsType[*openapi3.SchemaError](err)
	if !ok {
		return hub.Invalid(fieldName(path), "%s", firstLine(err))
	}
	path = append(path, schema.JSONPointer()...)
	if name, ok := unknownProperty(schema.Reason); ok {
		path = append(path, name)
	}
	return hub.Invalid(fieldName(path), "%s", schema.Reason)
}

// unknownProperty returns the property that a reason calls unsupported: its
// error points at the object, not at the property.
func unknownProperty(reason string) (string, bool) {
	rest, found := strings.CutPrefix(reason, "property ")
	quoted, known := strings.CutSuffix(rest, " is unsupported")
	name, err := strconv.Unquote(quoted)
	return name, found && known && err == nil
}

func fieldName(path []string) string {
	if len(path) == 0 {
		return "body"
	}
	return strings.Join(path, ".")
}

// firstLine is what was wrong with a parameter that cannot be parsed; further
// lines repeat schemas and values.
func firstLine(err error) string {
	if e, ok := errors.AsType[*openapi3filter.RequestError](err); ok && e.Err != nil {
		err = e.Err
	}
	if _, ok := errors.AsType[*openapi3filter.ParseError](err); ok {
		return "it is malformed"
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// badParameter answers for a parameter that the generated router cannot bind.
func (s *Server) badParameter(w http.ResponseWriter, r *http.Request, err error) {
	s.fail(w, r, hub.Invalid(parameterOf(err), "it is malformed"))
}
