package agent

import (
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/wavehub/wavehub/internal/hub"
)

// MaxArgPrompt is how many bytes of prompt are handed over as an argument or a
// paste; a longer one goes by file, with one line in its place that names it.
const MaxArgPrompt = 8 << 10

// promptFile is the name of the prompt's file in Input.PromptDir.
const promptFile = "prompt.md"

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
	// Mode is the mode to start in, "" for the default.
	Mode Mode
	// Resume is the agent's own id of a session to go on with, "" for a new
	// one; Session is the id that a new one gets where the CLI takes one: a
	// UUID that was never used before.
	Resume, Session string
	// Bin is the absolute path of wavehub, for the hooks; "" plans none.
	Bin string
	// Env are the hub's own variables for the worker, nothing secret.
	Env map[string]string
	// Background is what the Task depends on, as JSON, nil for nothing. It is planned
	// as a file that hub.EnvDependencies names, for bare launchers too.
	Background []byte
}

// dependenciesFile is its name in Input.PromptDir.
const dependenciesFile = "dependencies.json"

// File is a file that the caller writes before the start.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// Plan is everything that the start needs besides folder and base environment.
type Plan struct {
	Argv []string
	// Stdin nil means that standard input is closed.
	Stdin []byte
	// Paste is to be pasted by the caller once the agent is ready; nil for no
	// paste. It holds no control characters but newline and tab. Agents swallow
	// an Enter that follows within 300 ms; it has to be repeated until a hook or
	// a title tells of the turn.
	Paste []byte
	Files []File
	// PTY says that the process needs a terminal.
	PTY bool
	// Env is for Environment's extra: the launcher's, then Input.Env.
	Env        map[string]string
	Mode       Mode
	Ready      Ready
	Result     string // kind of the output stream, "" for none
	Completion Completion
	// Session is the agent's id of its session, "" until it says it itself.
	Session string
}

// Plan works out the start of one attempt; it reads and writes nothing. Text
// that cannot be handed over, a mode that is not there and ids outside their
// grammar are invalid_argument; Resume with an agent that cannot is
// capability_unsupported.
func (l Launcher) Plan(in Input) (Plan, error) {
	mode, err := l.In(in.Mode)
	if err != nil {
		return Plan{}, err
	}
	if err := in.check(); err != nil {
		return Plan{}, err
	}
	spec := l.Modes[mode]
	plan := Plan{Mode: mode, PTY: mode == ModeTUI, Ready: spec.Ready, Result: spec.Result, Completion: l.CompletionIn(mode)}
	plan.Argv = append(append(plan.Argv, l.Command...), spec.Args...)
	l.hook(&plan, in)
	plan.tell(in)
	if err := l.session(&plan, in); err != nil {
		return Plan{}, err
	}
	if err := l.deliver(&plan, spec, in); err != nil {
		return Plan{}, err
	}
	return plan, checkShim(plan.Argv)
}

// Occupy works out the start of an agent that a person will work with: in a
// terminal and without a prompt. Of Input only what has to do with hooks counts.
// An agent without a mode for terminals is started as it is configured.
func (l Launcher) Occupy(in Input) (Plan, error) {
	if err := in.check(); err != nil {
		return Plan{}, err
	}
	plan := Plan{Mode: ModeTUI, PTY: true, Ready: ReadyLaunch, Argv: slices.Clone(l.Command)}
	if spec, ok := l.Modes[ModeTUI]; ok {
		plan.Argv, plan.Ready = append(plan.Argv, spec.Args...), spec.Ready
	}
	l.hook(&plan, in)
	return plan, checkShim(plan.Argv)
}

func (in Input) check() error {
	switch {
	case !filepath.IsAbs(in.PromptDir):
		return hub.Invalid("prompt_dir", "%q is not absolute", in.PromptDir)
	case in.Bin != "" && !filepath.IsAbs(in.Bin):
		return hub.Invalid("bin", "%q is not absolute", in.Bin)
	case in.Resume != "" && !sessionGrammar.MatchString(in.Resume):
		return hub.Invalid("resume_session", "%.80q is no session's id", in.Resume)
	case in.Session != "" && !sessionGrammar.MatchString(in.Session):
		return hub.Invalid("session", "%.80q is no session's id", in.Session)
	}
	return nil
}

