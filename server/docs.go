package server

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed docs.html
var docsHTML string

var docsTemplate = template.Must(template.New("docs").Parse(docsHTML))

// docsPage is the API's document as a page for people.
type docsPage struct {
	Title, Text string
	Groups      []docsGroup
	Schemas     []docsSchema
}

type docsGroup struct {
	Name string
	Ops  []docsOp
}

type docsOp struct {
	Method, Path, Summary, Text, Who string
	Params                           []docsField
	Body                             string // name of the body's schema
	Answers                          []docsField
}

type docsSchema struct {
	Name, Text string
	Fields     []docsField
}

// docsField is a parameter, a property or an answer. Ref is the schema that Type
// names, "" for a plain type.
type docsField struct {
	Name, Type, Ref, Text string
	Required              bool
}

// renderDocs makes the page, once: the document never changes.
func renderDocs(doc *openapi3.T, ops operations) ([]byte, error) {
	page := docsPage{Title: doc.Info.Title, Text: doc.Info.Description}
	groups := map[string]*docsGroup{}
	for _, tag := range doc.Tags {
		groups[tag.Name] = &docsGroup{Name: tag.Name}
	}
	for _, key := range slices.SortedFunc(maps.Keys(ops), byPath) {
		o := ops[key]
		group := groups[o.route.Operation.Tags[0]]
		group.Ops = append(group.Ops, o.docs())
	}
	for _, tag := range doc.Tags {
		page.Groups = append(page.Groups, *groups[tag.Name])
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		page.Schemas = append(page.Schemas, schemaDocs(name, doc.Components.Schemas[name].Value))
	}
	var buf bytes.Buffer
	err := docsTemplate.Execute(&buf, page)
	return buf.Bytes(), err
}

// byPath sorts "GET /v1/runs" by path, then method.
func byPath(a, b string) int {
	ma, pa, _ := strings.Cut(a, " ")
	mb, pb, _ := strings.Cut(b, " ")
	return strings.Compare(pa+" "+ma, pb+" "+mb)
}

func (o *operation) docs() docsOp {
	op := o.route.Operation
	out := docsOp{Method: o.method, Path: o.pattern, Summary: op.Summary, Text: op.Description, Who: o.allowed.String()}
	for _, p := range o.params {
		f := fieldDocs(p.Value.Name, p.Value.Schema)
		f.Name += " (" + p.Value.In + ")"
		f.Required, f.Text = p.Value.Required, p.Value.Description
		out.Params = append(out.Params, f)
	}
	if op.RequestBody != nil {
		out.Body = bodyRef(op.RequestBody.Value.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
		r := op.Responses.Map()[status].Value
		out.Answers = append(out.Answers, docsField{Name: status, Text: *r.Description, Ref: bodyRef(r.Content)})
	}
	return out
}

// bodyRef is the name of the schema of a body, "" for none.
func bodyRef(content openapi3.Content) string {
	for _, media := range content {
		if media.Schema != nil {
			return refName(media.Schema.Ref)
		}
	}
	return ""
}

func refName(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

func schemaDocs(name string, s *openapi3.Schema) docsSchema {
	out := docsSchema{Name: name, Text: strings.TrimSpace(s.Description + " " + choices(s))}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		f := fieldDocs(field, s.Properties[field])
		f.Required = slices.Contains(s.Required, field)
		out.Fields = append(out.Fields, f)
	}
	return out
}

func fieldDocs(name string, ref *openapi3.SchemaRef) docsField {
	if ref == nil || ref.Value == nil {
		return docsField{Name: name}
	}
	s := ref.Value
	f := docsField{Name: name, Text: strings.TrimSpace(s.Description + " " + choices(s)), Ref: refName(ref.Ref)}
	f.Type = "any"
	if s.Type != nil {
		f.Type = strings.Join(s.Type.Slice(), " or ")
	}
	if s.Items != nil && f.Ref == "" {
		f.Ref = refName(s.Items.Ref)
	}
	return f
}

func choices(s *openapi3.Schema) string {
	if len(s.Enum) == 0 {
		return ""
	}
	words := make([]string, len(s.Enum))
	for i, v := range s.Enum {
		words[i] = fmt.Sprint(v)
	}
	return "One of " + strings.Join(words, ", ") + "."
}

// getDocs shows the API's document to people.
func (s *Server) getDocs(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	s.write(w, r, http.StatusOK, "text/html; charset=utf-8", s.docs)
}
