package worktree

import (
	"regexp"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

var (
	nameGrammar = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	refGrammar  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/@+-]{0,254}$`)
	oidGrammar  = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// CheckName accepts a worktree's name: lower-case letters, digits, dot, hyphen
// and underscore, at most 63, that is a plain folder name on every system and
// a plain last part of a branch. The error is invalid_argument.
func CheckName(name string) error {
	switch {
	case !nameGrammar.MatchString(name):
		return hub.Invalid("name", "%q is not 1 to 63 of a-z, 0-9, dot, hyphen and underscore, beginning with a letter or digit", name)
	case strings.Contains(name, ".."), strings.HasSuffix(name, "."):
		return hub.Invalid("name", "%q has two dots in a row or ends with a dot", name)
	case strings.HasSuffix(name, ".git"), strings.HasSuffix(name, ".lock"):
		return hub.Invalid("name", "%q ends with .git or .lock", name)
	case deviceName(name):
		return hub.Invalid("name", "%q is the name of a Windows device", name)
	}
	return nil
}

// CheckRef accepts the name of a branch, tag or remote branch, or an object id
// in hexadecimal. Ranges, ancestors and reflog forms are refused. The error is
// invalid_argument.
func CheckRef(ref string) error { return checkRef("base", ref) }

func checkRef(field, ref string) error {
	if !refGrammar.MatchString(ref) {
		return hub.Invalid(field, "%q is not a plain branch, tag or commit id", ref)
	}
	for _, bad := range []string{"..", "@{", "//", "/.", "./", ".lock/"} {
		if strings.Contains(ref, bad) {
			return hub.Invalid(field, "%q holds %q", ref, bad)
		}
	}
	for _, bad := range []string{"/", ".", ".lock"} {
		if strings.HasSuffix(ref, bad) {
			return hub.Invalid(field, "%q ends with %q", ref, bad)
		}
	}
	return nil
}

// deviceName reports whether Windows takes a file of the name, whatever its
// extension, for a device.
func deviceName(name string) bool {
	base, _, _ := strings.Cut(strings.ToLower(name), ".")
	base = strings.TrimRight(base, " ")
	if slices.Contains([]string{"con", "prn", "aux", "nul", "conin$", "conout$"}, base) {
		return true
	}
	port, ok := strings.CutPrefix(base, "com")
	if !ok {
		port, ok = strings.CutPrefix(base, "lpt")
	}
	return ok && slices.Contains([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"}, port)
}
