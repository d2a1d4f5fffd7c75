package config

import "fmt"

// InvalidError says which key or file is not valid, and what would mend it.
// It is the error config_invalid of the catalogue.
type InvalidError struct {
	Message string
	Hint    string // empty for none
	Err     error  // the cause, if there is one
	Given   bool   // it is about what Set was given, not about what is there
}

// Error returns message and cause.
func (e *InvalidError) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

func invalid(hint string, cause error, format string, args ...any) error {
	return &InvalidError{Message: fmt.Sprintf(format, args...), Hint: hint, Err: cause}
}
