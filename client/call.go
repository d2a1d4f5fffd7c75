package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/wavehub/wavehub/internal/id"
)

// Option changes one call.
type Option func(*call)

// WithRequestID makes a mutation use the id (req_…) instead of a fresh one:
// repeat a call under the id of its Error to learn what became of it.
func WithRequestID(requestID string) Option {
	return func(c *call) { c.requestID = requestID }
}

// WithBody stores the answer's JSON document as received, without the white
// space of a wait around it. It is set only when the call returns no error.
func WithBody(dst *json.RawMessage) Option {
	return func(c *call) { c.body = dst }
}

// WithStatus stores the HTTP status of a successful answer: 202 says that the
// outcome is not known yet.
func WithStatus(dst *int) Option {
	return func(c *call) { c.status = dst }
}

type call struct {
	requestID string // of a mutation; empty for a read
	mutation  bool
	wait      time.Duration // how long the hub was asked to wait
	body      *json.RawMessage
	status    *int
	sent      atomic.Bool // a connection was handed the request
}

type sender func(ctx context.Context, requestID string) (*http.Response, error)

func mutate[T any](ctx context.Context, c *Client, wait time.Duration, opts []Option, send sender) (*T, error) {
	cl := &call{mutation: true, wait: wait}
	for _, opt := range opts {
		opt(cl)
	}
	if cl.requestID == "" {
		cl.requestID = id.New("req_")
	}
	return perform[T](ctx, c, cl, send)
}

func read[T any](ctx context.Context, c *Client, wait time.Duration, opts []Option, send func(ctx context.Context) (*http.Response, error)) (*T, error) {
	cl := &call{wait: wait}
	for _, opt := range opts {
		opt(cl)
	}
	cl.requestID = ""
	return perform[T](ctx, c, cl, func(ctx context.Context, _ string) (*http.Response, error) { return send(ctx) })
}

func perform[T any](ctx context.Context, c *Client, cl *call, send sender) (*T, error) {
	patience := newPatience(ctx, c.timeout+cl.wait)
	defer patience.stop()
	traced := httptrace.WithClientTrace(patience.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { cl.sent.Store(true) },
	})
	resp, err := send(traced, cl.requestID)
	if err != nil {
		return nil, cl.lost(ctx, patience.cause(err))
	}
	raw, err := readAnswer(resp, patience)
	if err != nil {
		return nil, cl.lost(ctx, patience.cause(err))
	}
	if err := failure(resp, raw); err != nil {
		return nil, cl.stamp(err)
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, cl.lost(ctx, err)
	}
	cl.keep(resp.StatusCode, raw)
	return out, nil
}

func (cl *call) keep(status int, raw []byte) {
	if cl.body != nil {
		*cl.body = raw
	}
	if cl.status != nil {
		*cl.status = status
	}
}

// stamp adds the mutation's request id to a refusal that does not name it.
func (cl *call) stamp(e *Error) error {
	if cl.mutation && e.RequestID == "" {
		e.RequestID = cl.requestID
	}
	return e
}

// lost says what it means that no whole answer came.
func (cl *call) lost(ctx context.Context, cause error) error {
	var other *identityError
	switch {
	case errors.As(cause, &other):
		return cl.identity(other)
	case cl.mutation && cl.sent.Load():
		return cl.unknown(cause)
	case errors.Is(ctx.Err(), context.Canceled):
		return cancelled(ctx)
	}
	e := Errorf(CodeHubUnreachable, "%v", cause)
	e.RequestID, e.Err = cl.requestID, cause
	return e
}

func (cl *call) identity(cause *identityError) error {
	e := Errorf(CodeHubIdentityMismatch, "%v", cause)
	e.Hint = "nothing was sent; find out who answers at this address before you trust the new key"
	e.RequestID, e.Err = cl.requestID, cause
	return e
}

func (cl *call) unknown(cause error) error {
	e := Errorf(CodeOutcomeUnknown, "the request was sent, and its answer was lost: %v", cause)
	e.Status = 0
	e.Hint = "repeat the same call under request id " + cl.requestID + ": it has at most one effect"
	e.RequestID, e.Err = cl.requestID, cause
	return e
}
