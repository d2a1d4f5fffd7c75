package daemon

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/wavehub/wavehub/internal/agent"
	"github.com/wavehub/wavehub/internal/agent/transcript"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/internal/worktree"
)

// agents fits the launcher table to work.Agents.
type agents struct {
	table *agent.Table
	bin   string
	base  []string // the hub's own environment, filtered by the table
	known *versions
}

func newAgents(cfg config.Config, bin string) (agents, error) {
	defs := make(map[string]agent.Definition, len(cfg.Agents))
	for name, d := range cfg.Agents {
		defs[name] = definition(d)
	}
	table, err := agent.New(defs)
	return agents{table: table, bin: bin, base: os.Environ(), known: &versions{}}, err
}

func definition(d config.AgentDefinition) agent.Definition {
	out := agent.Definition{
		Like: d.Like, Command: d.Command, Mode: agent.Mode(d.Mode), Deliver: agent.Deliver(d.Deliver), Completion: agent.Completion(d.Completion),
		Env: d.Env, Grace: d.Grace, Version: d.Version, Bare: d.Bare, Modes: make(map[agent.Mode]agent.ModeSpec, len(d.Modes)),
	}
	for name, m := range d.Modes {
		out.Modes[agent.Mode(name)] = agent.ModeSpec{Args: m.Args, Deliver: agent.Deliver(m.Deliver), Ready: agent.Ready(m.Ready), Result: m.Result}
	}
	return out
}

func (a agents) Completion(name, mode string) (string, error) {
	l, err := a.table.Lookup(name)
	if err != nil {
		return "", err
	}
	in, err := l.In(agent.Mode(mode))
	return string(l.CompletionIn(in)), err
}

func (a agents) Grace(name string) time.Duration {
	if l, err := a.table.Lookup(name); err == nil {
		return l.Grace
	}
	return agent.DefaultGrace
}

func (a agents) Plan(in work.Launch) (work.Planned, error) {
	l, err := a.table.Lookup(in.Agent)
	if err != nil {
		return work.Planned{}, err
	}
	background, err := backgroundFile(in.Background)
	if err != nil {
		return work.Planned{}, err
	}
	plan, err := l.Plan(agent.Input{
		Background: background,
		Spec:       in.Prompt, PromptDir: in.Private, Mode: agent.Mode(in.Mode), Resume: in.Resume, Session: in.Session, Bin: a.bin, Env: in.Env,
		Preamble: a.preamble(in),
	})
	if err != nil {
		return work.Planned{}, err
	}
	if err := writeFiles(plan); err != nil {
		return work.Planned{}, err
	}
	out := work.Planned{
		Warnings: carried(l, in.Dir),
		Ready:    string(plan.Ready), Stream: plan.Result, Paste: plan.Paste, Session: a.session(in.Agent, plan),
		Spec: hub.LaunchSpec{Terminal: in.Terminal, Argv: plan.Argv, Stdin: plan.Stdin, Dir: in.Dir, Env: a.environment(plan.Env)},
	}
	if plan.PTY {
		out.Spec.PTY = &hub.TerminalSize{Rows: 40, Cols: 120}
	}
	return out, nil
}

// session is what is known of an agent's session before it runs. Some keep no
// file: what they write to their output is their record.
func (a agents) session(name string, plan agent.Plan) hub.AgentSession {
	s := hub.AgentSession{ID: plan.Session}
	if a.HasTranscript(name) {
		s.Provider = a.table.Kind(name)
		s.Output = plan.Result == agent.StreamGrok || plan.Result == agent.StreamOpencode
	}
	return s
}

func (a agents) HasTranscript(name string) bool {
	return slices.Contains(transcript.Providers(), a.table.Kind(name))
}

func (a agents) Event(name, event string, raw []byte) (hub.AgentEvent, string, error) {
	kind := a.table.Kind(name)
	e, err := agent.Event(kind, event, raw)
	if e.Class.Refusal() && e.ResetAt == 0 {
		_, e.ResetAt = agent.Classify(kind, e.Detail, time.Now())
	}
	return e, kind, err
}

