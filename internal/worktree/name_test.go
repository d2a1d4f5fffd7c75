package worktree

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "vet", "0", "a.b-c_d", "console", "com", "com10", "lpt", "nulls", "git", strings.Repeat("a", 63)} {
		if err := hub.CheckWorktreeName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	bad := []string{"", "A", "Vet", ".a", "-a", "_a", "a/b", `a\b`, "a b", "a\n", "a\x00", "ä", "a..b", "a.", "x.git", "x.lock",
		"con", "nul.txt", "com1", "lpt9.log", "aux", "prn", "a:b", "..", "~", strings.Repeat("a", 64)}
	for _, name := range bad {
		wantCode(t, hub.CheckWorktreeName(name), hub.CodeInvalidArgument)
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

// TestNamesRefsAndPaths is one table of what must never reach git or a file
// system as a name, a ref or a path, the same on every system.
func TestNamesRefsAndPaths(t *testing.T) {
	root := filepath.Join(tempDir(t), "wt")
	for _, c := range []struct {
		text            string
		name, ref, path bool // taken as such; a path as far as its text goes
	}{
		{"vet", true, true, false}, {"a.b-c_d", true, true, false}, {"0", true, true, false}, {"Vet", false, true, false},
		{"feature/x", false, true, false}, {"v1.0", true, true, false}, {"HEAD", false, true, false}, {strings.Repeat("a", 40), true, true, false},
		{strings.Repeat("a", 63), true, true, false}, {strings.Repeat("a", 64), false, true, false}, {strings.Repeat("a", 256), false, false, false},
		{"", false, false, false}, {".", false, false, false}, {"..", false, false, false}, {"a..b", false, false, false}, {"../a", false, false, false},
		{"a/../b", false, false, false}, {"a.", false, false, false}, {".a", false, false, false}, {"a.lock", false, false, false}, {"a.git", false, true, false},
		{"-x", false, false, false}, {"--upload-pack=x", false, false, false}, {"-", false, false, false}, {"a b", false, false, false},
		{"a\tb", false, false, false}, {"a\nb", false, false, false}, {"a\x00b", false, false, false}, {"a\x7f", false, false, false}, {"\x1b[0m", false, false, false},
		{"a:b", false, false, false}, {"a~1", false, false, false}, {"a^", false, false, false}, {"a@{0}", false, false, false}, {"a*", false, false, false},
		{"a?", false, false, false}, {"a[b]", false, false, false}, {`a\b`, false, false, false}, {"ä", false, false, false}, {"a\u202eb", false, false, false},
		{"con", false, true, false}, {"nul.txt", false, true, false}, {"com1", false, true, false}, {"lpt9.log", false, true, false}, {"aux", false, true, false},
		{"console", true, true, false}, {"com10", true, true, false}, {"$(id)", false, false, false}, {"a;b", false, false, false}, {"a|b", false, false, false},
		{`\\server\share`, false, false, false}, {"//server/share", false, false, false}, {`\\?\C:\x`, false, false, false}, {`\\.\nul`, false, false, false},
		{root, false, false, true},
	} {
		if got := hub.CheckWorktreeName(c.text) == nil; got != c.name {
			t.Errorf("%q as a name: %v", c.text, got)
		}
		if got := CheckRef(c.text) == nil; got != c.ref {
			t.Errorf("%q as a ref: %v", c.text, got)
		}
		_, err := canonical(c.text)
		if got := err == nil || errors.Is(err, fs.ErrNotExist); got != c.path || err != nil && !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%q as a path: %v", c.text, err)
		}
		err = CreateSpec{Repo: Facts{Kind: KindGit}, Root: root, RepoID: hub.NewRepoID(), Worktree: hub.NewWorktreeID(), Name: c.text, Branch: "x"}.check()
		if (err == nil) != c.name {
			t.Errorf("%q as the name of a worktree: %v", c.text, err)
		}
		if err := removeFolder(root, hub.NewRepoID(), c.text); (err == nil) != c.name {
			t.Errorf("%q as what is removed: %v", c.text, err)
		}
	}
}

func TestOddOnWindows(t *testing.T) {
	for path, odd := range map[string]bool{"/a/nul/b": true, "/a/COM1.txt": true, "/a/file:stream": true, "/a/console": false} {
		if oddOnWindows(path) != odd {
			t.Errorf("%s: odd is %v", path, !odd)
		}
	}
}
