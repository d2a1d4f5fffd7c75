//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// scribeProgram is an agent with the command line and the records of Claude Code,
// whose turns are shell text: what follows RUN in its prompt. It keeps its record
// in its working folder, under the id of its session.
const scribeProgram = `#!/bin/sh
[ "$1" = --version ] && exec echo 1.0
while [ "$1" != --session-id ]; do shift; done
session=$2 record=$PWD/$2.jsonl
says() {
	printf '{"type":"assistant","uuid":"%s","sessionId":"%s","message":{"role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' \
		"$1" "$session" "$2" >> "$record"
}
announce() {
	printf '{"hook_event_name":"SessionStart","session_id":"%s","transcript_path":"%s","cwd":"%s"}' "$session" "$record" "$PWD" |
		"$WAVEHUB_BIN" hook claude SessionStart
}
printf 'this is the terminal\n'
eval "$(sed -n 's/^RUN //p')"
`

// muteProgram is an agent that never says which session is its own.
const muteProgram = `#!/bin/sh
[ "$1" = --version ] && exec echo 1.0
printf 'this is the terminal\n'
exec sleep 600
`

// withScribe configures the agents scribe and mute, which is like codex.
func withScribe(t testing.TB, h *Hub) {
	scribe, mute := filepath.Join(h.Home, "scribe"), filepath.Join(h.Home, "mute")
	writeProgram(t, scribe, scribeProgram)
	writeProgram(t, mute, muteProgram)
	withConfig("agents:\n  scribe: {like: claude, command: ["+scribe+"]}\n  mute: {like: codex, command: ["+mute+"]}\n")(t, h)
}

// scribe is a worker of that agent, held at a gate when its turn is over, and its
// record, to which the test writes as the agent would.
type scribe struct {
	api.StartReceipt
	run     Coordinator
	session string
	record  string
	gate    gate
}

// newScribe starts one in a folder and waits until its turn is over.
func newScribe(t testing.TB, run Coordinator, dir, turn string) scribe {
	t.Helper()
	s := scribe{run: run, gate: newGate(t)}
	over := filepath.Join(t.TempDir(), "over")
	spec := "RUN " + turn + "; : > '" + over + "'; " + s.gate.wait()
	s.StartReceipt = run.Begin(run.Task(strings.TrimSpace(spec)), "--worktree", "path:"+dir, "--agent", "scribe", "--mode", "headless")
	eventually(t, "the turn is over", 20*time.Second, func() bool { return exists(over) })
	s.session = run.Show(s.DispatchId).Observation.SessionId
	s.record = filepath.Join(dir, s.session+".jsonl")
	return s
}

// line is a record with its newline.
func (s scribe) line(id, text string) string {
	raw, err := json.Marshal(map[string]any{
		"type": "assistant", "uuid": id, "sessionId": s.session,
		"message": map[string]any{"role": "assistant", "content": []any{map[string]string{"type": "text", "text": text}}},
	})
	must(s.run.hub.t, err)
	return string(raw) + "\n"
}

// write appends to the record.
func (s scribe) write(text string) {
	s.run.hub.t.Helper()
	f, err := os.OpenFile(s.record, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	must(s.run.hub.t, err)
	_, err = f.WriteString(text)
	must(s.run.hub.t, err)
	must(s.run.hub.t, f.Close())
}

func (s scribe) read(more ...string) api.OutputPage {
	s.run.hub.t.Helper()
	return get[api.OutputPage](s.run.hub.t, s.run.Caller, append([]string{"worker", "read", s.DispatchId}, more...)...)
}

func (s scribe) refuses(code string, more ...string) api.Problem {
	s.run.hub.t.Helper()
	return refused(s.run.hub.t, s.run.Caller, code, append([]string{"worker", "read", s.DispatchId}, more...)...)
}

// words are the texts of a page's messages in their order.
func words(p api.OutputPage) string {
	if p.Transcript == nil {
		return "no transcript"
	}
	var out []string
	for _, m := range p.Transcript.Messages {
		for _, b := range m.Blocks {
			out = append(out, b.Text)
		}
	}
	return strings.Join(out, " ")
}