func (a agents) TitleState(name, title, osc string) (hub.AgentEventKind, bool) {
	return agent.TitleState(a.table.Kind(name), title, osc)
}

func (agents) Stream(kind string) (work.Stream, error) {
	s, err := agent.NewStream(kind)
	return stream{s, kind}, err
}

// stream adds when a provider works again, where that is said by the clock.
type stream struct {
	*agent.Stream
	kind string
}

func (s stream) Result() (hub.AgentResult, bool) {
	r, ok := s.Stream.Result()
	if ok && r.Class.Refusal() && r.ResetAt == 0 {
		_, r.ResetAt = agent.Classify(s.kind, r.Text, time.Now())
	}
	return r, ok
}

func (a agents) List() []hub.AgentFacts {
	facts := a.table.List()
	out := make([]hub.AgentFacts, len(facts))
	for i, f := range facts {
		modes := make([]string, len(f.Modes))
		for j, m := range f.Modes {
			modes[j] = string(m)
		}
		out[i] = hub.AgentFacts{
			Name: f.Name, BuiltIn: f.BuiltIn, Modes: modes, DefaultMode: string(f.Default), Program: f.Program, Missing: f.Missing,
			Completion: string(f.Completion),
		}
	}
	return out
}

func (a agents) Script(in work.Script) (hub.LaunchSpec, error) {
	plan, err := a.table.Script(in.Text, in.Private)
	if err != nil {
		return hub.LaunchSpec{}, err
	}
	if err := writeFiles(plan); err != nil {
		return hub.LaunchSpec{}, err
	}
	own := map[string]string{"WAVEHUB_TERMINAL_ID": string(in.Terminal)}
	return hub.LaunchSpec{Terminal: in.Terminal, Argv: plan.Argv, Dir: in.Dir, Env: a.environment(own)}, nil
}

// Setup writes the script of a setup, which gets what a worker gets but for the
// capability and what a launcher adds.
func (a agents) Setup(in work.SetupLaunch) (hub.LaunchSpec, error) {
	argv, file, data, err := worktree.Script(in.Run, in.Private)
	if err != nil {
		return hub.LaunchSpec{}, err
	}
	if err := safefile.WriteAtomic(file, data, 0o600); err != nil {
		return hub.LaunchSpec{}, err
	}
	return hub.LaunchSpec{Terminal: in.Terminal, Argv: argv, Dir: in.Dir, Env: a.environment(in.Env)}, nil
}

func writeFiles(plan agent.Plan) error {
	for _, f := range plan.Files {
		if err := safefile.WriteAtomic(f.Path, f.Data, f.Mode); err != nil {
			return err
		}
	}
	return nil
}

// environment is the allow-listed base and what the plan adds; the folder of
// the program is last in PATH, so that plain "wavehub" works.
func (a agents) environment(planned map[string]string) []string {
	extra := maps.Clone(planned)
	if _, set := planned["PATH"]; !set {
		extra["PATH"] = withFolder(os.Getenv("PATH"), filepath.Dir(a.bin))
	}
	return agent.Environment(a.base, extra)
}

func withFolder(path, folder string) string {
	if _, err := exec.LookPath("wavehub"); err == nil || path == "" {
		return path
	}
	return path + string(os.PathListSeparator) + folder
}

func (a agents) preamble(in work.Launch) string {
	return agent.Preamble(agent.PreambleInput{
		Worktree: in.Dir, Task: in.Task, Dispatch: in.Dispatch, Bin: a.bin, Spec: in.Prompt, Checks: in.Checks, MayCoordinate: in.MayCoordinate,
		Wave: in.Wave, Background: in.Background,
	})
}

// backgroundFile is what a worker's Task depends on as the content of a file, nil for
// nothing.
func backgroundFile(b *hub.Background) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	return json.Marshal(b)
}

func (agents) AttachedPreamble(task hub.TaskID, id hub.DispatchID, c hub.Checks, w *hub.WaveRef) string {
	return agent.AttachedPreamble(task, id, c, w)
}
