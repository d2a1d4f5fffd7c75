package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// maxAnswer bounds a body, in bytes: a page of the largest Tasks fits.
const maxAnswer = 256 << 20

func cancelled(ctx context.Context) error {
	return fmt.Errorf("the call was cancelled: %w", ctx.Err())
}

// patience ends a call when the hub has been silent for too long. Each byte
// received, the white space of a wait included, starts the time again.
type patience struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func newPatience(parent context.Context, limit time.Duration) *patience {
	ctx, cancel := context.WithCancelCause(parent)
	silent := fmt.Errorf("the hub said nothing for %s", limit)
	return &patience{ctx: ctx, cancel: cancel, limit: limit, timer: time.AfterFunc(limit, func() { cancel(silent) })}
}

func (p *patience) stop() {
	p.timer.Stop()
	p.cancel(nil)
}

// cause replaces a bare cancellation by the silence that led to it.
func (p *patience) cause(err error) error {
	if cause := context.Cause(p.ctx); cause != nil {
		return cause
	}
	return err
}

// heard is a reader that renews the patience.
type heard struct {
	io.Reader
	patience *patience
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		h.patience.timer.Reset(h.patience.limit)
	}
	return n, err
}

// readAnswer returns the whole body without white space around it.
func readAnswer(resp *http.Response, p *patience) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(heard{resp.Body, p}, maxAnswer+1))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if len(raw) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return bytes.TrimSpace(raw), nil
}

// failure returns the problem that an answer is, or nil for a result. A wait
// that fails after its first byte has status 200 and {"problem": …}.
func failure(resp *http.Response, raw []byte) *Error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 && !isProblem(resp) {
		var late api.WaitFailure
		if firstKey(raw) != "problem" || json.Unmarshal(raw, &late) != nil {
			return nil
		}
		return fromProblem(late.Problem)
	}
	var problem api.Problem
	if isProblem(resp) && json.Unmarshal(raw, &problem) == nil && problem.Code != "" {
		if problem.Status == 0 {
			problem.Status = resp.StatusCode
		}
		return fromProblem(problem)
	}
	e := Errorf(CodeInternal, "the answer has status %d and is no problem document", resp.StatusCode)
	e.Status = resp.StatusCode
	return e
}

func isProblem(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json")
}

func firstKey(raw []byte) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return ""
	}
	key, err := dec.Token()
	if err != nil {
		return ""
	}
	name, _ := key.(string)
	return name
}

func fromProblem(p api.Problem) *Error {
	return &Error{
		Code: Code(p.Code), Title: p.Title, Detail: p.Detail, Hint: p.Hint, Field: p.Field,
		Status: p.Status, RequestID: p.RequestId, Retry: string(p.Retry), AfterMS: p.AfterMs, Next: p.NextCommands, Findings: p.Findings,
	}
}
