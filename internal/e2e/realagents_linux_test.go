package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// realAgent is a real agent's CLI as its user has set it up: it may run commands
// without asking, trusts the folder, and talks to the scripted model.
type realAgent struct {
	name  string
	modes []string
	// config is its part of the hub's configuration.
	config func(bin, url string) string
	// home prepares the user's home.
	home func(t *testing.T, home, folder, url string)
	// asks is the configuration of the agent that asks before it runs a command,
	// "" for none.
	asks func(bin, url string) string
	// silent says that its transcript begins behind the prompt, unread names the
	// modes in which it writes none.
	silent bool
	// again is how it asks for another Escape, "" if one interrupts it.
	again  string
	unread []string
}

var realAgentTable = []realAgent{
	{
		name: "codex", modes: []string{"headless", "tui"},
		config: func(bin, _ string) string {
			return "  codex: {command: [" + bin + "/codex], env: {FAKE_API_KEY: dummy}}\n"
		},
		home: func(t *testing.T, home, folder, url string) {
			put(t, filepath.Join(home, ".codex", "config.toml"), fmt.Sprintf(codexConfig, url, folder))
		},
	},
	{
		name: "claude", modes: []string{"headless", "tui"},
		config: func(bin, url string) string {
			return "  claude: {command: [" + bin + "/claude, --dangerously-skip-permissions], env: {" + claudeEnv(url) + "}}\n"
		},
		asks: func(bin, url string) string {
			return "  asking: {like: claude, command: [" + bin + "/claude], env: {" + claudeEnv(url) + "}}\n"
		},
		home: func(t *testing.T, home, folder, _ string) {
			put(t, filepath.Join(home, ".claude.json"), fmt.Sprintf(`{"hasCompletedOnboarding": true, "projects": {%q: {"hasTrustDialogAccepted": true}}}`, folder))
			put(t, filepath.Join(home, ".claude", "settings.json"), `{"skipDangerousModePermissionPrompt": true}`)
		},
	},
	{
		name: "gemini", modes: []string{"headless", "tui"},
		config: func(bin, url string) string {
			return "  gemini: {command: [" + bin + "/gemini, -m, gemini-2.5-pro, --approval-mode, yolo, --skip-trust], env: {GEMINI_API_KEY: dummy, GOOGLE_GEMINI_BASE_URL: \"" + url + "\"}}\n"
		},
		home: func(t *testing.T, home, _, _ string) {
			put(t, filepath.Join(home, ".gemini", "settings.json"), geminiSettings)
		},
	},
	{
		name: "opencode", again: "again to interrupt", modes: []string{"headless", "tui"}, silent: true, unread: []string{"tui"},
		config: func(bin, _ string) string {
			return "  opencode: {command: [" + bin + "/opencode], env: {OPENCODE_DISABLE_AUTOUPDATE: \"1\", OPENCODE_DISABLE_MODELS_FETCH: \"1\", OPENCODE_DISABLE_LSP_DOWNLOAD: \"1\", OPENCODE_DISABLE_DEFAULT_PLUGINS: \"1\"}}\n"
		},
		home: func(t *testing.T, home, _, url string) {
			put(t, filepath.Join(home, ".config", "opencode", "opencode.json"), fmt.Sprintf(opencodeConfig, url))
		},
	},
}

func claudeEnv(url string) string {
	return `ANTHROPIC_BASE_URL: "` + url + `", ANTHROPIC_AUTH_TOKEN: dummy, IS_SANDBOX: "1", DISABLE_AUTOUPDATER: "1", ` +
		`CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_TELEMETRY: "1", DISABLE_ERROR_REPORTING: "1"`
}

const codexConfig = `model = "gpt-5.1-codex"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "FAKE_API_KEY"
[analytics]
enabled = false
[feedback]
enabled = false
[projects.%q]
trust_level = "trusted"
`

const geminiSettings = `{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
 "general": {"enableAutoUpdate": false, "disableUpdateNag": true}, "privacy": {"usageStatisticsEnabled": false},
 "telemetry": {"enabled": false}, "hooksConfig": {"enabled": true}}`

const opencodeConfig = `{"autoupdate": false, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model",
 "permission": "allow", "enabled_providers": ["fake"],
 "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": {"baseURL": "%s/v1", "apiKey": "dummy"},
  "models": {"fake-model": {"name": "fake-model", "limit": {"context": 200000, "output": 8000}, "cost": {"input": 1, "output": 2}}}}}}`

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// TestRealAgents runs each installed agent in each of its modes: its task is
// handed over, its shell reports with the worker's capability, asks and is
// answered, its transcript is read by association, a stop ends its whole tree,
// and a retry goes on with its session.
func TestRealAgents(t *testing.T) {
	programs, source := realAgents(t)
	if !isolated(t) {
		return
	}
	m := startModel(t, source)
	for _, g := range realAgentTable {
		if _, err := os.Stat(filepath.Join(programs, g.name)); err != nil {
			t.Logf("%s is not installed", g.name)
			continue
		}
		for _, mode := range g.modes {
			t.Run(g.name+"/"+mode, func(t *testing.T) { setUp(t, g, programs, m).all(t, mode) })
		}
	}
}

