package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
	"github.com/wavehub/wavehub/internal/work"
)

// script makes an agent's program out of a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the agents of this test are shell scripts")
	}
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustAgents(t *testing.T, defs map[string]config.AgentDefinition) agents {
	t.Helper()
	a, err := newAgents(config.Config{Agents: defs}, "/opt/wavehub/bin/wavehub")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPlanPassesEverythingOn(t *testing.T) {
	bare := true
	program := script(t, "")
	a := mustAgents(t, map[string]config.AgentDefinition{"mine": {
		Like: "claude", Command: []string{program}, Mode: "headless", Env: map[string]string{"A": "b"}, Grace: time.Second, Bare: &bare,
		Modes: map[string]config.AgentMode{"tui": {Deliver: "paste", Ready: "title"}, "headless": {Args: []string{"-q"}}},
	}})
	private := t.TempDir()
	in := work.Launch{Agent: "mine", Terminal: "term_1", Dir: "/w", Private: private, Prompt: "do it", Session: "0-1", Env: map[string]string{"WAVEHUB_TERMINAL_ID": "term_1"}}
	plan, err := a.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(private, "claude-settings.json")
	if !slices.Equal(plan.Spec.Argv, []string{program, "-q", "--settings", settings, "--session-id", "0-1"}) || string(plan.Spec.Stdin) != "do it" ||
		plan.Spec.PTY != nil || plan.Stream != "claude-stream" || plan.Session != (hub.AgentSession{Provider: "claude", ID: "0-1"}) || plan.Ready != "launch" || plan.Spec.Dir != "/w" {
		t.Errorf("headless %+v", plan)
	}
	if raw, err := os.ReadFile(settings); err != nil || !strings.Contains(string(raw), `\"/opt/wavehub/bin/wavehub\" hook claude Stop`) {
		t.Errorf("the hooks are %.100s, %v", raw, err)
	}
	in.Mode, in.Resume = "tui", "0-2"
	if plan, err = a.Plan(in); err != nil {
		t.Fatal(err)
	}
	if plan.Spec.PTY == nil || string(plan.Paste) != "do it" || plan.Session.ID != "0-2" || plan.Ready != "title" || plan.Spec.Stdin != nil {
		t.Errorf("tui %+v", plan)
	}
	for _, want := range []string{"A=b", "TERM=xterm-256color", "COLORTERM=truecolor", "WAVEHUB_TERMINAL_ID=term_1"} {
		if !slices.Contains(plan.Spec.Env, want) {
			t.Errorf("%s is missing in %v", want, plan.Spec.Env)
		}
	}
	for mode, want := range map[string]string{"": "result", "headless": "result", "tui": "report"} {
		if got, err := a.Completion("mine", mode); err != nil || got != want {
			t.Errorf("completion in %q: %s, %v", mode, got, err)
		}
	}
	if _, err := a.Completion("mine", "web"); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("another mode: %v", err)
	}
	if a.Grace("mine") != time.Second {
		t.Errorf("grace %v", a.Grace("mine"))
	}
}

func TestVersion(t *testing.T) {
	a := mustAgents(t, map[string]config.AgentDefinition{
		"mine":  {Like: "codex", Command: []string{script(t, `cat; echo "codex $1"; echo more`)}},
		"loud":  {Like: "codex", Command: []string{script(t, "printf '\\033[1mv1\\n'; head -c 100000 /dev/zero")}},
		"wrong": {Like: "codex", Command: []string{script(t, "exit 3")}},
		"plain": {Command: []string{script(t, "")}, Deliver: "stdin"},
	})
	if got, err := a.Version(t.Context(), "mine"); err != nil || got != "codex --version" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := a.Version(t.Context(), "loud"); err != nil || strings.ContainsRune(got, 0x1b) || !strings.HasSuffix(got, "v1") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := a.Version(t.Context(), "wrong"); err == nil {
		t.Errorf("%q without an error", got)
	}
	if got, err := a.Version(t.Context(), "plain"); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := a.Version(t.Context(), "sh; id"); !hub.IsCode(err, hub.CodeAgentUnconfigured) {
		t.Errorf("a name that is none: %v", err)
	}
}

// TestKnownVersion: a program is asked again only when its file has changed.
func TestKnownVersion(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	program := script(t, "echo x >> '"+asked+"'; echo one")
	a := mustAgents(t, map[string]config.AgentDefinition{"mine": {Like: "codex", Command: []string{program}}})
	for _, want := range []struct {
		version string
		asked   int
	}{{"one", 1}, {"one", 1}, {"two", 2}} {
		if want.version == "two" {
			if err := os.WriteFile(program, []byte("#!/bin/sh\necho x >> '"+asked+"'; echo two; :\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		got, err := a.KnownVersion(t.Context(), "mine")
		raw, _ := os.ReadFile(asked)
		if err != nil || got != want.version || strings.Count(string(raw), "x") != want.asked {
			t.Errorf("%q, asked %q: %v", got, raw, err)
		}
	}
}

// TestVersionEndsTheTree: what hangs is killed with all that it started.
func TestVersionEndsTheTree(t *testing.T) {
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	a := mustAgents(t, map[string]config.AgentDefinition{"slow": {
		Like: "codex", Command: []string{script(t, `sleep 1000 & echo $! > "$STARTED.new"; mv "$STARTED.new" "$STARTED"; wait`)}, Env: map[string]string{"STARTED": started},
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := a.Version(ctx, "slow")
		ended <- err
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, err := os.Stat(started); err != nil; _, err = os.Stat(started) {
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v", err)
		case <-tick.C:
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if left, err := proc.FindByEnv("STARTED", started); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
