package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// lines are the records of a sample.
func lines(t testing.TB, name string) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
}

// named finds the name of the hook that a recorded line came from, and its JSON.
func named(t testing.TB, line []byte) (string, []byte) {
	t.Helper()
	var r map[string]json.RawMessage
	if err := json.Unmarshal(line, &r); err != nil {
		t.Fatal(err)
	}
	if raw, ok := r["(notify, last argument)"]; ok {
		return codexNotify, raw
	}
	for _, key := range []string{"hook_event_name", "type"} {
		var name string
		if raw, ok := r[key]; ok && json.Unmarshal(raw, &name) == nil {
			return name, line
		}
	}
	return "", nil
}

// TestEventGolden takes the recorded hooks of the real CLIs apart.
func TestEventGolden(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the recorded paths are those of another system")
	}
	for _, kind := range []string{"codex", "claude", "gemini", "opencode"} {
		var text strings.Builder
		for _, line := range lines(t, "hooks/"+kind+".jsonl") {
			name, raw := named(t, line)
			if raw == nil {
				continue
			}
			e, err := Event(kind, name, raw)
			fmt.Fprintf(&text, "%s: %s session=%s transcript=%s detail=%q %v\n", name, e.Kind, e.Session, e.Transcript, e.Detail, err)
		}
		golden(t, "hooks/"+kind+".golden", text.String())
	}
}

func TestEvents(t *testing.T) {
	cases := []struct {
		kind, name, raw string
		want            hub.AgentEvent
	}{
		{"claude", "Notification", `{"session_id":"a","notification_type":"permission_prompt","message":"Claude needs your permission"}`,
			hub.AgentEvent{Kind: hub.AgentPermission, Session: "a", Detail: "Claude needs your permission"}},
		{"claude", "Notification", `{"session_id":"a","notification_type":"idle_prompt"}`, hub.AgentEvent{Kind: hub.AgentIdle, Session: "a"}},
		{"claude", "Notification", `{"session_id":"a","notification_type":"auth_success"}`, hub.AgentEvent{Kind: hub.AgentOther, Session: "a"}},
		{"openclaude", "PermissionRequest", `{"session_id":"a","tool_name":"Bash","tool_input":{}}`,
			hub.AgentEvent{Kind: hub.AgentPermission, Session: "a", Detail: "Bash"}},
		{"claude", "StopFailure", `{"hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"API Error: Request rejected (429) · scripted error"}`,
			hub.AgentEvent{Kind: hub.AgentTurnFailed, Class: hub.ErrorRateLimited, Detail: "rate_limit: API Error: Request rejected (429) · scripted error"}},
		{"claude", "StopFailure", `{"error":"rate_limit","last_assistant_message":"You've hit your limit · resets 3pm"}`,
			hub.AgentEvent{Kind: hub.AgentTurnFailed, Class: hub.ErrorQuotaExhausted, Detail: "rate_limit: You've hit your limit · resets 3pm"}},
		{"claude", "StopFailure", `{"error":"authentication_failed"}`,
			hub.AgentEvent{Kind: hub.AgentTurnFailed, Class: hub.ErrorAuthFailed, Detail: "authentication_failed"}},
		{"claude", "StopFailure", `{"error":"invalid_request","last_assistant_message":"no"}`,
			hub.AgentEvent{Kind: hub.AgentTurnFailed, Class: hub.ErrorNone, Detail: "invalid_request: no"}},
		{"claude", "PostToolUse", `{"session_id":"a","error":{"x":1},"message":["y"],"tool_name":"Bash"}`,
			hub.AgentEvent{Kind: hub.AgentToolEnded, Session: "a", Detail: "Bash"}},
		{"claude", "Unheard", `{"session_id":"a"}`, hub.AgentEvent{Kind: hub.AgentOther, Session: "a"}},
		{"gemini", "Notification", `{"notification_type":"ToolPermission","message":"Allow?"}`, hub.AgentEvent{Kind: hub.AgentPermission, Detail: "Allow?"}},
		{"codex", "Interrupt", `{"session_id":"a","transcript_path":null}`, hub.AgentEvent{Kind: hub.AgentIdle, Session: "a"}},
		{"codex", "notify", `{"type":"agent-turn-complete","thread-id":"b","input-messages":["Generate a concise, single-line task title for"],"last-assistant-message":"ok"}`,
			hub.AgentEvent{Kind: hub.AgentOther}},
		{"codex", "notify", `{"type":"something-else","thread-id":"b"}`, hub.AgentEvent{Kind: hub.AgentOther}},
		{"opencode", "load", `{"type":"load","properties":{}}`, hub.AgentEvent{Kind: hub.AgentSessionStarted}},
		{"opencode", "session.created", `{"properties":{"sessionID":"ses_b","info":{"parentID":"ses_a"}}}`, hub.AgentEvent{Kind: hub.AgentOther}},
		{"opencode", "session.status", `{"properties":{"sessionID":"ses_a","status":{"type":"busy"}}}`, hub.AgentEvent{Kind: hub.AgentTurnStarted, Session: "ses_a"}},
		{"opencode", "session.status", `{"properties":{"sessionID":"ses_a","status":{"type":"retry"}}}`, hub.AgentEvent{Kind: hub.AgentOther, Session: "ses_a"}},
		{"opencode", "permission.asked", `{"properties":{"sessionID":"ses_a","permission":"bash"}}`,
			hub.AgentEvent{Kind: hub.AgentPermission, Session: "ses_a", Detail: "bash"}},
		{"opencode", "session.error", `{"properties":{"sessionID":"ses_a","error":{"name":"APIError","data":{"message":"no","statusCode":429}}}}`,
			hub.AgentEvent{Kind: hub.AgentTurnFailed, Session: "ses_a", Class: hub.ErrorRateLimited, Detail: "APIError: no (status 429)"}},
		{"opencode", "session.error", `{"properties":{"error":{"name":"MessageAbortedError","data":{}}}}`, hub.AgentEvent{Kind: hub.AgentIdle}},
	}
	for _, c := range cases {
		got, err := Event(c.kind, c.name, []byte(c.raw))
		if err != nil || got != c.want {
			t.Errorf("%s %s %s:\n%+v, %v", c.kind, c.name, c.raw, got, err)
		}
	}
}

