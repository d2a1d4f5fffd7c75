package agent

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

const testSession = "8d9200c1-0d50-4b4f-b180-e55224055d46"

// goldenDefs add the deliveries that no built-in has by itself.
func goldenDefs() map[string]Definition {
	way := func(mode Mode, d Deliver) map[Mode]ModeSpec { return map[Mode]ModeSpec{mode: {Deliver: d}} }
	return map[string]Definition{
		"claude-paste": {Like: "claude", Modes: way(ModeTUI, DeliverPaste)},
		"gemini-argv":  {Like: "gemini", Modes: way(ModeHeadless, DeliverArgv), Env: map[string]string{"GEMINI_CLI_NO_RELAUNCH": "mine"}},
		"codex-argv":   {Like: "codex", Modes: way(ModeHeadless, DeliverArgv)},
		"own":          {Command: []string{"codex", "-q"}, Deliver: DeliverFile},
	}
}

// TestPlanGolden is the whole plan of each agent in each mode, new and resumed.
func TestPlanGolden(t *testing.T) {
	bin := programs(t, "codex", "claude", "openclaude", "grok", "gemini", "opencode", "copilot", "cursor-agent", "amp", "sh")
	table := mustTable(t, goldenDefs())
	for _, name := range table.Names() {
		l := mustLookup(t, table, name)
		var text strings.Builder
		for _, mode := range slices.Sorted(maps.Keys(l.Modes)) {
			for _, resume := range []string{"", "0a1b-resumed"} {
				in := Input{Spec: "do it", Preamble: "You are.\ndo it\n", PromptDir: "/private/term_1", Mode: mode, Resume: resume, Session: testSession,
					Bin: "/opt/wavehub/bin/wavehub", Env: map[string]string{"WAVEHUB_TERMINAL_ID": "term_1", "WAVEHUB_BIN": "/opt/wavehub/bin/wavehub"}}
				fmt.Fprintf(&text, "=== %s resume=%q\n", mode, resume)
				plan, err := l.Plan(in)
				if err != nil {
					fmt.Fprintf(&text, "%v\n\n", err)
					continue
				}
				dump(&text, plan)
			}
		}
		golden(t, "plans/"+name+".golden", strings.ReplaceAll(text.String(), bin, "$PATH"))
	}
}

func dump(w *strings.Builder, p Plan) {
	fmt.Fprintf(w, "pty=%v ready=%s result=%s completion=%s session=%s\n", p.PTY, p.Ready, p.Result, p.Completion, p.Session)
	for _, arg := range p.Argv {
		fmt.Fprintf(w, "arg %q\n", arg)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Env)) {
		fmt.Fprintf(w, "env %s=%q\n", key, p.Env[key])
	}
	for _, f := range p.Files {
		fmt.Fprintf(w, "file %s %o\n%s\n", f.Path, f.Mode, f.Data)
	}
	fmt.Fprintf(w, "stdin %q closed=%v\npaste %q\n\n", p.Stdin, p.Stdin == nil, p.Paste)
}

