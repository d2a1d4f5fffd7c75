package agent

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// Shell is the built-in launcher that runs the Task's text as a shell script.
const Shell = "sh"

var (
	nameGrammar = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)
	envGrammar  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Table is the set of configured launchers.
type Table struct {
	defs     map[string]Definition
	shell    string // absolute, empty when there is none
	shellErr error
}

// New checks the definitions and finds the shell. The error is config_invalid
// and names the agent and the setting. A program that is missing is no error
// here: Lookup says so.
func New(defs map[string]Definition) (*Table, error) {
	t := &Table{defs: make(map[string]Definition, len(defs))}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		def := defs[name].withDefaults()
		if err := def.check(name); err != nil {
			return nil, err
		}
		t.defs[name] = def
	}
	t.shell, t.shellErr = findShell()
	return t, nil
}

// Names returns the built-in and configured names, sorted.
func (t *Table) Names() []string {
	return slices.Sorted(maps.Keys(t.withShell()))
}

// Lookup returns the launcher of that name. A name that is not configured, or
// whose program is not there, is agent_unconfigured.
func (t *Table) Lookup(name string) (Launcher, error) {
	def, ok := t.withShell()[name]
	if !ok {
		return Launcher{}, hub.Errorf(hub.CodeAgentUnconfigured, "no agent %q; configured are: %s", name, strings.Join(t.Names(), ", "))
	}
	program, err := t.program(name, def)
	if err != nil {
		e := hub.Errorf(hub.CodeAgentUnconfigured, "the program of agent %q cannot be used", name)
		e.Err = err
		return Launcher{}, e
	}
	return Launcher{Name: name, Command: append([]string{program}, def.Command[1:]...), Deliver: def.Deliver,
		Completion: def.Completion, Env: maps.Clone(def.Env), Grace: def.Grace, Bare: def.Bare}, nil
}

func (t *Table) withShell() map[string]Definition {
	all := maps.Clone(t.defs)
	all[Shell] = Definition{Command: []string{Shell}, Deliver: DeliverFile, Completion: CompleteByExit, Grace: DefaultGrace, Bare: true}
	return all
}

func (t *Table) program(name string, def Definition) (string, error) {
	if name == Shell {
		return t.shell, t.shellErr
	}
	return find(def.Command[0])
}

// find returns the absolute path of a program. A program that is only found
// relative to the working folder is refused.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s: %w", path, exec.ErrDot)
	}
	return path, nil
}

func (d Definition) withDefaults() Definition {
	if d.Deliver == "" {
		d.Deliver = DeliverStdin
	}
	if d.Completion == "" {
		d.Completion = CompleteByReport
	}
	if d.Grace == 0 {
		d.Grace = DefaultGrace
	}
	d.Command, d.Env = slices.Clone(d.Command), maps.Clone(d.Env)
	return d
}

func (d Definition) check(name string) error {
	err := errors.Join(checkName(name), d.checkCommand(), d.checkEnums(), d.checkEnv())
	if err == nil {
		return nil
	}
	return &hub.Error{Code: hub.CodeConfigInvalid, Message: fmt.Sprintf("agents.%s", name), Field: "agents." + name, Err: err}
}

func checkName(name string) error {
	if !nameGrammar.MatchString(name) {
		return errors.New("a name is 1 to 32 of a-z, 0-9, dot, hyphen and underscore, beginning with a letter or digit")
	}
	if name == Shell {
		return errors.New("sh is built in and cannot be redefined")
	}
	return nil
}

func (d Definition) checkCommand() error {
	if len(d.Command) == 0 || d.Command[0] == "" {
		return errors.New("command: the program is missing")
	}
	if strings.ContainsAny(d.Command[0], `/\`) && !filepath.IsAbs(d.Command[0]) {
		return errors.New("command: the program must be a bare name or an absolute path")
	}
	if strings.Contains(strings.Join(d.Command, ""), "\x00") {
		return errors.New("command: holds a NUL byte")
	}
	return nil
}

func (d Definition) checkEnums() error {
	if !slices.Contains([]Deliver{DeliverStdin, DeliverArgv, DeliverFile}, d.Deliver) {
		return fmt.Errorf("deliver: %q is none of stdin, argv, file", d.Deliver)
	}
	switch d.Completion {
	case CompleteByReport, CompleteByExit:
	case CompleteByResult:
		return errors.New("completion: result needs an agent whose output this version reads, and it reads none yet; use report or exit")
	default:
		return fmt.Errorf("completion: %q is none of report, exit", d.Completion)
	}
	if d.Grace < 0 {
		return errors.New("grace: must not be negative")
	}
	return nil
}

func (d Definition) checkEnv() error {
	for _, key := range slices.Sorted(maps.Keys(d.Env)) {
		if !envGrammar.MatchString(key) || strings.HasPrefix(strings.ToUpper(key), ownPrefix) {
			return fmt.Errorf("env: %q cannot be set", key)
		}
		if strings.Contains(d.Env[key], "\x00") {
			return fmt.Errorf("env: %s holds a NUL byte", key)
		}
	}
	return nil
}
