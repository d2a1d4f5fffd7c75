package safefile

import (
	"errors"
	"fmt"
)

// ErrUnsafe is what every refusal for a privacy reason matches with errors.Is.
var ErrUnsafe = errors.New("not private")

// ErrTooLarge is returned for a file that is larger than its reader allows.
var ErrTooLarge = errors.New("file is too large")

// UnsafeError says which path was refused, why, and what would mend it.
type UnsafeError struct {
	Path, Problem, Fix string
}

// Error names the path, the problem and the fix.
func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s %s; fix: %s", e.Path, e.Problem, e.Fix)
}

// Unwrap returns ErrUnsafe.
func (e *UnsafeError) Unwrap() error { return ErrUnsafe }