func TestEventRefuses(t *testing.T) {
	quoted := func(s string) string { return string(compact(s)) }
	for _, c := range []struct{ kind, name, raw string }{
		{"nobody", "Stop", `{}`}, {"grok", "Stop", `{}`}, {"sh", "Stop", `{}`}, {"", "", `{}`},
		{"codex", "Stop", ``}, {"codex", "Stop", `[]`}, {"codex", "Stop", `{"session_id":1}`}, {"codex", "notify", `"x"`}, {"opencode", "load", `{`},
		{"claude", "Stop", `{"hook_event_name":"SessionEnd"}`},
		{"claude", "Stop", `{"session_id":"--resume"}`}, {"claude", "Stop", `{"session_id":"../a"}`}, {"claude", "Stop", `{"session_id":"a b"}`},
		{"claude", "Stop", `{"session_id":"` + strings.Repeat("a", 129) + `"}`}, {"codex", "notify", `{"type":"agent-turn-complete","thread-id":"$(id)"}`},
		{"claude", "Stop", `{"transcript_path":"x.jsonl"}`}, {"claude", "Stop", `{"transcript_path":"/a/../b"}`}, {"claude", "Stop", `{"transcript_path":"/a//b"}`},
		{"claude", "Stop", `{"transcript_path":"/a\nb"}`}, {"claude", "Stop", `{"transcript_path":"/a\u0000"}`},
		{"claude", "Stop", `{"transcript_path":` + quoted("/"+strings.Repeat("a", maxPath)) + `}`},
		{"claude", "Stop", `{"x":"` + strings.Repeat("a", MaxEvent) + `"}`},
	} {
		if _, err := Event(c.kind, c.name, []byte(c.raw)); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%s %s %.60s: %v", c.kind, c.name, c.raw, err)
		}
	}
	long, err := Event("claude", "Stop", []byte(`{"last_assistant_message":`+quoted("\x1b[31m"+strings.Repeat("é", 5000))+`}`))
	if err != nil || len([]rune(long.Detail)) != maxDetail || strings.ContainsRune(long.Detail, 0x1b) {
		t.Errorf("a long text has %d characters, %v", len([]rune(long.Detail)), err)
	}
}

func TestTitleState(t *testing.T) {
	const none = hub.AgentEventKind("")
	cases := []struct {
		kind, title, osc string
		want             hub.AgentEventKind
	}{
		{"codex", "w1", "", hub.AgentIdle}, {"codex", "⠙ w1", "", hub.AgentTurnStarted}, {"codex", "⠙", "", hub.AgentTurnStarted},
		{"codex", "[ ! ] Action Required | w1", "", hub.AgentPermission}, {"codex", "[ . ] Action Required | w1", "", hub.AgentPermission},
		{"codex", "", "", none}, {"codex", "", "7501;state=idle:app=codex", hub.AgentIdle}, {"codex", "⠙ w1", "state=done:app=codex", hub.AgentTurnEnded},
		{"codex", "", "7501;state=working:app=codex", hub.AgentTurnStarted}, {"codex", "", "7501;state=blocked:app=codex:kind=permission", hub.AgentPermission},
		{"codex", "", "7501;state=asleep", none}, {"codex", "", "52;c;xyz", none},
		{"claude", "✳ name", "", hub.AgentIdle}, {"claude", "⠂ name", "", hub.AgentTurnStarted}, {"openclaude", "⠐ name", "", hub.AgentTurnStarted},
		{"claude", "name", "", none}, {"claude", "⠂name", "", none},
		{"gemini", "◇  Ready (w)", "", hub.AgentIdle}, {"gemini", " ✦  Working… (w)", "", hub.AgentTurnStarted}, {"gemini", "✋  Action Required (w)", "", hub.AgentPermission},
		{"gemini", "\xff", "", none}, {"opencode", "OC | x", "", none}, {"nobody", "✳ x", "", none}, {"sh", "", "", none},
	}
	for _, c := range cases {
		if got, ok := TitleState(c.kind, c.title, c.osc); got != c.want || ok != (c.want != none) {
			t.Errorf("%s %q %q: %q %v", c.kind, c.title, c.osc, got, ok)
		}
	}
}

func FuzzEvent(f *testing.F) {
	for _, kind := range []string{"codex", "claude", "gemini", "opencode"} {
		for _, line := range lines(f, "hooks/"+kind+".jsonl") {
			name, raw := named(f, line)
			f.Add(kind, name, raw)
		}
	}
	f.Fuzz(func(t *testing.T, kind, name string, raw []byte) {
		e, err := Event(kind, name, raw)
		if err != nil {
			return
		}
		if e.Kind == "" || e.Session != "" && !sessionGrammar.MatchString(e.Session) || e.Transcript != "" && !filepath.IsAbs(e.Transcript) ||
			strings.Contains(e.Detail, "\n") || len([]rune(e.Detail)) > maxDetail {
			t.Errorf("%+v", e)
		}
	})
}
