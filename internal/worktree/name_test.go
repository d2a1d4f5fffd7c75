package worktree

import (
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "vet", "0", "a.b-c_d", "console", "com", "com10", "lpt", "nulls", "git", strings.Repeat("a", 63)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	bad := []string{"", "A", "Vet", ".a", "-a", "_a", "a/b", `a\b`, "a b", "a\n", "a\x00", "ä", "a..b", "a.", "x.git", "x.lock",
		"con", "nul.txt", "com1", "lpt9.log", "aux", "prn", "a:b", "..", "~", strings.Repeat("a", 64)}
	for _, name := range bad {
		wantCode(t, CheckName(name), hub.CodeInvalidArgument)
	}
}

func TestCheckRef(t *testing.T) {
	for _, ref := range []string{"main", "HEAD", "origin/main", "v1.0", "feature/a+b", "npm/@types/node", "deadbeef", strings.Repeat("a", 40)} {
		if err := CheckRef(ref); err != nil {
			t.Errorf("%q: %v", ref, err)
		}
	}
	bad := []string{"", "-x", "--upload-pack=x", "a..b", "a...b", "@{u}", "main@{1}", "@", "HEAD~1", "HEAD^", "a:b", "a b", "a\nb", "a//b",
		"/a", "a/", "a.", "a.lock", "a.lock/b", "a/.b", "a?", "a*", "a[", `a\b`, "a\x00b", ":/text", "^a", strings.Repeat("a", 256)}
	for _, ref := range bad {
		wantCode(t, CheckRef(ref), hub.CodeInvalidArgument)
	}
}

func FuzzCheckRefNeverAnOption(f *testing.F) {
	for _, s := range []string{"main", "-x", "a..b", "a@{b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if CheckRef(s) == nil && (strings.HasPrefix(s, "-") || strings.ContainsAny(s, " \n\x00:^~?*[\\") || strings.Contains(s, "..")) {
			t.Errorf("%q was accepted", s)
		}
	})
}

func TestOddOnWindows(t *testing.T) {
	for path, odd := range map[string]bool{"/a/nul/b": true, "/a/COM1.txt": true, "/a/file:stream": true, "/a/console": false} {
		if oddOnWindows(path) != odd {
			t.Errorf("%s: odd is %v", path, !odd)
		}
	}
}
