package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/work"
)

// TestCarriedConfigurationIsTold: from the worker's folder up to the root of the
// repository, of the worker's own agent, and nothing above.
func TestCarriedConfigurationIsTold(t *testing.T) {
	above := t.TempDir()
	root := filepath.Join(above, "repo")
	sub := filepath.Join(root, "a", "b")
	for _, dir := range []string{".git", ".codex", ".claude", "a/b"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"../.mcp.json", ".mcp.json", ".claude/settings.json", "a/b/opencode.json"} {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(file)), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := mustAgents(t, map[string]config.AgentDefinition{
		"claude": {Command: []string{script(t, "")}}, "codex": {Command: []string{script(t, "")}},
		"mine": {Command: []string{script(t, "")}, Deliver: "stdin"},
	})
	warned := func(agent, dir string) string {
		plan, err := a.Plan(work.Launch{Agent: agent, Terminal: "term_1", Dir: dir, Private: t.TempDir(), Prompt: "do it"})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(plan.Warnings, "\n")
	}
	if got := warned("claude", sub); strings.Count(got, root) != 2 || !strings.Contains(got, ".mcp.json") || !strings.Contains(got, "settings.json") {
		t.Errorf("claude: %q", got)
	}
	if got := warned("codex", root); !strings.HasSuffix(got, filepath.Join(root, ".codex")) {
		t.Errorf("codex: %q", got)
	}
	if got := warned("mine", root) + warned("codex", t.TempDir()); got != "" {
		t.Errorf("without any: %q", got)
	}
}
