package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestSetupHook(t *testing.T) {
	g := newGit(t, Config{})
	deep := strings.Repeat("[", 20_000)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 9) + "]\n"
	}
	for name, c := range map[string]struct {
		files  map[string]string
		found  bool
		policy string
		bad    bool
	}{
		"none":            {files: nil},
		"no setup":        {files: file("other: 1\n")},
		"empty":           {files: file("")},
		"null":            {files: file("setup:\n")},
		"only a comment":  {files: file("# nothing\n")},
		"setup":           {files: file("setup: {run: make}\n"), found: true, policy: hub.PolicyImmediate},
		"beside others":   {files: file("x: {y: [1]}\nsetup:\n  run: |\n    make\n    make test\n  policy: wait-for-setup\n"), found: true, policy: hub.PolicyWait},
		"quoted number":   {files: file("setup: {run: \"1\"}\n"), found: true, policy: hub.PolicyImmediate},
		"folder":          {files: map[string]string{SetupFile + "/x": "setup: 1"}},
		"rubbish":         {files: file("setup: [\n"), bad: true},
		"a list":          {files: file("- setup\n"), bad: true},
		"text":            {files: file("setup: make\n"), bad: true},
		"number":          {files: file("setup: {run: 1}\n"), bad: true},
		"a list to run":   {files: file("setup: {run: [make]}\n"), bad: true},
		"nothing to run":  {files: file("setup: {policy: wait-for-setup}\n"), bad: true},
		"blank":           {files: file("setup: {run: \" \"}\n"), bad: true},
		"NUL":             {files: file("setup: {run: \"a\\0b\"}\n"), bad: true},
		"unknown policy":  {files: file("setup: {run: make, policy: later}\n"), bad: true},
		"unknown entry":   {files: file("setup: {run: make, when: now}\n"), bad: true},
		"twice":           {files: file("setup: {run: a}\nsetup: {run: b}\n"), bad: true},
		"run twice":       {files: file("setup: {run: a, run: b}\n"), bad: true},
		"alias":           {files: file("x: &x {run: make}\nsetup: *x\n"), bad: true},
		"merge":           {files: file("x: &x {run: make}\nsetup: {<<: *x}\n"), bad: true},
		"tagged":          {files: file("setup: !!binary aGk=\n"), bad: true},
		"long":            {files: file("setup: {run: " + strings.Repeat("x", setupRunCap+1) + "}\n"), bad: true},
		"huge":            {files: file("setup: {run: make}\n#" + strings.Repeat("x", 1<<20)), bad: true},
		"deep":            {files: file("x: " + deep), bad: true},
		"bomb":            {files: file(bomb + "setup: {run: make}\n"), found: true, policy: hub.PolicyImmediate},
		"bomb to be used": {files: file(bomb + "setup: {run: *i}\n"), bad: true},
	} {
		facts := inspect(t, g, newRepo(t, c.files))
		hook, err := g.SetupHook(t.Context(), facts, facts.Head)
		switch {
		case c.bad:
			if !hub.IsCode(err, hub.CodeInvalidArgument) || !hook.Found || !strings.Contains(err.Error(), SetupFile) {
				t.Errorf("%s: %+v %v", name, hook, err)
			}
		case err != nil || hook.Found != c.found || hook.Policy != c.policy || (len(hook.Hash) == 64) != c.found || (hook.Run != "") != c.found:
			t.Errorf("%s: %+v %v", name, hook, err)
		}
	}
	_, err := g.SetupHook(t.Context(), Facts{Kind: KindGit}, "--help")
	wantCode(t, err, hub.CodeInvalidArgument)
}

func file(text string) map[string]string { return map[string]string{SetupFile: text} }

// The platform's shell runs the text whole and gives its exit code.
func TestScript(t *testing.T) {
	dir := filepath.Join(tempDir(t), "with a space")
	for text, want := range map[string]int{"exit 0": 0, "exit 7": 7, "cd .\nexit 255": 255, "no-such-program-anywhere": 127} {
		if want == 127 && os.PathSeparator == '\\' {
			continue // cmd has a code of its own
		}
		argv, path, data, err := Script(text, dir)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, string(data), 0o600)
		cmd := exec.Command(argv[0], argv[1:]...)
		err = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%q: exit code %d, want %d (%v)", text, got, want, err)
		}
	}
}
