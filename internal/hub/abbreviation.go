package hub

import "strings"

// Lengths of an abbreviated id: from the beginning with its prefix, or the end.
const (
	MinIDStart = 12
	IDEnd      = 6
)

// Abbreviation says what an abbreviated id is: kind is the prefix of an id of
// which text is the beginning, or "" when text is the end of one. ok is false
// for anything else.
func Abbreviation(text string) (kind string, ok bool) {
	for _, p := range []string{PrefixRun, PrefixTask, PrefixDispatch, PrefixDelivery, PrefixMessage, PrefixRequest, PrefixWorktree, PrefixTerminal} {
		if rest, found := strings.CutPrefix(text, p); found {
			return p, len(text) >= MinIDStart && len(text) < len(p)+26 && base32Text(rest)
		}
	}
	return "", len(text) == IDEnd && base32Text(text)
}

func base32Text(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("0123456789abcdefghjkmnpqrstvwxyz", c) {
			return false
		}
	}
	return true
}
