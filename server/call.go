package server

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/metrics"
)

// call is what the guards found out about one request. Only the goroutine of
// its handler uses it.
type call struct {
	op        *operation
	principal hub.Principal
	peer      hub.Peer // on the peer mux
	hub       string   // the other hub that it is for, "" for this one
	raw       []byte   // body
	value     any      // body, decoded; numbers are json.Number
	key       hub.RequestID
}

type callKey struct{}

// callOf returns the request's call; observe has put it there.
func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// observe gives the request its call, counts it, and answers for a handler
// that panics.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rec, start := &call{}, &recorder{ResponseWriter: w}, time.Now()
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		freshDeadlines(rec)
		defer func() {
			cut := s.recovered(rec, r, recover())
			s.count(rec, r, c, time.Since(start))
			if cut {
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// recovered answers for a panic, v, and reports whether the answer had begun
// already, so that only cutting the connection tells the client.
func (s *Server) recovered(rec *recorder, r *http.Request, v any) (cut bool) {
	if v == nil || v == http.ErrAbortHandler {
		return v != nil
	}
	s.cfg.Log.Error("a handler panicked", "route", routeOf(r), "panic", v, "stack", string(debug.Stack()))
	if rec.status != 0 {
		return true
	}
	s.writeProblem(rec, r, s.problem(r, errPanic))
	return false
}

func (s *Server) count(rec *recorder, r *http.Request, c *call, took time.Duration) {
	s.cfg.Metrics.Request(routeOf(r), rec.status, took)
	if c.op == nil || !c.op.mutates() {
		return
	}
	result := metrics.ResultOK
	switch {
	case rec.status >= 500 || rec.status == 0:
		result = metrics.ResultFailed
	case rec.status >= 300:
		result = metrics.ResultRefused
	}
	s.cfg.Metrics.Mutation(c.op.id, result)
}

// routeOf names the route of a request for logs and metrics: never an id.
func routeOf(r *http.Request) string {
	if c := callOf(r); c.op != nil {
		return c.op.method + " " + c.op.pattern
	}
	if rctx := chi.RouteContext(r.Context()); rctx != nil {
		for _, path := range documentPaths {
			if rctx.RoutePattern() == path {
				return "GET " + path
			}
		}
	}
	return "none"
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int // 0 until the answer begins
}

// WriteHeader notes a final status and passes it on.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write notes the status that writing implies and passes the bytes on.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController and websockets reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