// TestAcceptance_W15_PromptsArriveByteExact: in every delivery mode the prompt
// comes out of the plan as it went in, and no argument grows with it.
func TestAcceptance_W15_PromptsArriveByteExact(t *testing.T) {
	dir := t.TempDir()
	prompts := map[string]string{
		"1 B": "x", "8 KiB": strings.Repeat("\x7fé\r\n", MaxArgPrompt)[:MaxArgPrompt], "8 KiB and 1 B": strings.Repeat("y", MaxArgPrompt+1),
		"1 MiB": strings.Repeat("z\n", 1<<19), "an option": "--yes", "the end of a paste": "a\x1b[201~\rb", "blanks": " a\n\n",
	}
	for name, prompt := range prompts {
		for _, deliver := range []Deliver{DeliverStdin, DeliverArgv, DeliverFile, DeliverPaste} {
			mode := ModeHeadless
			if deliver == DeliverPaste {
				mode = ModeTUI
			}
			l := Launcher{Name: "x", Command: []string{"/bin/agent", "-p"}, Default: mode, Modes: map[Mode]ModeSpec{mode: {Deliver: deliver}}}
			plan, err := l.Plan(Input{Spec: "spec", Preamble: prompt, PromptDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if got := arrives(plan); got != prompt {
				t.Errorf("%s by %s: %d bytes arrive, want %d", name, deliver, len(got), len(prompt))
			}
			if last := plan.Argv[len(plan.Argv)-1]; len(last) > MaxArgPrompt || last == "--yes" || len(plan.Paste) > MaxArgPrompt || bytes.Contains(plan.Paste, []byte("\x1b")) {
				t.Errorf("%s by %s: argument of %d bytes, paste %.40q", name, deliver, len(last), plan.Paste)
			}
			if !slices.Equal(l.Command, []string{"/bin/agent", "-p"}) {
				t.Errorf("the launcher changed: %v", l.Command)
			}
		}
	}
}

// arrives is what the agent would read: a file that it is pointed to, standard
// input, a paste, or its last argument.
func arrives(p Plan) string {
	switch {
	case len(p.Files) == 1:
		pointed := p.Argv[len(p.Argv)-1] + string(p.Paste)
		if !strings.Contains(pointed, p.Files[0].Path) || strings.Contains(pointed, "\n") {
			return "the file is not pointed to"
		}
		return string(p.Files[0].Data)
	case p.Stdin != nil:
		return string(p.Stdin)
	case p.Paste != nil:
		return string(p.Paste)
	}
	return p.Argv[len(p.Argv)-1]
}

func TestPlanRefuses(t *testing.T) {
	dir := t.TempDir()
	l := Launcher{Name: "x", Command: []string{"/bin/agent"}, Default: ModeHeadless, Modes: map[Mode]ModeSpec{ModeHeadless: {Deliver: DeliverArgv}}}
	for want, in := range map[string]Input{
		"empty or holds":   {Spec: "x", PromptDir: dir},
		"holds a NUL":      {Preamble: "a\x00b", PromptDir: dir},
		`"rel" is not`:     {Preamble: "x", PromptDir: "rel"},
		`bin: "wavehub"`:   {Preamble: "x", PromptDir: dir, Bin: "wavehub"},
		`no mode "tui"`:    {Preamble: "x", PromptDir: dir, Mode: ModeTUI},
		"resume_session":   {Preamble: "x", PromptDir: dir, Resume: "--yolo"},
		"is no session":    {Preamble: "x", PromptDir: dir, Session: "../x"},
		"no session's id":  {Preamble: "x", PromptDir: dir, Session: "a b"},
		`"a;b" is no sess`: {Preamble: "x", PromptDir: dir, Resume: "a;b"},
	} {
		if _, err := l.Plan(in); !hub.IsCode(err, hub.CodeInvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := l.Plan(Input{Preamble: "x", PromptDir: dir, Resume: testSession}); !hub.IsCode(err, hub.CodeCapabilityUnsupported) {
		t.Errorf("resuming what cannot be resumed: %v", err)
	}
}

// TestWithoutBin: without a program to call there are no hooks to wait for.
func TestWithoutBin(t *testing.T) {
	programs(t, "claude")
	plan, err := mustLookup(t, mustTable(t, nil), "claude").Plan(Input{Preamble: "x", PromptDir: "/d"})
	if err != nil || plan.Ready != ReadyLaunch || len(plan.Files) != 0 || slices.Contains(plan.Argv, "--settings") {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestCodexTrustsOurHooksOnly pins the identity that codex 0.171.0 was seen to
// accept, and that nothing else is trusted.
func TestCodexTrustsOurHooksOnly(t *testing.T) {
	if got := codexHookHash("Stop", `"/opt/wavehub" hook codex Stop`, 10); got != "sha256:edf09245ec3404f0798eead048e2798d4920342916aa514567baa87f25d81a88" {
		t.Errorf("the hash is %s", got)
	}
	if got := codexHookKey("UserPromptSubmit", false); got != "/<session-flags>/config.toml:user_prompt_submit:0:0" {
		t.Errorf("the key is %s", got)
	}
	made := wireCodex(wiring{mode: ModeTUI, kind: "codex", events: codex().wiredEvents(), bin: "/b", own: map[string]string{"WAVEHUB_BIN": "/a \"b\"\x7f"}})
	if all := strings.Join(made.args, " "); strings.Contains(all, "bypass") || strings.Contains(all, "notify") ||
		!strings.Contains(all, `shell_environment_policy.set.WAVEHUB_BIN="/a \"b\"\u007f"`) {
		t.Errorf("arguments %s", all)
	}
}

func TestHooksOnWindows(t *testing.T) {
	w := wiring{kind: "gemini", bin: `C:\it's\wavehub.exe`, windows: true}
	if got := w.shellCommand("AfterAgent"); got != `& 'C:\it''s\wavehub.exe' hook gemini AfterAgent` {
		t.Errorf("PowerShell gets %s", got)
	}
	if got := w.command("Stop"); got != `"C:\it's\wavehub.exe" hook gemini Stop` {
		t.Errorf("a shell gets %s", got)
	}
	if got := fileURL(`/a b/#x`); got != "file:///a%20b/%23x" {
		t.Errorf("the URL is %s", got)
	}
}

func TestShellPlan(t *testing.T) {
	sh, err := mustTable(t, nil).Lookup(Shell)
	if hub.IsCode(err, hub.CodeAgentUnconfigured) {
		t.Skipf("no shell here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plan, err := sh.Plan(Input{Spec: "go vet ./...", Preamble: "unused", PromptDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "task.sh")
	if !filepath.IsAbs(plan.Argv[0]) || !slices.Equal(plan.Argv[1:], []string{script}) || plan.Stdin != nil || plan.Completion != CompleteByExit {
		t.Errorf("plan %+v", plan)
	}
	if len(plan.Files) != 1 || plan.Files[0].Path != script || plan.Files[0].Mode != 0o600 || string(plan.Files[0].Data) != "go vet ./..." {
		t.Errorf("files %+v", plan.Files)
	}
}

func TestScripts(t *testing.T) {
	for ext, want := range map[string]string{".sh": "a\nb\r\n", ".cmd": "a\r\nb\r\n", ".ps1": "\ufeffa\nb\r\n"} {
		if got := string(scriptText(ext, "a\nb\r\n")); got != want {
			t.Errorf("%s: %q", ext, got)
		}
	}
	known := builtins(true)
	for name, file := range map[string]string{"cmd": "task.cmd", "powershell": "task.ps1"} {
		e, err := Definition{}.resolve(name, known)
		if err != nil || e.launcher.profile.script != file || e.launcher.CompletionIn(ModeHeadless) != CompleteByExit || !e.launcher.Bare {
			t.Errorf("%s: %+v, %v", name, e.launcher, err)
		}
	}
	if _, ok := builtins(false)["cmd"]; ok || runtime.GOOS != "windows" && slices.Contains(Kinds(), "cmd") {
		t.Error("cmd is offered where there is none")
	}
}

// TestScriptsAreTheTaskAlone: what a Task depends on never gets into a script; its
// file is named to each launcher.
func TestScriptsAreTheTaskAlone(t *testing.T) {
	programs(t, "sh", "claude")
	table := mustTable(t, nil)
	in := Input{Spec: "echo 1\n", Preamble: "You are.\necho 1\nWhat this task depends on\n", PromptDir: t.TempDir(), Background: []byte(`{"dependencies":[]}`),
		Env: map[string]string{"WAVEHUB_BIN": "/b"}}
	for _, name := range []string{"sh", "claude"} {
		l := mustLookup(t, table, name)
		plan, err := l.Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		want := filepath.Join(in.PromptDir, "dependencies.json")
		i := slices.IndexFunc(plan.Files, func(f File) bool { return f.Path == want })
		if i < 0 || !bytes.Equal(plan.Files[i].Data, in.Background) || plan.Files[i].Mode != 0o600 || plan.Env[hub.EnvDependencies] != want {
			t.Errorf("%s gets %+v, %v", name, plan.Files, plan.Env)
		}
		script := slices.ContainsFunc(plan.Files, func(f File) bool { return string(f.Data) == in.Spec })
		if script != (name == "sh") {
			t.Errorf("%s: the script is the Task's text: %v", name, script)
		}
	}
	in.Background = nil
	if plan, err := mustLookup(t, table, "sh").Plan(in); err != nil || len(plan.Files) != 1 || plan.Env[hub.EnvDependencies] != "" {
		t.Errorf("without dependencies: %+v, %v", plan, err)
	}
}
