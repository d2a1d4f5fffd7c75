package client

import "log/slog"

const redacted = "[redacted]"

// Secret is text that does not print: every formatting, logging and encoding
// of it gives "[redacted]".
type Secret string

// Reveal returns the text itself, for the one place that sends it.
func (s Secret) Reveal() string { return string(s) }

// String returns "[redacted]", or "" for no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
