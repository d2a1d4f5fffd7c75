package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxShim bounds how much of a batch file is read, in bytes.
const maxShim = 16 << 10

// unshim is the command behind a batch file that npm made for a program: the
// program itself, or node and a script. Other programs, and other batch files,
// are their own command.
func unshim(program string) ([]string, error) {
	if runtime.GOOS != "windows" || !batch(program) {
		return []string{program}, nil
	}
	text, err := readShim(program)
	if err != nil {
		return nil, err
	}
	target, script, ok := npmShim(text)
	if !ok {
		return []string{program}, nil
	}
	dir := filepath.Dir(program)
	target = filepath.Join(dir, target)
	if !script {
		return []string{target}, nil
	}
	node := filepath.Join(dir, "node.exe")
	if info, err := os.Stat(node); err != nil || !info.Mode().IsRegular() {
		if node, err = find("node.exe"); err != nil {
			return nil, err
		}
	}
	return []string{node, target}, nil
}

func readShim(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxShim))
	return string(raw), errors.Join(err, f.Close())
}

// shimLine is the last line of npm's batch file: it hands all arguments to a
// file that it names from its own folder, by node or directly.
var shimLine = regexp.MustCompile(`(?i)^(?:endlocal & goto #_undefined_# 2>nul \|\| title %comspec% & )?("%_prog%" +)?"%dp0%\\([^"%]+)" +%\*$`)

// npmShim takes npm's batch file apart: the path of what it starts, from the
// folder of the file, and whether node has to run it.
func npmShim(text string) (target string, script, ok bool) {
	for line := range strings.Lines(text) {
		m := shimLine.FindStringSubmatch(strings.TrimSpace(line))
		if m != nil && ok {
			return "", false, false
		}
		if m != nil {
			target, script, ok = m[2], m[1] != "", true
		}
	}
	return target, script, ok
}

var plainArg = regexp.MustCompile(`^[A-Za-z0-9_./\\:=,+@ -]*$`)

// checkShim refuses to hand arguments to a batch file, or to cmd itself, that
// could be taken for commands.
func checkShim(argv []string) error {
	if runtime.GOOS != "windows" || !batch(argv[0]) && !strings.EqualFold(filepath.Base(argv[0]), "cmd.exe") {
		return nil
	}
	for _, arg := range argv[1:] {
		if !plainArg.MatchString(arg) {
			return hub.Invalid("agent", "%s runs batch files and cannot be given the argument %q; configure the real program, or deliver: stdin", argv[0], arg)
		}
	}
	return nil
}

func batch(program string) bool {
	ext := strings.ToLower(filepath.Ext(program))
	return ext == ".cmd" || ext == ".bat"
}
