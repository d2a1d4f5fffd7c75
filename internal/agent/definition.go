package agent

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	nameGrammar = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)
	envGrammar  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// configured checks an entry of the user's configuration and resolves it.
func (d Definition) configured(name string, known map[string]profile) (entry, error) {
	if !nameGrammar.MatchString(name) {
		return entry{}, errors.New("a name is 1 to 32 of a-z, 0-9, dot, hyphen and underscore, beginning with a letter or digit")
	}
	if slices.Contains(reserved, name) {
		return entry{}, fmt.Errorf("%s is built in and cannot be redefined", name)
	}
	if err := errors.Join(d.checkForm(known), checkEnv(d.Env)); err != nil {
		return entry{}, err
	}
	return d.resolve(name, known)
}

// checkForm refuses what cannot be said together.
func (d Definition) checkForm(known map[string]profile) error {
	_, ok := known[d.Like]
	switch {
	case d.Like != "" && (!ok || slices.Contains(reserved, d.Like)):
		return fmt.Errorf("like: %q is no built-in agent", d.Like)
	case d.Deliver != "" && (d.Like != "" || len(d.Modes) > 0):
		return errors.New("deliver: belongs to a mode here; use modes.<mode>.deliver")
	case d.Grace < 0:
		return errors.New("grace: must not be negative")
	}
	return nil
}

// resolve lays the definition over the built-in that it changes, if it does.
func (d Definition) resolve(name string, known map[string]profile) (entry, error) {
	kind := d.Like
	if _, ok := known[name]; ok && kind == "" && d.Deliver == "" {
		kind = name
	}
	p := known[kind] // nothing for a launcher of its own
	l := Launcher{Name: name, Kind: kind, Command: d.Command, Modes: d.modes(p), Default: d.Mode, Env: map[string]string{}, Grace: d.Grace,
		Bare: p.script != "", completion: d.Completion, profile: p}
	if kind == "" {
		l.Kind = name
	}
	if l.Command == nil {
		l.Command = p.command
	}
	if _, tui := l.Modes[ModeTUI]; l.Default == "" && tui {
		l.Default = ModeTUI
	} else if l.Default == "" {
		l.Default = ModeHeadless
	}
	if l.Grace == 0 {
		l.Grace = DefaultGrace
	}
	if d.Bare != nil {
		l.Bare = *d.Bare
	}
	maps.Copy(l.Env, p.env)
	maps.Copy(l.Env, d.Env)
	l.Command = slices.Clone(l.Command)
	_, builtIn := known[name]
	e := entry{launcher: l, builtIn: builtIn, version: d.version(l.Command, p)}
	return e, errors.Join(checkCommand("command", l.Command), l.check(), checkVersion(e.version))
}

// version is the user's command, or the built-in's words behind the program.
func (d Definition) version(command []string, p profile) []string {
	switch {
	case d.Version != nil:
		return slices.Clone(d.Version)
	case p.version != nil && len(command) > 0:
		return append(slices.Clone(command), p.version...)
	}
	return nil
}

// modes are the built-in's with the changes over them, or those of a launcher
// of its own: one, unless it names more.
func (d Definition) modes(p profile) map[Mode]ModeSpec {
	out := map[Mode]ModeSpec{}
	maps.Copy(out, p.modes)
	changes := d.Modes
	if len(out) == 0 && len(changes) == 0 {
		changes = map[Mode]ModeSpec{orMode(d.Mode): {Deliver: d.Deliver}}
	}
	for mode, change := range changes {
		out[mode] = out[mode].with(change).orDefaults(mode)
	}
	return out
}

func orMode(mode Mode) Mode {
	if mode == "" {
		return ModeHeadless
	}
	return mode
}

func (s ModeSpec) with(change ModeSpec) ModeSpec {
	if change.Args != nil {
		s.Args = slices.Clone(change.Args)
	}
	if change.Deliver != "" {
		s.Deliver = change.Deliver
	}
	if change.Ready != "" {
		s.Ready = change.Ready
	}
	if change.Result != "" {
		s.Result = change.Result
	}
	return s
}

