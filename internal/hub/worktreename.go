package hub

import (
	"regexp"
	"slices"
	"strings"
)

var worktreeName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// CheckWorktreeName accepts a worktree's name: lower-case letters, digits, dot,
// hyphen and underscore, at most 63, that is a plain folder name on every system
// and a plain last part of a branch. The error is invalid_argument.
func CheckWorktreeName(name string) error {
	switch {
	case !worktreeName.MatchString(name):
		return Invalid("name", "%q is not 1 to 63 of a-z, 0-9, dot, hyphen and underscore, beginning with a letter or digit", name)
	case strings.Contains(name, ".."), strings.HasSuffix(name, "."):
		return Invalid("name", "%q has two dots in a row or ends with a dot", name)
	case strings.HasSuffix(name, ".git"), strings.HasSuffix(name, ".lock"):
		return Invalid("name", "%q ends with .git or .lock", name)
	case DeviceName(name):
		return Invalid("name", "%q is the name of a Windows device", name)
	}
	return nil
}

// DeviceName reports whether Windows takes a file of the name, whatever its
// extension, for a device.
func DeviceName(name string) bool {
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
