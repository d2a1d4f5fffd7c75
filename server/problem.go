package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

// fail answers with the problem that err is. A client that has left gets none.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if clientGone(r, err) {
		return
	}
	s.writeProblem(w, r, s.problem(r, err))
}

func clientGone(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, context.Canceled)
}

// problem translates err. What is no error of the catalogue is logged, once,
// and answered as internal, without a word of it.
func (s *Server) problem(r *http.Request, err error) api.Problem {
	e, ok := errors.AsType[*hub.Error](err)
	if !ok || !e.Code.Known() || e.Code.Info().Status == 0 || e.Code == hub.CodeInternal {
		if !ok || e != errPanic {
			s.cfg.Log.Error("a request failed", "route", routeOf(r), "error", err)
		}
		e = &hub.Error{Code: hub.CodeInternal}
	}
	if e.Code == hub.CodeInvalidToken {
		e = errToken
	}
	info := e.Code.Info()
	return api.Problem{
		Code: api.ErrorCode(e.Code), Title: info.Title, Status: info.Status, Retry: api.ProblemRetry(info.Retry),
		Detail: e.Message, Hint: cmp.Or(e.Hint, info.Next), Field: e.Field, AfterMs: e.AfterMS, NextCommands: e.Next,
		RequestId: string(callOf(r).key), Findings: each(e.Findings, planFinding),
	}
}

// errPanic stands for a panic, which has been logged with its stack.
var errPanic = hub.Errorf(hub.CodeInternal, "")

func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, p api.Problem) {
	if p.AfterMs > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((p.AfterMs+999)/1000, 10))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	raw, err := encode(p)
	if err != nil { // strings and numbers always marshal
		panic(err)
	}
	s.write(w, r, p.Status, "application/problem+json", raw)
}
