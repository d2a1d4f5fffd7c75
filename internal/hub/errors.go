package hub

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the stable name of an error; openapi/errors.yaml is their source.
type Code string

// CodeInfo is what a code decides: HTTP status (0: never sent over HTTP), CLI
// exit code, whether a retry helps, the title of the problem document, and its
// hint where the error has none of its own: what to do next.
type CodeInfo struct {
	Status, Exit       int
	Retry, Title, Next string
}

// Info returns the catalogue's entry of c; an unknown code counts as internal.
func (c Code) Info() CodeInfo {
	if info, ok := catalogue[c]; ok {
		return info
	}
	return catalogue[CodeInternal]
}

// Known reports whether c is in the catalogue.
func (c Code) Known() bool { _, ok := catalogue[c]; return ok }

// Error is wavehub's error: a code of the catalogue, what was being done, what
// was wrong and what to do next. Next holds commands (argv) that work in the
// state that the error describes.
type Error struct {
	Code    Code
	Op      string
	Message string
	Hint    string
	Next    [][]string
	Field   string // the argument that was refused, if one was
	AfterMS int64  // when a retry may succeed, for codes that say after_ms
	// Findings are all that is wrong with a plan.
	Findings []Finding
	Err      error
}

// Error returns "op: message: cause", leaving out what is empty.
func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	switch {
	case e.Message != "":
		parts = append(parts, e.Message)
	default:
		parts = append(parts, e.Code.Info().Title)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is match by code: errors.Is(err, &Error{Code: CodeX}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Errorf returns an error of the code with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns invalid_argument for the named field.
func Invalid(field, format string, args ...any) *Error {
	e := Errorf(CodeInvalidArgument, field+": "+format, args...)
	e.Field = field
	return e
}

// WithNext adds a command that helps, and returns e.
func (e *Error) WithNext(argv ...string) *Error {
	e.Next = append(e.Next, argv)
	return e
}

// CodeOf returns the code that err carries, internal for any other error and
// "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// IsCode reports whether err carries the code.
func IsCode(err error, code Code) bool { return err != nil && CodeOf(err) == code }
