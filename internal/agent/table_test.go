package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

func mustTable(t *testing.T, defs map[string]Definition) *Table {
	t.Helper()
	table, err := New(defs)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func mustLookup(t *testing.T, table *Table, name string) Launcher {
	t.Helper()
	l, err := table.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// programs puts empty programs of those names into a folder that is all of
// PATH, and returns it.
func programs(t *testing.T, names ...string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("programs of Windows are not scripts")
	}
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

func TestLookup(t *testing.T) {
	self := executable(t)
	bare := true
	table := mustTable(t, map[string]Definition{
		"mine": {Command: []string{self, "-p"}, Deliver: DeliverArgv, Completion: CompleteByExit, Env: map[string]string{"A": "b"},
			Grace: time.Second, Bare: &bare},
		"missing": {Command: []string{"no-such-program-anywhere"}},
		"plain":   {Command: []string{self}},
	})
	got := mustLookup(t, table, "mine")
	if !slices.Equal(got.Command, []string{self, "-p"}) || got.Modes[ModeHeadless].Deliver != DeliverArgv || len(got.Modes) != 1 ||
		got.CompletionIn(ModeHeadless) != CompleteByExit || got.Grace != time.Second || got.Env["A"] != "b" || !got.Bare || got.Kind != "mine" {
		t.Errorf("got %+v", got)
	}
	got = mustLookup(t, table, "plain")
	if got.Default != ModeHeadless || got.Modes[ModeHeadless].Deliver != DeliverStdin || got.CompletionIn(ModeHeadless) != CompleteByReport ||
		got.Grace != DefaultGrace || got.Bare {
		t.Errorf("defaults: %+v", got)
	}
	got.Env["X"], got.Modes["x"] = "y", ModeSpec{}
	if again := mustLookup(t, table, "plain"); again.Env["X"] != "" || len(again.Modes) != 1 {
		t.Error("a launcher shares its maps with the table")
	}
	for _, name := range []string{"", "codex; rm -rf ~", "../mine", "MINE", self, "missing", "mine ", "$(id)", "codex\x00", "--help"} {
		if _, err := table.Lookup(name); !hub.IsCode(err, hub.CodeAgentUnconfigured) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := table.VersionCommand(name); !hub.IsCode(err, hub.CodeAgentUnconfigured) && name != "missing" {
			t.Errorf("version of %q: %v", name, err)
		}
	}
	_, err := table.Lookup("nope")
	if err == nil || !strings.Contains(err.Error(), "grok, mine, missing, openclaude, opencode, plain") {
		t.Errorf("the error does not list the names: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	ok := []string{"x"}
	mode := func(m Mode, s ModeSpec) map[Mode]ModeSpec { return map[Mode]ModeSpec{m: s} }
	cases := map[string]map[string]Definition{
		"a name is":                   {"A b": {Command: ok}},
		"sh is built in":              {"sh": {Command: ok}},
		"cmd is built in":             {"cmd": {Command: ok}},
		"powershell is built in":      {"powershell": {Env: map[string]string{"A": "b"}}},
		"command: the program is":     {"a": {}},
		"bare name or an absolute":    {"a": {Command: []string{"./x"}}},
		"command: holds a NUL":        {"a": {Command: []string{"x", "a\x00b"}}},
		"version: the program must":   {"codex": {Version: []string{"./x"}}},
		`deliver: "pigeon" is none`:   {"a": {Command: ok, Deliver: "pigeon"}},
		`deliver: "paste" is none`:    {"a": {Command: ok, Deliver: DeliverPaste}},
		`deliver: "stdin" is none`:    {"a": {Command: ok, Modes: mode(ModeTUI, ModeSpec{Deliver: DeliverStdin})}},
		"deliver: belongs to a mode":  {"a": {Command: ok, Deliver: DeliverArgv, Modes: mode(ModeTUI, ModeSpec{})}},
		"deliver: belongs to a":       {"a": {Like: "codex", Deliver: DeliverArgv}},
		"modes.web: is neither":       {"a": {Command: ok, Mode: "web", Modes: mode("web", ModeSpec{})}},
		`mode: "headless" is none of`: {"a": {Command: ok, Modes: mode("", ModeSpec{})}},
		`mode: "tui" is none of`:      {"grok": {Mode: ModeTUI}},
		"args: hold a NUL":            {"codex": {Modes: mode(ModeTUI, ModeSpec{Args: []string{"\x00"}})}},
		"ready: hook needs":           {"a": {Command: ok, Modes: mode(ModeTUI, ModeSpec{Ready: ReadyHook})}},
		"ready: title needs":          {"opencode": {Modes: mode(ModeTUI, ModeSpec{Ready: ReadyTitle})}},
		"ready: title needs the tui":  {"codex": {Modes: mode(ModeHeadless, ModeSpec{Ready: ReadyTitle})}},
		"ready: quiescence needs":     {"codex": {Modes: mode(ModeHeadless, ModeSpec{Ready: ReadyQuiescence})}},
		`ready: "soon" is none`:       {"codex": {Modes: mode(ModeTUI, ModeSpec{Ready: "soon"})}},
		"result: a tui has no":        {"codex": {Modes: mode(ModeTUI, ModeSpec{Result: StreamCodex})}},
		`"xml" is no kind of output`:  {"codex": {Modes: mode(ModeHeadless, ModeSpec{Result: "xml"})}},
		`completion: "never" is none`: {"a": {Command: ok, Completion: "never"}},
		"completion: result needs":    {"a": {Command: ok, Completion: CompleteByResult}},
		`like: "me" is no built-in`:   {"a": {Like: "me"}},
		`like: "sh" is no built-in`:   {"a": {Like: "sh"}},
		"grace: must not":             {"a": {Command: ok, Grace: -1}},
		`env: "A=B" cannot`:           {"a": {Command: ok, Env: map[string]string{"A=B": "c"}}},
		`env: "WAVEHUB_BIN" cannot`:   {"a": {Command: ok, Env: map[string]string{"WAVEHUB_BIN": "c"}}},
		"env: A holds a NUL":          {"a": {Command: ok, Env: map[string]string{"A": "\x00"}}},
		"the program is missing":      {"codex": {Deliver: DeliverArgv}}, // flat: a launcher of its own
	}
	for want, defs := range cases {
		_, err := New(defs)
		if !hub.IsCode(err, hub.CodeConfigInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "agents.") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestChanges: an entry changes a built-in field by field, and what it leaves
// out stays.
func TestChanges(t *testing.T) {
	programs(t, "codex", "claude", "wrapper")
	table := mustTable(t, map[string]Definition{
		"codex": {Mode: ModeHeadless, Env: map[string]string{"CODEX_HOME": "/h"},
			Modes: map[Mode]ModeSpec{ModeTUI: {Args: []string{"--yolo"}, Ready: ReadyTitle}, ModeHeadless: {Result: "none"}}},
		"mine":   {Like: "claude", Command: []string{"wrapper", "-x"}, Modes: map[Mode]ModeSpec{ModeHeadless: {Args: []string{}, Deliver: DeliverArgv}}},
		"claude": {Command: []string{"claude", "-p"}, Deliver: DeliverStdin},
		"both":   {Command: []string{"wrapper"}, Modes: map[Mode]ModeSpec{ModeTUI: {}, ModeHeadless: {Result: StreamGrok}}, Completion: CompleteByResult},
		"screen": {Command: []string{"wrapper"}, Mode: ModeTUI},
	})
	codex := mustLookup(t, table, "codex")
	tui := codex.Modes[ModeTUI]
	if codex.Kind != "codex" || codex.Default != ModeHeadless || !slices.Equal(tui.Args, []string{"--yolo"}) || tui.Ready != ReadyTitle ||
		tui.Deliver != DeliverArgv || codex.Env["CODEX_HOME"] != "/h" || codex.Modes[ModeHeadless].Args[0] != "exec" ||
		codex.CompletionIn(ModeHeadless) != CompleteByReport {
		t.Errorf("codex %+v", codex)
	}
	mine := mustLookup(t, table, "mine")
	headless := mine.Modes[ModeHeadless]
	if mine.Kind != "claude" || mine.Default != ModeTUI || len(headless.Args) != 0 || headless.Deliver != DeliverArgv || headless.Result != StreamClaude ||
		filepath.Base(mine.Command[0]) != "wrapper" || mine.CompletionIn(ModeTUI) != CompleteByReport || mine.CompletionIn(ModeHeadless) != CompleteByResult {
		t.Errorf("mine %+v", mine)
	}
	if version, err := table.VersionCommand("mine"); err != nil || !slices.Equal(version[1:], []string{"-x", "--version"}) {
		t.Errorf("version %q, %v", version, err)
	}
	flat := mustLookup(t, table, "claude")
	if len(flat.Modes) != 1 || flat.Default != ModeHeadless || flat.Modes[ModeHeadless].Args != nil || flat.CompletionIn(ModeHeadless) != CompleteByReport {
		t.Errorf("the flat form %+v", flat)
	}
	both := mustLookup(t, table, "both")
	if both.Default != ModeTUI || both.Modes[ModeTUI].Deliver != DeliverArgv || both.CompletionIn(ModeTUI) != CompleteByReport ||
		both.CompletionIn(ModeHeadless) != CompleteByResult {
		t.Errorf("both %+v", both)
	}
	if version, err := table.VersionCommand("both"); err != nil || version != nil {
		t.Errorf("a version of its own making: %q, %v", version, err)
	}
	if screen := mustLookup(t, table, "screen"); screen.Default != ModeTUI || len(screen.Modes) != 1 {
		t.Errorf("screen %+v", screen)
	}
	if _, err := both.In("web"); !hub.IsCode(err, hub.CodeInvalidArgument) || !strings.Contains(err.Error(), "headless and tui") {
		t.Errorf("another mode: %v", err)
	}
}

func TestList(t *testing.T) {
	dir := programs(t, "codex", "sh")
	table := mustTable(t, map[string]Definition{"mine": {Like: "codex", Command: []string{"nothing"}}})
	facts := map[string]Facts{}
	for _, f := range table.List() {
		facts[f.Name] = f
	}
	if len(facts) != len(table.Names()) || len(facts) != len(Kinds())+1 {
		t.Errorf("%d facts, %d names, %d kinds", len(facts), len(table.Names()), len(Kinds()))
	}
	codex := facts["codex"]
	if !codex.BuiltIn || codex.Program != filepath.Join(dir, "codex") || codex.Missing != "" || codex.Default != ModeTUI ||
		!slices.Equal(codex.Modes, []Mode{ModeHeadless, ModeTUI}) || codex.Completion != CompleteByReport {
		t.Errorf("codex %+v", codex)
	}
	if mine := facts["mine"]; mine.BuiltIn || mine.Kind != "codex" || mine.Program != "" || !strings.Contains(mine.Missing, "nothing") {
		t.Errorf("mine %+v", mine)
	}
	if sh := facts["sh"]; sh.Completion != CompleteByExit || sh.Default != ModeHeadless {
		t.Errorf("sh %+v", sh)
	}
	if grok := facts["grok"]; grok.Completion != CompleteByResult || grok.Program != "" {
		t.Errorf("grok %+v", grok)
	}
}

func TestShims(t *testing.T) {
	const head = "@ECHO off\r\nGOTO start\r\n:find_dp0\r\nSET dp0=%~dp0\r\nEXIT /b\r\n:start\r\nSETLOCAL\r\nCALL :find_dp0\r\n\r\n"
	const node = "IF EXIST \"%dp0%\\node.exe\" (\r\n  SET \"_prog=%dp0%\\node.exe\"\r\n) ELSE (\r\n  SET \"_prog=node\"\r\n  SET PATHEXT=%PATHEXT:;.JS;=;%\r\n)\r\n\r\n"
	const run = `endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & "%_prog%"  "%dp0%\node_modules\@openai\codex\bin\codex.js" %*` + "\r\n"
	cases := map[string]struct {
		target     string
		script, ok bool
	}{
		head + node + run: {`node_modules\@openai\codex\bin\codex.js`, true, true},
		head + `"%dp0%\node_modules\@anthropic-ai\claude-code\bin\claude.exe"   %*` + "\r\n": {`node_modules\@anthropic-ai\claude-code\bin\claude.exe`, false, true},
		head + node + run + run:                               {},
		head + `"%_prog%" --harmony "%dp0%\x.js" %*` + "\r\n": {},
		head + `"%dp0%\x.exe" %* & del y` + "\r\n":            {},
		head + `"%dp0%\%evil%.exe" %*` + "\r\n":               {},
		"@echo off\r\nclaude.exe %*\r\n":                      {},
		"":                                                    {},
	}
	for text, want := range cases {
		target, script, ok := npmShim(text)
		if target != want.target || script != want.script || ok != want.ok {
			t.Errorf("%q: %q %v %v", text[max(0, len(text)-60):], target, script, ok)
		}
	}
	for program, want := range map[string]bool{"C:/x/claude.CMD": true, "a.bat": true, "a.exe": false, "a": false} {
		if batch(program) != want {
			t.Errorf("%s: batch is %v", program, !want)
		}
	}
	if plainArg.MatchString("a & b") || plainArg.MatchString("%PATH%") || plainArg.MatchString(`a"b`) || !plainArg.MatchString(`C:\a\b-c=1 d`) {
		t.Error("the grammar of plain arguments")
	}
}
