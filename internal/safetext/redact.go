package safetext

import (
	"bytes"
	"regexp"
	"strings"
)

// Redacted stands where a token stood.
const Redacted = "[redacted]"

var (
	tokens        = regexp.MustCompile(`wh[urcdw]_[0-9A-Za-z]{20,}`)
	tokenPrefixes = []string{"whu_", "whr_", "whc_", "whd_", "whw_"}
)

// Redact replaces everything in s that looks like one of wavehub's tokens.
func Redact(s string) string {
	for _, prefix := range tokenPrefixes {
		if strings.Contains(s, prefix) {
			return tokens.ReplaceAllString(s, Redacted)
		}
	}
	return s
}

// Mask replaces everything in raw that looks like one of wavehub's tokens by as
// many stars, so that offsets hold.
func Mask(raw []byte) []byte {
	return tokens.ReplaceAllFunc(raw, func(token []byte) []byte { return bytes.Repeat([]byte("*"), len(token)) })
}
