package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests of real agents run in a network namespace that has only loopback,
// against a scripted model, with a clean environment and an empty home.
const (
	envAgents   = "WAVEHUB_AGENTS"    // folder of npm's node_modules/.bin
	envModel    = "WAVEHUB_FAKEMODEL" // source folder of the scripted model
	envAgentRun = "WAVEHUB_AGENT_RUN" // which subtests to run; without it none are
	envIsolated = "WAVEHUB_ISOLATED"  // set inside the namespace
)

// realAgents is the folder of the agents' programs and the one of the model's
// source; the test is skipped where they are not.
func realAgents(t *testing.T) (programs, model string) {
	t.Helper()
	if os.Getenv(envAgentRun) == "" {
		t.Skip("make agents and make e2e-agents run the real agents")
	}
	programs, model = os.Getenv(envAgents), os.Getenv(envModel)
	if programs == "" {
		programs = filepath.Join(moduleRoot, "bin", "agents", "node_modules", ".bin")
	}
	if model == "" {
		model = filepath.Join(moduleRoot, "..", "shared", "fakemodel")
	}
	for what, path := range map[string]*string{"no agents are installed (make agents)": &programs, "the scripted model is not here": &model} {
		if _, err := os.Stat(*path); err != nil {
			t.Skipf("%s: %v", what, err)
		}
		abs, err := filepath.Abs(*path)
		must(t, err)
		*path = abs
	}
	return programs, model
}

// isolated runs the calling test again in a network namespace of its own and
// returns false; inside of it, it returns true.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(envIsolated) != "" {
		must(t, loopbackUp())
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	args := []string{"-test.v", "-test.run=^" + t.Name() + "$"}
	if pattern := os.Getenv(envAgentRun); pattern != "" {
		args[1] = "-test.run=^" + t.Name() + "$/" + pattern
	}
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), envIsolated+"=1", "WAVEHUB_BIN_DIR="+filepath.Dir(wavehubBin), "TMPDIR="+ownFolder(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("in a network namespace:\n%s", out)
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("no network namespace can be made here: %v", err)
	}
	if err != nil {
		t.Error(err)
	}
	return false
}

// ownFolder is a folder below folders that nobody else may write to: gemini passes
// over what lies below others.
func ownFolder(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	must(t, err)
	dir, err := os.MkdirTemp(home, "wavehub-test-")
	must(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// loopbackUp switches the one interface of a new namespace on.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// model is a running scripted model.
type model struct {
	t    *testing.T
	URL  string
	log  string
	path string // of its script
}

// startModel builds and starts the model; it ends with the test.
func startModel(t *testing.T, source string) *model {
	t.Helper()
	dir := t.TempDir()
	m := &model{t: t, log: filepath.Join(dir, "requests.jsonl"), path: filepath.Join(dir, "script.json")}
	m.script(`{"steps": [{"text": "hello"}]}`)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "fakemodel"), ".")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the model: %v\n%s", err, out)
	}
	addr := filepath.Join(dir, "addr")
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "fakemodel"), "-addr", "127.0.0.1:0", "-addr-file", addr, "-script", m.path, "-log", m.log)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "the model listens", 10*time.Second, func() bool {
		raw, err := os.ReadFile(addr)
		m.URL = "http://" + strings.TrimSpace(string(raw))
		return err == nil && len(raw) > 0
	})
	return m
}

// script replaces what the model says from now on.
func (m *model) script(text string) {
	m.t.Helper()
	must(m.t, os.WriteFile(m.path+".new", []byte(text), 0o600))
	must(m.t, os.Rename(m.path+".new", m.path))
}

// saying is one answer of the model.
type saying struct {
	Text     string `json:"text,omitempty"`
	Command  string `json:"command,omitempty"`
	WaitFile string `json:"wait_file,omitempty"`
}

// says makes the model take these steps for the prompt that holds word; several
// words have a script each.
func (m *model) says(scripts map[string][]saying) {
	m.t.Helper()
	type conversation struct {
		Match string   `json:"match"`
		Each  bool     `json:"each_prompt"` // a resumed session begins them anew
		Steps []saying `json:"steps"`
	}
	var cs []conversation
	for word, steps := range scripts {
		cs = append(cs, conversation{word, true, steps})
	}
	raw, err := json.Marshal(map[string]any{"conversations": cs, "steps": []saying{{Text: "hello"}}})
	must(m.t, err)
	m.script(string(raw))
}

// requests are the lines that the model has logged.
func (m *model) requests() string {
	raw, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// marked are the processes that carry a terminal's mark.
func marked(t testing.TB, terminal string) (found []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/environ")
	must(t, err)
	for _, path := range dirs {
		raw, err := os.ReadFile(path)
		if err == nil && slices.Contains(strings.Split(string(raw), "\x00"), "WAVEHUB_TERMINAL_ID="+terminal) {
			found = append(found, filepath.Base(filepath.Dir(path)))
		}
	}
	return found
}
