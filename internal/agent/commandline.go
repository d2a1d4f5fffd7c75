package agent

import (
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// Script plans the run of a command line of the user's by the platform's shell:
// sh, on Windows also its own command interpreter if there is no sh. The text
// goes by a file in dir, so that no quoting comes between. It reads and writes
// nothing; agent_unconfigured says that there is no shell.
func (t *Table) Script(text, dir string) (Plan, error) {
	if strings.TrimSpace(text) == "" || strings.Contains(text, "\x00") {
		return Plan{}, hub.Invalid("verify_cmd", "the command is empty or holds a NUL byte")
	}
	if !filepath.IsAbs(dir) {
		return Plan{}, hub.Invalid("dir", "%q is not absolute", dir)
	}
	argv, name, err := scriptShell()
	if err != nil {
		e := hub.Errorf(hub.CodeAgentUnconfigured, "there is no shell to run a command with")
		e.Err = err
		return Plan{}, e
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	file := File{Path: filepath.Join(dir, name), Mode: 0o600, Data: []byte(text)}
	return Plan{Argv: append(argv, file.Path), Files: []File{file}}, nil
}

// scriptShell is the beginning of the argv, and the name of the file.
func scriptShell() (argv []string, name string, err error) {
	shell, err := findShell()
	if err != nil {
		return otherShell(err)
	}
	return []string{shell}, "verify.sh", nil
}
