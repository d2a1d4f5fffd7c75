package worktree

import (
	"regexp"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

var (
	refGrammar = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/@+-]{0,254}$`)
	oidGrammar = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

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
