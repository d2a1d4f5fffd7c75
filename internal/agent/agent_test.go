package agent

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s is now:\n%s", name, got)
	}
}

func TestPreambleGolden(t *testing.T) {
	got := Preamble(PreambleInput{Worktree: "/srv/work trees/vet", Task: "task_01", Dispatch: "dispatch_02",
		Bin: "/opt/wavehub/bin/wavehub", Spec: "Vet everything.\n100% of it.\n"})
	golden(t, "preamble.golden", got)
	if strings.Contains(Preamble(PreambleInput{Worktree: "/a\nrm -rf", Bin: "/b"}), "\nrm -rf") {
		t.Error("a path made a line of its own")
	}
}

// TestPreambleTellsTheTerms: whoever is judged by something has been told of it.
func TestPreambleTellsTheTerms(t *testing.T) {
	in := PreambleInput{Worktree: "/w", Task: "task_01", Dispatch: "dispatch_02", Bin: "/b/wavehub", Spec: "Do it.\n", MayCoordinate: true}
	in.Checks = hub.Checks{WriteScope: []string{"docs", "*.md"}, VerifyCmd: "make test\nrm -rf", HandoffPath: "notes.md"}
	golden(t, "preamble_terms.golden", Preamble(in))
	if strings.Contains(Preamble(in), "\nrm -rf") {
		t.Error("a command made a line of its own")
	}
}

func TestAttachedPreamble(t *testing.T) {
	got := AttachedPreamble("task_01", "dispatch_02", hub.Checks{VerifyCmd: "make test"}, nil)
	for _, want := range []string{"task_01", "dispatch_02", "Check:     run this before you report success", "--verify-result passed or failed: make test\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := AttachedPreamble("task_01", "dispatch_02", hub.Checks{}, nil); strings.Contains(got, "Check:") {
		t.Errorf("a check that there is not:\n%s", got)
	}
}

func TestPreambleKeepsTheText(t *testing.T) {
	for _, spec := range []string{"a", "a\n", "a\n\n", "\n a \n\t\n"} {
		if got := Preamble(PreambleInput{Worktree: "/a", Bin: "/b", Spec: spec}); !strings.Contains(got, "The task:\n\n"+spec) {
			t.Errorf("%q is changed", spec)
		}
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

// TestAgentsAreNotInherited: what an agent sets for its children must not
// reach another agent that the hub starts.
func TestAgentsAreNotInherited(t *testing.T) {
	for _, name := range []string{"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "AI_AGENT", "CODEX_HOME", "CODEX_CI",
		"CODEX_SESSION_ID", "GEMINI_CLI", "GEMINI_SESSION_ID", "OPENCODE", "OPENCODE_PID", "OPENCODE_CONFIG", "AGENT"} {
		for _, windows := range []bool{false, true} {
			if got := environment([]string{name + "=x"}, nil, windows); len(got) != 0 {
				t.Errorf("%s is passed on", name)
			}
		}
	}
}

// TestPreambleOfAWave: the wave is named, and what the Task depends on comes behind
// its text.
func TestPreambleOfAWave(t *testing.T) {
	b := hub.NewBackground([]hub.Dependency{{Task: "task_00", Token: "T001", Title: "the schema", Result: "Two tables.", Hub: "mac", Worktree: "wt_1"}}, 1)
	in := PreambleInput{Worktree: "/w", Task: "task_01", Dispatch: "dispatch_02", Bin: "/b/wavehub", Spec: "Do it.", Wave: &hub.WaveRef{Wave: "w1", Token: "T002"}, Background: b}
	golden(t, "preamble_wave.golden", Preamble(in))
	if got := AttachedPreamble("task_01", "dispatch_02", hub.Checks{}, in.Wave); !strings.Contains(got, "Dispatch:  dispatch_02\nWave:      w1, its task T002\n\nReport") {
		t.Errorf("an attached worker is told\n%s", got)
	}
}
