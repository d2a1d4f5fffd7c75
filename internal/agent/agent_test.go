package agent

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

var update = flag.Bool("update", false, "write the golden files")

func mustTable(t *testing.T, defs map[string]Definition) *Table {
	t.Helper()
	table, err := New(defs)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLookup(t *testing.T) {
	self := executable(t)
	table := mustTable(t, map[string]Definition{
		"mine":    {Command: []string{self, "-p"}, Deliver: DeliverArgv, Completion: CompleteByExit, Env: map[string]string{"A": "b"}, Grace: time.Second},
		"missing": {Command: []string{"no-such-program-anywhere"}},
		"plain":   {Command: []string{self}},
	})
	got, err := table.Lookup("mine")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Command, []string{self, "-p"}) || got.Deliver != DeliverArgv || got.Completion != CompleteByExit ||
		got.Grace != time.Second || got.Env["A"] != "b" || got.Bare {
		t.Errorf("got %+v", got)
	}
	if got, err := table.Lookup("plain"); err != nil || got.Deliver != DeliverStdin || got.Completion != CompleteByReport || got.Grace != DefaultGrace {
		t.Errorf("defaults: %+v, %v", got, err)
	}
	for _, name := range []string{"", "codex; rm -rf ~", "codex", "../mine", "MINE", self, "missing", "mine ", "$(id)"} {
		_, err := table.Lookup(name)
		if !hub.IsCode(err, hub.CodeAgentUnconfigured) {
			t.Errorf("%q: %v", name, err)
		}
	}
	_, err = table.Lookup("nope")
	if err == nil || !strings.Contains(err.Error(), "mine, missing, plain, sh") {
		t.Errorf("the error does not list the names: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	ok := []string{"x"}
	cases := map[string]map[string]Definition{
		"name":       {"A b": {Command: ok}},
		"built in":   {"sh": {Command: ok}},
		"no command": {"a": {}},
		"relative":   {"a": {Command: []string{"./x"}}},
		"nul":        {"a": {Command: []string{"x", "a\x00b"}}},
		"deliver":    {"a": {Command: ok, Deliver: "paste"}},
		"completion": {"a": {Command: ok, Completion: "never"}},
		"result":     {"a": {Command: ok, Completion: CompleteByResult}},
		"grace":      {"a": {Command: ok, Grace: -1}},
		"env":        {"a": {Command: ok, Env: map[string]string{"A=B": "c"}}},
		"own env":    {"a": {Command: ok, Env: map[string]string{"WAVEHUB_BIN": "c"}}},
	}
	for name, defs := range cases {
		if _, err := New(defs); !hub.IsCode(err, hub.CodeConfigInvalid) {
			t.Errorf("%s: %v", name, err)
		}
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
	if !filepath.IsAbs(plan.Argv[0]) || !slices.Equal(plan.Argv[1:], []string{script}) || plan.Stdin != nil {
		t.Errorf("plan %+v", plan)
	}
	if len(plan.Files) != 1 || plan.Files[0].Path != script || plan.Files[0].Mode != 0o600 || string(plan.Files[0].Data) != "go vet ./...\n" {
		t.Errorf("files %+v", plan.Files)
	}
	if sh.Completion != CompleteByExit {
		t.Errorf("completion %s", sh.Completion)
	}
}

func TestPlanDeliveries(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "prompt.md")
	long := strings.Repeat("x", MaxArgPrompt+1)
	cases := map[string]struct {
		l        Launcher
		preamble string
		lastArg  string
		stdin    string
		file     string
	}{
		"stdin":     {Launcher{Deliver: DeliverStdin}, "do", "-p", "do", ""},
		"argv":      {Launcher{Deliver: DeliverArgv}, "do", "do", "", ""},
		"argv max":  {Launcher{Deliver: DeliverArgv}, long[1:], long[1:], "", ""},
		"argv long": {Launcher{Deliver: DeliverArgv}, long, "Your task is in the file " + path + " - read all of it, then do what it says.", "", long + "\n"},
		"option":    {Launcher{Deliver: DeliverArgv}, "--yes", "Your task is in the file " + path + " - read all of it, then do what it says.", "", "--yes\n"},
		"file":      {Launcher{Deliver: DeliverFile}, "do\n", path, "", "do\n"},
	}
	for name, c := range cases {
		c.l.Command = []string{"/bin/agent", "-p"}
		plan, err := c.l.Plan(Input{Spec: "spec", Preamble: c.preamble, PromptDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Argv[len(plan.Argv)-1]; got != c.lastArg {
			t.Errorf("%s: last argument %.80q", name, got)
		}
		if string(plan.Stdin) != c.stdin || (c.file != "") != (len(plan.Files) == 1) || c.file != "" && string(plan.Files[0].Data) != c.file {
			t.Errorf("%s: stdin %q, %d files", name, plan.Stdin, len(plan.Files))
		}
		if !slices.Equal(c.l.Command, []string{"/bin/agent", "-p"}) {
			t.Errorf("%s: the launcher changed: %v", name, c.l.Command)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	l := Launcher{Command: []string{"/bin/agent"}, Deliver: DeliverArgv}
	for _, in := range []Input{{Spec: "x", PromptDir: "/d"}, {Preamble: "a\x00b", PromptDir: "/d"}, {Preamble: "x", PromptDir: "rel"}} {
		if _, err := l.Plan(in); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

func TestPreambleGolden(t *testing.T) {
	got := Preamble(PreambleInput{Worktree: "/srv/work trees/vet", Task: "task_01", Dispatch: "dispatch_02",
		Bin: "/opt/wavehub/bin/wavehub", Spec: "Vet everything.\n100% of it.\n"})
	golden := filepath.Join("testdata", "preamble.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("the preamble is now:\n%s", got)
	}
	if strings.Contains(Preamble(PreambleInput{Worktree: "/a\nrm -rf", Bin: "/b"}), "\nrm -rf") {
		t.Error("a path made a line of its own")
	}
}

func TestQuote(t *testing.T) {
	cases := []struct {
		path    string
		windows bool
		want    string
	}{
		{"/usr/bin/wavehub", false, `"/usr/bin/wavehub"`},
		{"/a b/$(x)'y", false, `'/a b/$(x)'\''y'`},
		{`C:\Program Files\w.exe`, true, `"C:\Program Files\w.exe"`},
	}
	for _, c := range cases {
		if got := quote(c.path, c.windows); got != c.want {
			t.Errorf("%s: %s", c.path, got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	base := []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_RUNTIME_DIR=/r", "GOFLAGS=-x", "https_proxy=p", "TERM=dumb",
		"WAVEHUB_HOME=/secret", "WAVEHUB_CONSUMER=whc_x", "AWS_SECRET_ACCESS_KEY=x", "GOOGLE_APPLICATION_CREDENTIALS=x",
		"LD_PRELOAD=x", "BASH_ENV=x", "GIT_DIR=x", "malformed", "Path=/other"}
	got := environment(base, map[string]string{"WAVEHUB_BIN": "/w", "TERM": "xterm"}, false)
	want := []string{"GOFLAGS=-x", "HOME=/h", "LC_ALL=C", "PATH=/bin", "TERM=xterm", "WAVEHUB_BIN=/w", "XDG_RUNTIME_DIR=/r", "https_proxy=p"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEnvironmentOnWindows(t *testing.T) {
	base := []string{`=C:=C:\`, `Path=C:\a`, `SystemRoot=C:\W`, "Wavehub_Home=x", "ProgramFiles(x86)=p", "Secret=x"}
	got := environment(base, map[string]string{"PATH": `C:\b`}, true)
	want := []string{`PATH=C:\b`, "ProgramFiles(x86)=p", `SystemRoot=C:\W`}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBatchFiles(t *testing.T) {
	for program, want := range map[string]bool{"C:/x/claude.CMD": true, "a.bat": true, "a.exe": false, "a": false} {
		if batch(program) != want {
			t.Errorf("%s: batch is %v", program, !want)
		}
	}
	if plainArg.MatchString("a & b") || !plainArg.MatchString(`C:\a\b-c=1`) {
		t.Error("the grammar of plain arguments")
	}
}
