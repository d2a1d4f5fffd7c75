package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/safefile"
)

// home points the package at an empty home and returns it; text is the user's
// file, "" for none.
func home(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{envConfigDir, envDataDir, "WAVEHUB_NAME", "WAVEHUB_LISTEN", "WAVEHUB_ADVERTISE", "WAVEHUB_API_REMOTE", "WAVEHUB_LOG_LEVEL", "WAVEHUB_LIMITS_WORKERS", "WAVEHUB_VERIFY_TIMEOUT_SECS"} {
		t.Setenv(name, "")
	}
	t.Setenv(envHome, dir)
	if text != "" {
		if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config", "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, flags map[string]any) Config {
	t.Helper()
	c, err := Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsAndHome(t *testing.T) {
	dir := home(t, "")
	c := load(t, nil)
	if c.ConfigDir != filepath.Join(dir, "config") || c.DataDir != filepath.Join(dir, "data") {
		t.Errorf("directories are %s and %s", c.ConfigDir, c.DataDir)
	}
	if c.Listen != DefaultListen || c.Name == "" || c.LogLevel != "info" || c.APIRemote || c.Limits.Workers != 0 || c.VerifyTimeout != 10*time.Minute {
		t.Errorf("defaults are %+v", c)
	}
	if _, err := os.Stat(c.ConfigDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load created something: %v", err)
	}
}

func TestSpecificDirectoriesWinOverHome(t *testing.T) {
	home(t, "")
	other := t.TempDir()
	t.Setenv(envDataDir, other)
	c := load(t, nil)
	if c.DataDir != other || c.TokenFile() != filepath.Join(other, "token") {
		t.Errorf("data directory is %s", c.DataDir)
	}
}

func TestPrecedence(t *testing.T) {
	home(t, "listen: 127.0.0.1:1\nname: fromfile\nlog_level: warn\nadvertise: [a:1, b:2]\n")
	t.Setenv("WAVEHUB_LISTEN", "127.0.0.1:2")
	t.Setenv("WAVEHUB_NAME", "fromenv")
	c := load(t, map[string]any{KeyListen: "127.0.0.1:3"})
	if c.Listen != "127.0.0.1:3" || c.Name != "fromenv" || c.LogLevel != "warn" || strings.Join(c.Advertise, " ") != "a:1 b:2" {
		t.Errorf("got %+v", c)
	}
	want := map[string]string{
		"listen": "flag --listen", "name": "environment WAVEHUB_NAME",
		"log_level": "file " + c.ConfigFile(), "api_remote": "default", "data_dir": "environment WAVEHUB_HOME",
	}
	for _, o := range c.Origins() {
		if w, ok := want[o.Key]; ok && o.Source != w {
			t.Errorf("%s comes from %q, want %q", o.Key, o.Source, w)
		}
	}
}

func TestAgentsKeepCase(t *testing.T) {
	home(t, "agents:\n  Mine:\n    command: [run, me]\n    deliver: stdin\n    completion: exit\n    env: {PathTo: X}\n    grace: 7s\nlimits: {workers: 3, per_agent: {Mine: 1}}\n")
	c := load(t, nil)
	a := c.Agents["Mine"]
	if len(a.Command) != 2 || a.Env["PathTo"] != "X" || a.Grace != 7*time.Second || a.Deliver != "stdin" || a.Completion != "exit" {
		t.Errorf("agent is %+v", a)
	}
	if last := c.Origins()[len(c.Origins())-1]; last.Key != "agents.Mine" || last.Value != "run me" || last.Source != "file "+c.ConfigFile() {
		t.Errorf("origin is %+v", last)
	}
	if c.Limits.Workers != 3 || c.Limits.PerAgent["Mine"] != 1 {
		t.Errorf("limits are %+v", c.Limits)
	}
}

func TestAgentModes(t *testing.T) {
	home(t, `agents:
  claude:
    mode: headless
    modes:
      tui: {args: [], deliver: paste, ready: hook}
      headless: {args: [-p, --verbose], result: claude-stream}
    version: [claude, -v]
  mine: {like: codex, command: [my codex], bare: true}
`)
	c := load(t, nil)
	a, mine := c.Agents["claude"], c.Agents["mine"]
	tui, headless := a.Modes["tui"], a.Modes["headless"]
	if a.Mode != "headless" || len(a.Version) != 2 || a.Bare != nil || len(a.Modes) != 2 || tui.Args == nil || len(tui.Args) != 0 || tui.Deliver != "paste" ||
		tui.Ready != "hook" || len(headless.Args) != 2 || headless.Result != "claude-stream" || headless.Deliver != "" {
		t.Errorf("claude is %+v", a)
	}
	if mine.Like != "codex" || mine.Bare == nil || !*mine.Bare || len(mine.Modes) != 0 {
		t.Errorf("mine is %+v", mine)
	}
	if last := c.Origins()[len(c.Origins())-1]; last.Key != "agents.mine" || last.Value != "like codex my codex" {
		t.Errorf("origin is %+v", last)
	}
}

func isInvalid(err error) bool {
	_, ok := errors.AsType[*InvalidError](err)
	return ok
}

func TestInvalid(t *testing.T) {
	cases := map[string]string{
		"lissten: x\n":                                  "lissten",
		"agents:\n  a:\n    comand: [x]\n":              "comand",
		"limits: {worker: 1}\n":                         "worker",
		"listen: nowhere\n":                             "listen",
		"verify_timeout_secs: 0\n":                      "verify_timeout_secs",
		"log_level: loud\n":                             "log_level",
		"name: 'a b'\n":                                 "name",
		"advertise: ['host:0']\n":                       "advertise",
		"agents: {a: {grace: soon}}\n":                  "agents.a.grace",
		"agents: {a: {deliver: pigeon}}\n":              "agents.a.deliver",
		"agents: {a: {completion: never}}\n":            "agents.a.completion",
		"limits: {per_agent: {a: -1}}\n":                "limits.per_agent.a",
		"agents:\n  a:\n    modes:\n      web: {}\n":    `line 4: unknown key "web"`,
		"agents: {a: {modes: {tui: {arg: []}}}}\n":      `unknown key "arg"`,
		"agents: {a: {mode: web}}\n":                    "agents.a.mode",
		"agents: {a: {modes: {tui: {deliver: fax}}}}\n": "agents.a.modes.tui.deliver",
		"agents: {a: {modes: {tui: {ready: soon}}}}\n":  "agents.a.modes.tui.ready",
		"agents: {a: {bare: perhaps}}\n":                "line 1",
		"name: a\n---\nname: b\n":                       "more than one document",
		"name: a\nname: b\n":                            "name",
		"listen: [127.0.0.1:1]\n":                       "line 1",
		"name: " + strings.Repeat("x", maxFile) + "\n":  "larger",
	}
	for text, part := range cases {
		home(t, text)
		_, err := Load(nil)
		if !isInvalid(err) || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "config.yaml") {
			t.Errorf("%.40q: got %v, want config_invalid naming %q and the file", text, err, part)
		}
	}
}

func TestInvalidEnvironment(t *testing.T) {
	home(t, "")
	t.Setenv("WAVEHUB_API_REMOTE", "perhaps")
	if _, err := Load(nil); !isInvalid(err) || !strings.Contains(err.Error(), "WAVEHUB_API_REMOTE") {
		t.Errorf("got %v", err)
	}
	t.Setenv("WAVEHUB_API_REMOTE", "true")
	t.Setenv("WAVEHUB_LIMITS_WORKERS", "4")
	t.Setenv("WAVEHUB_ADVERTISE", "a:1, b:2")
	t.Setenv("WAVEHUB_VERIFY_TIMEOUT_SECS", "7")
	if c := load(t, nil); !c.APIRemote || c.VerifyTimeout != 7*time.Second || c.Limits.Workers != 4 || len(c.Advertise) != 2 {
		t.Errorf("got %+v", c)
	}
}

func TestEndpoint(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadEndpoint(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	want := Endpoint{URL: "https://127.0.0.1:1", Fingerprint: "f", HubID: "hub_x"}
	if err := WriteEndpoint(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadEndpoint(dir); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(EndpointFile(dir), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEndpoint(dir); !errors.Is(err, safefile.ErrUnsafe) {
		t.Errorf("an open file gives %v", err)
	}
}
