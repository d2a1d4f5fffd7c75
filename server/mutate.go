package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
)

// verb is one mutation: its use-case, and how the outcome is shown. A replay
// goes the same way and so has the same status.
type verb[Body, Out any] struct {
	key  string // the Idempotency-Key, "" to mint one
	path string // the path's parameter
	// condition is a header that the effect depends on: it is part of what was
	// asked.
	condition string
	// secret is a field of the body that nothing stored may be derived from.
	secret string
	do     func(context.Context, receipt.Request, Body) (Out, error)
	show   func(Out) (status int, body any)
	// waits reports whether the call may take long; nil: it never does.
	waits func(Body) bool
}

// mutate is the one way in which requests change anything: decode, make the
// receipt's request, call the use-case, map, write.
func mutate[Body, Out any](s *Server, w http.ResponseWriter, r *http.Request, v verb[Body, Out]) {
	c := callOf(r)
	body, err := decode[Body](c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	q, err := receipt.New(c.principal, hub.RequestID(v.key), c.op.id, arguments(c, v.path, v.condition, v.secret))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	c.key = q.Key
	run := func(ctx context.Context) (int, any, error) {
		out, err := v.do(ctx, q, body)
		if err != nil {
			return 0, nil, err
		}
		status, shown := v.show(out)
		return status, shown, nil
	}
	if v.waits != nil && v.waits(body) {
		s.patiently(w, r, run)
		return
	}
	status, shown, err := run(r.Context())
	s.reply(w, r, status, shown, err)
}

// arguments is the canonical form of what was asked: equal for bodies that
// differ in white space or in the order of keys.
func arguments(c *call, path, condition, secret string) any {
	body := c.value
	if fields, ok := body.(map[string]any); ok && secret != "" {
		fields = maps.Clone(fields)
		delete(fields, secret)
		body = fields
	}
	if body == nil {
		body = map[string]any{}
	}
	args := map[string]any{"path": path, "body": body}
	if condition != "" {
		args["condition"] = condition
	}
	return args
}

func decode[Body any](c *call) (Body, error) {
	var body Body
	if len(c.raw) == 0 {
		return body, nil
	}
	err := json.Unmarshal(c.raw, &body)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		body, err = decodeWhole[Body](c.value)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return body, hub.Invalid(fieldName([]string{e.Field}), "a %s does not fit", e.Value)
	}
	if err != nil {
		return body, malformed("it cannot be decoded")
	}
	return body, nil
}

// decodeWhole decodes a document in which a whole number, which its schema takes,
// may be written as 1e9 or 1.0.
func decodeWhole[Body any](value any) (body Body, err error) {
	raw, err := json.Marshal(wholeNumbers(value))
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	return body, err
}

// wholeNumbers is value with the whole numbers that an int64 holds in digits.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f)
		}
	case []any:
		return each(v, wholeNumbers)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, field := range v {
			out[name] = wholeNumbers(field)
		}
		return out
	}
	return value
}

// answered shows an outcome under a fixed status.
func answered[Out, Shown any](status int, show func(Out) Shown) func(Out) (int, any) {
	return func(o Out) (int, any) { return status, show(o) }
}