func (s ModeSpec) orDefaults(mode Mode) ModeSpec {
	if s.Deliver == "" && mode == ModeTUI {
		s.Deliver = DeliverArgv
	} else if s.Deliver == "" {
		s.Deliver = DeliverStdin
	}
	if s.Ready == "" {
		s.Ready = ReadyLaunch
	}
	if s.Result == "none" {
		s.Result = ""
	}
	return s
}

// check refuses what cannot work.
func (l Launcher) check() error {
	if _, ok := l.Modes[l.Default]; !ok {
		return fmt.Errorf("mode: %q is none of %s", l.Default, strings.Join(names(l.Modes), ", "))
	}
	for _, mode := range slices.Sorted(maps.Keys(l.Modes)) {
		if err := l.checkMode(mode, l.Modes[mode]); err != nil {
			return fmt.Errorf("modes.%s: %w", mode, err)
		}
	}
	switch l.completion {
	case "", CompleteByReport, CompleteByExit:
	case CompleteByResult:
		if l.Modes[ModeHeadless].Result == "" {
			return errors.New("completion: result needs modes.headless.result, the kind of the agent's output; use report or exit")
		}
	default:
		return fmt.Errorf("completion: %q is none of report, result, exit", l.completion)
	}
	return nil
}

func (l Launcher) checkMode(mode Mode, s ModeSpec) error {
	ways := map[Mode][]Deliver{ModeTUI: {DeliverArgv, DeliverFile, DeliverPaste}, ModeHeadless: {DeliverStdin, DeliverArgv, DeliverFile}}[mode]
	switch {
	case ways == nil:
		return errors.New("is neither tui nor headless")
	case !slices.Contains(ways, s.Deliver):
		return fmt.Errorf("deliver: %q is none of %s", s.Deliver, join(ways))
	case strings.Contains(strings.Join(s.Args, ""), "\x00"):
		return errors.New("args: hold a NUL byte")
	}
	return errors.Join(l.checkReady(mode, s.Ready), checkResult(mode, s.Result))
}

func (l Launcher) checkReady(mode Mode, ready Ready) error {
	switch ready {
	case ReadyLaunch:
		return nil
	case ReadyHook:
		if l.profile.wire == nil {
			return errors.New("ready: hook needs an agent whose hooks are known; use like")
		}
	case ReadyTitle:
		if l.profile.title == nil || mode != ModeTUI {
			return errors.New("ready: title needs the tui of an agent whose titles are known; use like")
		}
	case ReadyQuiescence:
		if mode != ModeTUI {
			return errors.New("ready: quiescence needs a tui")
		}
	default:
		return fmt.Errorf("ready: %q is none of launch, hook, title, quiescence", ready)
	}
	return nil
}

func checkResult(mode Mode, result string) error {
	if result == "" {
		return nil
	}
	if mode != ModeHeadless {
		return errors.New("result: a tui has no structured output")
	}
	_, err := NewStream(result)
	return err
}

func checkCommand(what string, argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return errors.New(what + ": the program is missing")
	}
	if strings.ContainsAny(argv[0], `/\`) && !filepath.IsAbs(argv[0]) {
		return errors.New(what + ": the program must be a bare name or an absolute path")
	}
	if strings.Contains(strings.Join(argv, ""), "\x00") {
		return errors.New(what + ": holds a NUL byte")
	}
	return nil
}

func checkVersion(argv []string) error {
	if argv == nil {
		return nil
	}
	return checkCommand("version", argv)
}

func checkEnv(env map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(env)) {
		if !envGrammar.MatchString(key) || strings.HasPrefix(strings.ToUpper(key), ownPrefix) {
			return fmt.Errorf("env: %q cannot be set", key)
		}
		if strings.Contains(env[key], "\x00") {
			return fmt.Errorf("env: %s holds a NUL byte", key)
		}
	}
	return nil
}

func join[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, word := range all {
		words[i] = string(word)
	}
	return strings.Join(words, ", ")
}
