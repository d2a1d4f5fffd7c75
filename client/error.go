package client

import (
	"fmt"
	"strings"
)

// Code is the stable name of an error.
type Code string

type codeInfo struct {
	Status, Exit       int
	Retry, Title, Next string
}

// Advice on repeating a call, in Error.Retry.
const (
	RetryNever       = "never"
	RetrySameRequest = "same_request" // repeat under the same request id
	RetryAfterMS     = "after_ms"     // repeat later, see Error.AfterMS
	RetryInspect     = "inspect"      // look what happened, or repeat under the same request id
)

// Error is a failure that the hub answered, or that the client found on the
// way (hub_unreachable, hub_identity_mismatch, outcome_unknown).
type Error struct {
	Code   Code
	Title  string
	Detail string
	Hint   string
	Field  string // the argument that was refused, if one was
	Status int    // of HTTP; 0 when there was no answer
	// RequestID is the id under which a mutation was or may be recorded.
	RequestID string
	Retry     string
	AfterMS   int64
	Next      [][]string // commands (argv) that help now
	// Findings are all that is wrong with the plan of a wave, for plan_invalid.
	Findings []PlanFinding
	Err      error
}

// Errorf returns an error of the code, with its title, retry advice and the
// hint that holds for all errors of the code.
func Errorf(code Code, format string, args ...any) *Error {
	info := catalogue[code]
	return &Error{
		Code: code, Title: info.Title, Status: info.Status, Retry: info.Retry, Hint: info.Next, Detail: fmt.Sprintf(format, args...),
	}
}

// Error returns code, detail (or title) and cause in one line.
func (e *Error) Error() string {
	text := e.Detail
	if text == "" {
		text = e.Title
	}
	if text != "" {
		text = ": " + text
	}
	if e.Err != nil && !strings.Contains(text, e.Err.Error()) {
		text += ": " + e.Err.Error()
	}
	return string(e.Code) + text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is match by code: errors.Is(err, &Error{Code: CodeX}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// ExitCode is the process exit code that stands for the error. A code that
// this version does not know counts by its HTTP status.
func (e *Error) ExitCode() int {
	if info, ok := catalogue[e.Code]; ok {
		return info.Exit
	}
	switch e.Status {
	case 400, 405, 413, 415, 422:
		return 2
	case 401, 403, 421:
		return 4
	case 404:
		return 3
	case 409, 410, 412, 426:
		return 5
	case 429, 503, 507:
		return 6
	case 202:
		return 10
	}
	return 1
}
