package agent

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// Table is the set of built-in and configured launchers.
type Table struct {
	entries map[string]entry
}

// entry is a launcher whose program has not been looked for.
type entry struct {
	launcher Launcher // Command as configured
	builtIn  bool
	version  []string // argv, nil for none
}

// Facts are what there is to know of a launcher without running it.
type Facts struct {
	Name    string
	Kind    string // the built-in whose ways it has, or Name
	BuiltIn bool   // there without configuration
	Modes   []Mode // sorted
	Default Mode
	// Completion is what ends an attempt in the default mode.
	Completion Completion
	// Program is the absolute path of what is started, "" when it is not
	// there: then Missing says why.
	Program string
	Missing string
}

// New checks the definitions and lays them over the built-in agents. The error
// is config_invalid and names the agent and the setting. A program that is
// missing is no error here: Lookup says so.
func New(defs map[string]Definition) (*Table, error) {
	known := builtins(runtime.GOOS == "windows")
	t := &Table{entries: make(map[string]entry, len(defs)+len(known))}
	for name := range known {
		e, err := Definition{}.resolve(name, known)
		if err != nil {
			return nil, err
		}
		t.entries[name] = e
	}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		e, err := defs[name].configured(name, known)
		if err != nil {
			return nil, &hub.Error{Code: hub.CodeConfigInvalid, Message: "agents." + name, Field: "agents." + name, Err: err}
		}
		t.entries[name] = e
	}
	return t, nil
}

// Names returns the built-in and configured names, sorted.
func (t *Table) Names() []string { return slices.Sorted(maps.Keys(t.entries)) }

// Lookup returns the launcher of that name. A name that is not configured, or
// whose program is not there, is agent_unconfigured.
func (t *Table) Lookup(name string) (Launcher, error) {
	e, err := t.entry(name)
	if err != nil {
		return Launcher{}, err
	}
	program, err := locate(name, e.launcher.Command[0])
	if err != nil {
		return Launcher{}, unusable(name, err)
	}
	l := e.launcher
	l.Command = append(program, l.Command[1:]...)
	l.Env, l.Modes = maps.Clone(l.Env), maps.Clone(l.Modes)
	return l, nil
}

// Kind is the built-in agent whose ways the named one has, or its own name; ""
// for one that is not configured.
func (t *Table) Kind(name string) string { return t.entries[name].launcher.Kind }

// VersionCommand is the argv that prints the version of an agent's program,
// with an absolute program; nil for an agent without one. The errors are those
// of Lookup.
func (t *Table) VersionCommand(name string) ([]string, error) {
	e, err := t.entry(name)
	if err != nil || e.version == nil {
		return nil, err
	}
	program, err := locate(name, e.version[0])
	if err != nil {
		return nil, unusable(name, err)
	}
	argv := append(program, e.version[1:]...)
	return argv, checkShim(argv)
}

// List returns the facts of every launcher, sorted by name.
func (t *Table) List() []Facts {
	out := make([]Facts, 0, len(t.entries))
	for _, name := range t.Names() {
		e := t.entries[name]
		l := e.launcher
		f := Facts{Name: name, Kind: l.Kind, BuiltIn: e.builtIn, Modes: slices.Sorted(maps.Keys(l.Modes)), Default: l.Default, Completion: l.CompletionIn(l.Default)}
		program, err := locate(name, l.Command[0])
		if err != nil {
			f.Missing = err.Error()
		} else {
			f.Program = program[0]
		}
		out = append(out, f)
	}
	return out
}

func (t *Table) entry(name string) (entry, error) {
	e, ok := t.entries[name]
	if !ok {
		return entry{}, hub.Errorf(hub.CodeAgentUnconfigured, "no agent %q; configured are: %s", name, strings.Join(t.Names(), ", "))
	}
	return e, nil
}

func unusable(name string, err error) error {
	e := hub.Errorf(hub.CodeAgentUnconfigured, "the program of agent %q cannot be used: %v", name, err)
	e.Hint = "install it on the hub that is to run it, or name another; agent list tells which there are"
	return e
}

// locate finds the command behind a program's name: one word, or node and a
// script.
func locate(name, program string) ([]string, error) {
	look := find
	if name == Shell {
		look = func(string) (string, error) { return findShell() }
	}
	path, err := look(program)
	if err != nil {
		return nil, err
	}
	return unshim(path)
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
