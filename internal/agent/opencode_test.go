package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const pluginEvents = `import { Wavehub } from "./wavehub.mjs"
const { event } = await Wavehub()
const say = (type, properties) => event({ event: { type, properties } })
await say("session.created", { sessionID: "ses_a", info: {} })
await say("session.created", { sessionID: "ses_child", info: { parentID: "ses_a" } })
await say("session.status", { sessionID: "ses_a", status: { type: "busy" } })
await say("session.status", { sessionID: "ses_a", status: { type: "busy" } })
await say("session.status", { sessionID: "ses_child", status: { type: "busy" } })
await say("session.idle", { sessionID: "ses_child" })
await say("message.part.updated", { sessionID: "ses_a", part: { text: "x".repeat(100000) } })
await say("permission.asked", { sessionID: "ses_a", permission: "bash", metadata: { command: "ls" } })
await say("session.error", { sessionID: "ses_a", error: { name: "APIError", data: { message: "no", statusCode: 429 } } })
await say("session.status", { sessionID: "ses_a", status: { type: "idle" } })
`

// TestOpencodePlugin runs the plugin: what it tells reaches the hook's standard
// input and is understood, and neither sub-agents nor repetitions are told.
func TestOpencodePlugin(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil || runtime.GOOS == "windows" {
		t.Skipf("the plugin is run by node and calls a shell script: %v", err)
	}
	dir := t.TempDir()
	hook := filepath.Join(dir, "hook it")
	write(t, hook, "#!/bin/sh\ncat > \"$0.$3.$$.part\" && mv \"$0.$3.$$.part\" \"$0.$3.$$.done\"\n")
	made := wireOpencode(wiring{kind: "opencode", events: opencode().wiredEvents(), bin: hook, dir: dir})
	write(t, filepath.Join(dir, "wavehub.mjs"), string(made.files[0].Data))
	write(t, filepath.Join(dir, "main.mjs"), pluginEvents)
	if out, err := exec.CommandContext(t.Context(), node, filepath.Join(dir, "main.mjs")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{"permission ses_a bash", "session_started  ", "session_started ses_a ", "turn_failed ses_a APIError: no (status 429)", "turn_started ses_a "}
	if got := told(t, hook, len(want)); !slices.Equal(got, want) {
		t.Errorf("the hub was told %q", got)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// told waits for the hooks, which outlive the plugin, and returns their events.
func told(t *testing.T, hook string, n int) []string {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		files, err := filepath.Glob(hook + ".*.done")
		if err != nil {
			t.Fatal(err)
		}
		if len(files) >= n {
			return eventsOf(t, files)
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("only %d of %d hooks came: %v", len(files), n, files)
		}
	}
}

func eventsOf(t *testing.T, files []string) []string {
	t.Helper()
	var out []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(filepath.Base(file), ".")
		e, err := Event("opencode", strings.Join(parts[1:len(parts)-2], "."), raw)
		if err != nil || e.Kind == hub.AgentOther {
			t.Errorf("%s: %+v, %v", file, e, err)
		}
		out = append(out, string(e.Kind)+" "+e.Session+" "+e.Detail)
	}
	slices.Sort(out)
	return out
}