// stand is a hub whose user has one agent.
type stand struct {
	realAgent
	hub    *Hub
	model  *model
	folder string
}

func setUp(t *testing.T, g realAgent, programs string, m *model) *stand {
	t.Helper()
	config := "agents:\n" + g.config(programs, m.URL)
	if g.asks != nil {
		config += g.asks(programs, m.URL)
	}
	s := &stand{realAgent: g, model: m, folder: t.TempDir()}
	s.hub = NewHub(t, "home", withConfig(config))
	g.home(t, filepath.Join(s.hub.Home, "user"), s.folder, m.URL)
	s.hub.Start()
	return s
}

func (s *stand) all(t *testing.T, mode string) {
	s.works(t, mode)
	s.asksBack(t, mode)
	s.stops(t, mode)
	if mode == "tui" {
		s.interrupted(t)
	}
	if mode == "tui" && s.asks != nil {
		s.waits(t)
	}
}

// begin starts a worker whose prompt holds the word.
func (s *stand) begin(t *testing.T, c Coordinator, agent, mode, word string, more ...string) api.StartReceipt {
	t.Helper()
	args := append([]string{"--worktree", "path:" + s.folder, "--agent", agent, "--mode", mode, "--timeout", "120s"}, more...)
	if !slices.Contains(more, "--retry-of") {
		return c.Begin(c.Task("Do the part called "+word+"."), args...)
	}
	return api.StartReceipt{}
}

const reporting = `"$WAVEHUB_BIN" done "%s"`

func (s *stand) works(t *testing.T, mode string) {
	word := "alpha-" + mode
	s.model.says(map[string][]saying{word: {
		{Text: "Working.", Command: "touch made-" + mode + " && " + fmt.Sprintf(reporting, "made it")}, {Text: "finished"},
	}})
	c := s.hub.NewRun(word)
	r := s.begin(t, c, s.name, mode, word)
	done := c.Done(r.DispatchId)
	if done.Body != "made it" {
		t.Errorf("%s reported %q\n%s", mode, done.Body, s.said(c, r.DispatchId))
	}
	if _, err := os.Stat(filepath.Join(s.folder, "made-"+mode)); err != nil {
		t.Error(err)
	}
	if slices.Contains(s.unread, mode) {
		page := get[api.OutputPage](t, c.Caller, "worker", "read", r.DispatchId)
		if page.FallbackReason == nil || *page.FallbackReason != "transcript_missing" || page.Source != "terminal" {
			t.Errorf("%+v", page)
		}
		return
	}
	s.readsTranscript(t, c, r.DispatchId, word)
}

func (s *stand) readsTranscript(t *testing.T, c Coordinator, dispatch, word string) {
	var page api.OutputPage
	var shown Result
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("worker read showed: %s %s", shown.Stdout, shown.Stderr)
		}
	})
	eventually(t, "the transcript holds the task and the call", 20*time.Second, func() bool {
		if shown = c.CLI("worker", "read", dispatch, "--source", "transcript", "--json"); shown.Code != 0 {
			return false
		}
		page = decode[api.OutputPage](t, shown.Stdout)
		return (s.silent || strings.Contains(shown.Stdout, word)) && strings.Contains(shown.Stdout, "tool_call")
	})
	if page.Provider == nil || *page.Provider != s.name || page.FallbackReason != nil || page.Cursor == nil {
		t.Errorf("%+v", page)
	}
	if got := c.Show(dispatch).Observation.SessionId; got == "" {
		t.Error("the session has no id")
	}
}

func (s *stand) asksBack(t *testing.T, mode string) {
	word := "bravo-" + mode
	s.model.says(map[string][]saying{word: {
		{Text: "Asking.", Command: `"$WAVEHUB_BIN" ask --question "Which one?" --timeout 60s && ` + fmt.Sprintf(reporting, "asked")}, {Text: "finished"},
	}})
	c := s.hub.NewRun(word)
	r := s.begin(t, c, s.name, mode, word)
	batch := c.Check("--types", "question")
	i := slices.IndexFunc(batch.Messages, func(m api.Message) bool { return m.Type == "question" })
	if i < 0 {
		t.Fatalf("no question: %+v\n%s", batch, s.said(c, r.DispatchId))
	}
	get[api.SendResult](t, c.Caller, "reply", "--id", batch.Messages[i].MessageId, "--body", "the second")
	get[api.CheckResult](t, c.Caller, "check", "--ack", *batch.DeliveryId)
	if done := c.Done(r.DispatchId); done.Body != "asked" {
		t.Errorf("%+v", done)
	}
}

