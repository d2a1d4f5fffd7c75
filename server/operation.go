package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
)

// operation is one operation of an OpenAPI document, with what the guards need
// to know of it. It is never changed.
type operation struct {
	id       string
	method   string
	pattern  string
	route    *routers.Route
	params   openapi3.Parameters
	body     *openapi3.Schema // nil: it takes none
	required bool
	maxBody  int64
	allowed  kinds
}

// mutates reports whether the operation changes something or has a body.
func (o *operation) mutates() bool { return o.method != http.MethodGet }

// operations is keyed by method and route pattern, as in "GET /v1/runs".
type operations map[string]*operation

const jsonType = "application/json"

// operationsOf lists the document's operations. One without a scope is an
// error: nothing is served that the table does not know.
func operationsOf(doc *openapi3.T, scopes map[string]kinds, limit func(id string) int64) (operations, error) {
	doc.OpenAPI, doc.Servers = "3.0.3", nil // requests use what both versions share, and 3.0 is checked without compiling schemas per call
	ops := operations{}
	for pattern, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			id := operationID(op)
			allowed, ok := scopes[id]
			if !ok {
				return nil, fmt.Errorf("server: operation %q is not in the scope table", id)
			}
			o := &operation{
				id: id, method: method, pattern: pattern, params: op.Parameters, allowed: allowed, maxBody: limit(id),
				route: &routers.Route{Spec: doc, Path: pattern, PathItem: item, Method: method, Operation: op},
			}
			o.takeBody(op.RequestBody)
			ops[method+" "+pattern] = o
		}
	}
	return ops, nil
}

// operationID is the id as the document was written: the generator embeds it
// with an upper-case initial.
func operationID(op *openapi3.Operation) string {
	return strings.ToLower(op.OperationID[:1]) + op.OperationID[1:]
}

func (o *operation) takeBody(ref *openapi3.RequestBodyRef) {
	if ref == nil || ref.Value == nil {
		return
	}
	o.required = ref.Value.Required
	if content := ref.Value.Content.Get(jsonType); content != nil {
		o.body = content.Schema.Value
	}
}

// Sizes of request bodies, in bytes.
const (
	messageBody = 2 << 20
	taskBody    = 8 << 20
	waveBody    = 64 << 20
	otherBody   = 256 << 10
)

func apiBody(id string) int64 {
	switch id {
	case "sendMessage", "sendMessages", "replyMessage", "putAgentEvent":
		return messageBody
	case "createTask", "updateTask", "startRunWorker":
		return taskBody
	case "planWave", "createWave":
		return waveBody
	}
	return otherBody
}

// large reports whether a body is too large to be read from just anybody: then
// the sender is known first.
func (o *operation) large() bool { return o.maxBody > taskBody }

// maxValues is how many values a body may hold.
func (o *operation) maxValues() int {
	if o.large() {
		return maxWaveValues
	}
	return maxValues
}

func peerBody(id string) int64 {
	switch id {
	case "peerStart", "peerProbe": // a probe carries the whole start
		return taskBody
	}
	return otherBody
}
