//go:build unix

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadme_TheTourWorksWhenPasted runs the commands of the README's tour as
// they stand there, from the first hub to the last curl.
func TestReadme_TheTourWorksWhenPasted(t *testing.T) {
	for _, tool := range []string{"bash", "jq", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the tour needs %s: %v", tool, err)
		}
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	script := tour(t, string(raw), home)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-m", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + filepath.Dir(wavehubBin) + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + runtimeDir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"succeeded", "go version go", "ready", "accepted", "worker_done: Kept. (succeeded)", "false\ntrue\n10\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the tour shows no %q:\n%s", want, out)
		}
	}
}

// tour takes the indented commands of the first part of "Five minutes". What is
// built and where the hub lives are the test's own; the hub is ended in any case.
func tour(t *testing.T, readme, home string) string {
	t.Helper()
	_, part, ok := strings.Cut(readme, "## Five minutes")
	part, _, ok2 := strings.Cut(part, "### Workers on another machine")
	if !ok || !ok2 {
		t.Fatal("the README has no tour between its headings")
	}
	lines := []string{"trap 'kill %1 2>/dev/null || true; wait' EXIT"}
	for line := range strings.SplitSeq(part, "\n") {
		if cmd, ok := strings.CutPrefix(line, "    "); ok && cmd != "make build" {
			lines = append(lines, strings.ReplaceAll(cmd, "/tmp/wavehub-tour", home))
		}
	}
	if len(lines) < 12 {
		t.Fatalf("the tour has only %d lines", len(lines))
	}
	return strings.Join(lines, "\n")
}

// TestReadme_EveryLineIsUnderstood holds the commands behind the tour against the
// verbs and flags that there are; they name machines and ids that are not.
func TestReadme_EveryLineIsUnderstood(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skipf("the lines need bash: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	must(t, err)
	_, part, ok := strings.Cut(string(raw), "### Workers on another machine")
	if !ok {
		t.Fatal("the README has nothing behind its tour")
	}
	lines := commandLines(part)
	if len(lines) < 20 {
		t.Fatalf("only %d lines were found", len(lines))
	}
	for _, line := range lines {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", `wavehub() { "$WAVEHUB" "$@" --help; }`+"\n"+line)
		cmd.Env = append(os.Environ(), "WAVEHUB="+wavehubBin)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Usage:") {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

// commandLines are the lines that begin with wavehub, behind a machine's prompt or
// not; one that ends with a backslash goes on.
func commandLines(text string) (lines []string) {
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", ""), "\n") {
		cmd, ok := strings.CutPrefix(line, "    ")
		if _, after, prompt := strings.Cut(cmd, "$ "); prompt && strings.HasPrefix(after, "wavehub ") {
			cmd = after
		}
		if ok && strings.HasPrefix(cmd, "wavehub ") {
			lines = append(lines, strings.TrimSuffix(strings.TrimSpace(cmd), "&"))
		}
	}
	return lines
}

// The plan that the README shows is that of the file which it names.
func TestReadme_ShowsThePlanOfItsExample(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, ok := strings.Cut(string(raw), "    $ wavehub wave plan deploy/waves/auth.json --conflicts serialize\n")
	shown, _, ok2 := strings.Cut(shown, "\n`tasks.json`")
	if !ok || !ok2 {
		t.Fatal("the README shows no plan")
	}
	h := StartHub(t, "mac")
	for _, name := range []string{"anna", "bert", "carl"} {
		if r := h.CLI("worker-identity", "register", name); r.Code != 0 {
			t.Fatal(r.Stderr)
		}
	}
	var want strings.Builder
	for line := range strings.Lines(shown) {
		want.WriteString(strings.TrimPrefix(line, "    "))
	}
	file, err := filepath.Abs(filepath.Join("..", "..", "deploy", "waves", "auth.json"))
	must(t, err)
	got := h.CLI("wave", "plan", file, "--conflicts", "serialize").Stdout
	if strings.TrimSpace(got) != strings.TrimSpace(want.String()) {
		t.Errorf("the README shows\n%s\nthe plan is\n%s", want.String(), got)
	}
}