// stops ends a worker whose shell is at work, and goes on with its session.
func (s *stand) stops(t *testing.T, mode string) {
	word := "charlie-" + mode
	s.model.says(map[string][]saying{word: {{Text: "Working.", Command: "sleep 600"}, {Text: "finished"}}})
	c := s.hub.NewRun(word)
	r := s.begin(t, c, s.name, mode, word)
	terminal := terminalOf(r)
	eventually(t, "its shell sleeps", 60*time.Second, func() bool { return sleeps(t, terminal) })
	before := c.Show(r.DispatchId).Observation.SessionId
	stopped := get[api.StopResult](t, c.Caller, "worker", "stop", r.DispatchId)
	if stopped.State != "stopped" || len(marked(t, terminal)) != 0 {
		t.Fatalf("%s, left over: %v", stopped.State, marked(t, terminal))
	}
	s.model.says(map[string][]saying{word: {{Text: "Working.", Command: fmt.Sprintf(reporting, "resumed")}, {Text: "finished"}}})
	again := c.Begin(r.TaskId, "--retry-of", r.DispatchId, "--resume-session", "--worktree", "path:"+s.folder, "--agent", s.name, "--mode", mode, "--timeout", "120s")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.said(c, again.DispatchId))
		}
	})
	if done := c.Done(again.DispatchId); done.Body != "resumed" {
		t.Errorf("%+v", done)
	}
	if after := c.Show(again.DispatchId).Observation.SessionId; after != before {
		t.Errorf("the session was %s and is %s", before, after)
	}
}

// interrupted has a person press Escape while the agent's shell is at work: that
// ends, the agent does not.
func (s *stand) interrupted(t *testing.T) {
	word := "foxtrot"
	s.model.says(map[string][]saying{word: {{Text: "Working.", Command: "sleep 600"}, {Text: "finished"}}})
	c := s.hub.NewRun(word)
	r := s.begin(t, c, s.name, "tui", word)
	terminal := terminalOf(r)
	eventually(t, "its shell sleeps", 60*time.Second, func() bool { return sleeps(t, terminal) })
	get[api.TerminalSent](t, c.Caller, "terminal", "send", terminal, "--key", "esc")
	if s.again != "" {
		eventually(t, "it asks for another Escape", 10*time.Second, func() bool {
			return strings.Contains(c.CLI("terminal", "read", terminal).Stdout, s.again)
		})
		get[api.TerminalSent](t, c.Caller, "terminal", "send", terminal, "--key", "esc")
	}
	eventually(t, "Escape ends the shell", 30*time.Second, func() bool { return !sleeps(t, terminal) })
	if o := c.Show(r.DispatchId).Observation; o.Process != "live" {
		t.Errorf("the agent is %+v", o)
	}
	get[api.StopResult](t, c.Caller, "worker", "stop", r.DispatchId)
}

// waits is an agent that asks a person before it runs a command.
func (s *stand) waits(t *testing.T) {
	word := "delta"
	s.model.says(map[string][]saying{word: {{Text: "Working.", Command: "touch forbidden"}, {Text: "finished"}}})
	c := s.hub.NewRun(word)
	r := s.begin(t, c, "asking", "tui", word)
	batch := c.Check("--types", "notice")
	i := slices.IndexFunc(batch.Messages, func(m api.Message) bool { return strings.Contains(string(m.Payload), "worker_waiting") })
	if i < 0 || !strings.Contains(string(batch.Messages[i].Payload), `"permission"`) {
		t.Fatalf("no notice: %+v", batch)
	}
	if got := c.Show(r.DispatchId).Observation.WaitingFor; got == nil || *got != "permission" {
		t.Errorf("it waits for %v", got)
	}
	get[api.StopResult](t, c.Caller, "worker", "stop", r.DispatchId)
}

// said is what the worker shows, for a failure.
func (s *stand) said(c Coordinator, dispatch string) string {
	return c.CLI("worker", "read", dispatch, "--source", "terminal").Stdout + "\n" + s.hub.log.String() + "\n" + s.model.requests()
}

// sleeps reports whether a command of the terminal's is sleeping.
func sleeps(t *testing.T, terminal string) bool {
	t.Helper()
	for _, pid := range marked(t, terminal) {
		raw, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err == nil && strings.HasPrefix(string(raw), "sleep\x00600") {
			return true
		}
	}
	return false
}
