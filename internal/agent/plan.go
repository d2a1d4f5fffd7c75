package agent

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// MaxArgPrompt is how many bytes of prompt are handed over as an argument;
// a longer one goes by file, with an argument of one line that names it.
const MaxArgPrompt = 8 << 10

// Names of the prompt file in Input.PromptDir.
const (
	promptFile = "prompt.md"
	scriptFile = "task.sh"
)

// Input is what one attempt is about.
type Input struct {
	// Spec is the Task's text: all that a bare launcher gets.
	Spec string
	// Preamble is the text of func Preamble, which holds the Task's text too:
	// all that any other launcher gets.
	Preamble string
	// PromptDir is an existing absolute folder of mode 0700 that belongs to
	// the terminal; planned files lie in it.
	PromptDir string
}

// File is a file that the caller writes before the start.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// Plan is everything that the start needs besides folder and environment.
// Stdin nil means that standard input is closed.
type Plan struct {
	Argv  []string
	Stdin []byte
	Files []File
}

// Plan works out the start of one attempt; it reads and writes nothing. Text
// that cannot be handed over is invalid_argument.
func (l Launcher) Plan(in Input) (Plan, error) {
	prompt := in.Preamble
	if l.Bare {
		prompt = in.Spec
	}
	if strings.TrimSpace(prompt) == "" || strings.Contains(prompt, "\x00") {
		return Plan{}, hub.Invalid("spec", "the task's text is empty or holds a NUL byte")
	}
	if !filepath.IsAbs(in.PromptDir) {
		return Plan{}, hub.Invalid("prompt_dir", "%q is not absolute", in.PromptDir)
	}
	plan := l.deliver(prompt, in.PromptDir)
	return plan, checkShim(plan.Argv)
}

func (l Launcher) deliver(prompt, dir string) Plan {
	argv := append([]string{}, l.Command...)
	switch l.Deliver {
	case DeliverStdin:
		return Plan{Argv: argv, Stdin: []byte(prompt)}
	case DeliverFile:
		file := l.file(prompt, dir)
		return Plan{Argv: append(argv, file.Path), Files: []File{file}}
	case DeliverArgv:
		if len(prompt) <= MaxArgPrompt && !strings.HasPrefix(prompt, "-") {
			return Plan{Argv: append(argv, prompt)}
		}
	}
	file := l.file(prompt, dir)
	return Plan{Argv: append(argv, Pointer(file.Path)), Files: []File{file}}
}

func (l Launcher) file(prompt, dir string) File {
	name := promptFile
	if l.Name == Shell {
		name = scriptFile
	}
	if !strings.HasSuffix(prompt, "\n") {
		prompt += "\n"
	}
	return File{Path: filepath.Join(dir, name), Mode: 0o600, Data: []byte(prompt)}
}

var plainArg = regexp.MustCompile(`^[A-Za-z0-9_./\\:=,+@-]*$`)

// checkShim refuses to hand arguments to a batch file that its interpreter
// could take for commands.
func checkShim(argv []string) error {
	if runtime.GOOS != "windows" || !batch(argv[0]) {
		return nil
	}
	for _, arg := range argv[1:] {
		if !plainArg.MatchString(arg) {
			return hub.Invalid("agent", "%s is a batch file and cannot be given the argument %q; configure the real program, or deliver: stdin", argv[0], arg)
		}
	}
	return nil
}

func batch(program string) bool {
	ext := strings.ToLower(filepath.Ext(program))
	return ext == ".cmd" || ext == ".bat"
}