// hook adds the CLI's hooks and puts the environment together. What the user
// set wins over the launcher's, the hub's own variables over everything.
func (l Launcher) hook(plan *Plan, in Input) {
	plan.Env = map[string]string{}
	if plan.PTY {
		plan.Env["TERM"], plan.Env["COLORTERM"] = "xterm-256color", "truecolor"
	}
	if l.profile.wire != nil && in.Bin != "" {
		made := l.profile.wire(wiring{mode: plan.Mode, kind: l.Kind, events: l.profile.wiredEvents(), bin: in.Bin, dir: in.PromptDir,
			own: in.Env, windows: runtime.GOOS == "windows"})
		plan.Argv = append(plan.Argv, made.args...)
		plan.Files = append(plan.Files, made.files...)
		maps.Copy(plan.Env, made.env)
	} else if plan.Ready == ReadyHook {
		plan.Ready = ReadyLaunch
	}
	maps.Copy(plan.Env, l.Env)
	maps.Copy(plan.Env, in.Env)
}

// tell adds the file with what the Task depends on.
func (p *Plan) tell(in Input) {
	if in.Background == nil {
		return
	}
	file := File{Path: filepath.Join(in.PromptDir, dependenciesFile), Mode: 0o600, Data: in.Background}
	p.Files, p.Env[hub.EnvDependencies] = append(p.Files, file), file.Path
}

func (l Launcher) session(plan *Plan, in Input) error {
	words, id := l.profile.mint, in.Session
	if in.Resume != "" {
		words, id = l.profile.resume, in.Resume
		if words == nil {
			return hub.Errorf(hub.CodeCapabilityUnsupported, "agent %q cannot resume a session", l.Name)
		}
	}
	if words == nil || id == "" {
		return nil
	}
	for _, word := range words {
		plan.Argv = append(plan.Argv, strings.ReplaceAll(word, session, id))
	}
	plan.Session = id
	return nil
}

// deliver hands the prompt over, byte by byte as it is.
func (l Launcher) deliver(plan *Plan, spec ModeSpec, in Input) error {
	prompt := in.Preamble
	if l.Bare {
		prompt = in.Spec
	}
	if strings.TrimSpace(prompt) == "" || strings.Contains(prompt, "\x00") {
		return hub.Invalid("spec", "the task's text is empty or holds a NUL byte")
	}
	way, ok := l.profile.resumed[plan.Mode]
	if !ok || in.Resume == "" {
		way = spec.Deliver
	}
	switch way {
	case DeliverStdin:
		plan.Argv, plan.Stdin = append(plan.Argv, l.profile.stdin...), []byte(prompt)
	case DeliverFile:
		file := l.file(prompt, in.PromptDir)
		plan.Argv, plan.Files = append(plan.Argv, file.Path), append(plan.Files, file)
	case DeliverPaste:
		plan.Paste = []byte(l.short(plan, prompt, in.PromptDir, unsafePaste(prompt)))
	case DeliverArgv:
		word := l.short(plan, prompt, in.PromptDir, strings.HasPrefix(prompt, "-"))
		plan.Argv = append(append(plan.Argv, l.profile.prompt[plan.Mode]...), word)
	}
	return nil
}

// short is the prompt itself or, if it is long or would be misread, one line
// that names its file.
func (l Launcher) short(plan *Plan, prompt, dir string, misread bool) string {
	if len(prompt) <= MaxArgPrompt && !misread {
		return prompt
	}
	file := l.file(prompt, dir)
	plan.Files = append(plan.Files, file)
	return Pointer(file.Path)
}

// unsafePaste knows text that a terminal would take for keys, or that would
// end the paste.
func unsafePaste(prompt string) bool {
	return strings.ContainsFunc(prompt, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
}

func (l Launcher) file(prompt, dir string) File {
	file := File{Path: filepath.Join(dir, promptFile), Mode: 0o600, Data: []byte(prompt)}
	if l.profile.script != "" {
		file.Path = filepath.Join(dir, l.profile.script)
		file.Data = scriptText(filepath.Ext(file.Path), prompt)
	}
	return file
}
